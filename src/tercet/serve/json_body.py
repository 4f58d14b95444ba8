"""JSON in and out: fast, strict, and with numpy arrays."""

import json
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.routing import APIRoute


def respond(data: Any) -> Response:
    """An answer with numpy arrays as lists."""
    try:
        body = orjson.dumps(data, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError:  # whole numbers of more than 64 bits, which metadata may have
        body = json.dumps(
            data, allow_nan=False, ensure_ascii=False, default=lambda each: each.tolist()
        ).encode()
    return Response(body, media_type="application/json")


class JsonRequest(Request):
    """Reads its body with orjson, which refuses NaN, wrong encodings and halves of characters."""

    async def json(self) -> Any:
        """The parsed body."""
        return orjson.loads(await self.body())


class JsonRoute(APIRoute):
    """A route whose requests have JSON bodies."""

    def get_route_handler(self) -> Any:
        """FastAPI's handler, with our requests."""
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            response: Response = await handle(JsonRequest(request.scope, request.receive))
            return response

        return handler
