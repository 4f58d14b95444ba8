"""Limits on connections: their number, the size of headers, and the time until these are complete."""

from typing import TYPE_CHECKING, Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from asyncio import TimerHandle

    from tercet.serve.refusals import Refusals

LAST_REQUEST_SECONDS = 0.5
"""How long an idle connection stays open when the server stops."""
MAX_HEADER_BYTES = 65_536


class PatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits.

    uvicorn itself limits only the pause between two requests. A client that sends its headers byte by byte
    would keep a connection for ever, and endless headers would fill the memory.
    """

    header_seconds = 10.0
    max_connections = 1024
    refusals: ClassVar["Refusals | None"] = None
    """Answers requests before their bodies are read."""

    def connection_made(self, transport: Any) -> None:
        """Start the clock, or close the connection if there are too many."""
        super().connection_made(transport)
        self._patience: TimerHandle | None = None
        self._waits_for_headers, self._headers_ended, self._header_bytes = True, False, 0
        self._is_refused = False
        self._wait_for_headers()
        if len(self.connections) > self.max_connections:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count the bytes of headers, and start the clock for those of the next request."""
        waited, self._headers_ended = self._waits_for_headers, False
        super().data_received(data)
        if self.transport.is_closing():
            return
        if waited and not self._headers_ended:
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADER_BYTES:
                self.transport.abort()
        is_idle = self.timeout_keep_alive_task is not None
        if self._waits_for_headers and not is_idle and (self.cycle is None or self.cycle.response_complete):
            self._wait_for_headers()

    def on_headers_complete(self) -> None:
        """Stop the clock: the guard limits the time of the body. Or refuse the request at once."""
        self._stop_waiting()
        self._waits_for_headers, self._headers_ended, self._header_bytes = False, True, 0
        answer = self._refusal()
        if answer is None:
            super().on_headers_complete()
            return
        self._is_refused = True
        self.transport.write(answer)
        self._wait_for_headers()  # the rest of a body that is dropped may not take for ever either

    def on_body(self, body: bytes) -> None:
        """Drop the body of a refused request."""
        if not self._is_refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Whatever follows is the next request."""
        self._waits_for_headers = True
        if not self._is_refused:
            super().on_message_complete()
            return
        self._is_refused = False
        self._stop_waiting()
        self.on_response_complete()

    def _refusal(self) -> bytes | None:
        """The answer to a request that is refused before its body is read, if it is the only one."""
        is_alone = self.cycle is None or self.cycle.response_complete
        if self.refusals is None or not is_alone or self.parser.get_method() != b"POST":
            return None
        if self.parser.get_http_version() != "1.1" or not self.parser.should_keep_alive():
            return None
        return self.refusals.answer(self.headers)

    def shutdown(self) -> None:
        """Close soon: a request may be on its way already, and is answered first."""
        self.loop.call_later(LAST_REQUEST_SECONDS, super().shutdown)

    def _wait_for_headers(self) -> None:
        if self._patience is None:
            self._patience = self.loop.call_later(self.header_seconds, self._lose_patience)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _lose_patience(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()
