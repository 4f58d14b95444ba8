"""Where a client connects to, with which key, and how patient it is."""

import os
import re
from typing import Any, Generic, TypeVar

import httpx2

from tercet.client.attempts import Attempts, Patience
from tercet.client.calls import BatchSize, Request
from tercet.errors import InputError
from tercet.inputs import check_count

DEFAULT_URL = "http://127.0.0.1:8080"
VARIABLE = "TERCET_API_KEY"
CONNECT_SECONDS = 10.0

Http = TypeVar("Http", httpx2.Client, httpx2.AsyncClient)


class Connection(Generic[Http]):
    """What the two clients share.

    Args:
        base_url: the address of the server.
        model: the model of requests that name none. Default: the server chooses, by the kind of request.
        api_key: Default: the environment variable ``TERCET_API_KEY``.
        timeout: seconds for an answer; the server itself gives up after 60 by default.
        retries: how often a request is sent again if the server is busy or cannot be reached.
        retry_seconds: no retry begins later than this after the first attempt.
        batch_texts: texts of one request, if a list is longer than that.
        batch_bytes: bytes of these texts.
    """

    _http_class: type[Http]

    def __init__(
        self,
        base_url: str = DEFAULT_URL,
        *,
        model: str | None = None,
        api_key: str | None = None,
        timeout: float = 90.0,
        retries: int = 3,
        retry_seconds: float = 60.0,
        batch_texts: int = 256,
        batch_bytes: int = 65_536,
    ) -> None:
        self.base_url = _checked_url(base_url)
        self.model = model
        if retries < 0 or not timeout > 0:
            raise InputError(f"retries must be at least 0, and timeout positive, got {retries} and {timeout}")
        self._patience = Patience(retries, retry_seconds, timeout)
        self._batch = BatchSize(
            check_count("batch_texts", batch_texts), check_count("batch_bytes", batch_bytes)
        )
        self._http: Http = self._http_class(
            base_url=self.base_url,
            headers=_headers(api_key),
            timeout=httpx2.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS), pool=None),
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.base_url}>"

    def _attempts(self, request: Request) -> Attempts:
        return Attempts(request, self.base_url, self._patience)


def arguments(request: Request) -> dict[str, Any]:
    """A request as the arguments of httpx2's ``request``."""
    if request.body is None:
        return {"method": "GET", "url": request.path}
    headers = {"Content-Type": "application/json"}
    return {"method": "POST", "url": request.path, "content": request.body, "headers": headers}


def _checked_url(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise InputError(f"base_url must begin with http:// or https://, got {url!r}")
    if httpx2.URL(url).userinfo:
        raise InputError("base_url must have no user name or password: pass api_key")
    return url.rstrip("/")


def _headers(api_key: str | None) -> dict[str, str]:
    """The headers of every request; no error quotes the key."""
    headers = {"User-Agent": "tercet"}
    key = os.environ.get(VARIABLE) if api_key is None else api_key
    if key:
        if not re.fullmatch(r"[!-~]+", key):
            raise InputError("an API key has letters, digits and signs of ASCII, without spaces or line ends")
        headers["Authorization"] = f"Bearer {key}"
    return headers
