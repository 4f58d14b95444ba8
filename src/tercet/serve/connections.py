"""Connections that send no request for too long are closed."""

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LAST_REQUEST_SECONDS = 0.5
"""How long an idle connection stays open when the server stops."""


class PatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with a limit on the time until the headers of the first request are complete.

    uvicorn itself limits only the pause between two requests. A client that sends its headers byte by byte
    would keep a connection for ever.
    """

    header_seconds = 10.0

    def connection_made(self, transport: Any) -> None:
        """Start the clock."""
        super().connection_made(transport)
        self._patience = self.loop.call_later(self.header_seconds, self._lose_patience)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._patience.cancel()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Start the clock for the headers of a request."""
        super().on_message_begin()
        self._patience.cancel()
        self._patience = self.loop.call_later(self.header_seconds, self._lose_patience)

    def on_headers_complete(self) -> None:
        """Stop the clock: the guard limits the time of the body."""
        self._patience.cancel()
        super().on_headers_complete()

    def shutdown(self) -> None:
        """Close soon: a request may be on its way already, and is answered first."""
        self.loop.call_later(LAST_REQUEST_SECONDS, super().shutdown)

    def _lose_patience(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()
