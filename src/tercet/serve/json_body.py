"""JSON in and out: fast, strict, and with numpy arrays."""

from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import orjson
from fastapi import Request, Response
from fastapi.routing import APIRoute

from tercet.files.structured import json_text
from tercet.serve.problems import ProblemError
from tercet.settings.serve import ServeLimits

JSON = "application/json"


def respond(data: Any, *, status: int = 200) -> Response:
    """An answer with numpy arrays as lists."""
    return Response(json_bytes(data), status, media_type=JSON)


def json_bytes(data: Any) -> bytes:
    """``data`` as JSON, with numpy arrays as lists; as in ``json_text``, NaN and infinity are errors."""
    try:
        body = orjson.dumps(data, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError:  # whole numbers of more than 64 bits, which metadata may have
        return json_text(data, default=_listed).encode()
    if b"null" in body:  # which orjson also writes for NaN
        json_text(data, default=_listed)
    return body


class JsonRoute(APIRoute):
    """A route whose requests have JSON bodies."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler, for which the body is parsed here."""
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            if request.method == "POST":
                request._json = parsed(await request.body(), request)  # Starlette keeps it there
            response: Response = await handle(request)
            return response

        return handler


def parsed(body: bytes, request: Request) -> Any:
    """The value of a body. orjson refuses NaN, wrong encodings and halves of characters."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise ProblemError(
            415, "unsupported_media_type", "the body needs the header Content-Type: application/json"
        )
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ProblemError(400, "invalid_json", f"the body must be JSON in UTF-8: {error}") from None
    if isinstance(value, dict):
        for each in value.values():
            check_list(each, request.app.state.config.limits)
    return value


def _listed(value: Any) -> Any:
    """An array or a number of numpy as Python has it."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON serializable")


def check_list(value: Any, limits: ServeLimits) -> None:
    """Raise if a list is too long: before its items are checked, each of which may be an error."""
    if not isinstance(value, list) or not value:
        return
    name = "max_text_characters" if isinstance(value[0], int) else "max_texts"  # an array of tokens
    if len(value) > getattr(limits, name):
        raise ProblemError(
            413,
            "too_large",
            f"a list may have {getattr(limits, name):,} items ({name}), and one has {len(value):,}: send "
            "less at a time",
            limit=name,
        )
    for each in value:
        if isinstance(each, list):
            check_list(each, limits)
