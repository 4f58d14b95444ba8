"""The guard around a route that a test controls: what ends a request, and what does not."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs tercet[serve]")

from tercet.serve.guard import Guard, Receive, Send
from tercet.serve.metrics import Metrics
from tercet.settings.serve import ServerConfig

START = {"type": "http.response.start", "status": 200, "headers": []}
LAST = {"type": "http.response.body", "body": b"done"}
FIRST = {**LAST, "more_body": True}
DISCONNECTED = {"type": "http.disconnect"}


class Client:
    """Sends a request without a body, and disconnects when told to; ``sent`` is what it received."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()
        self.sent: list[MutableMapping[str, Any]] = []
        self._asked = False

    async def receive(self) -> MutableMapping[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.gone.wait()
        return dict(DISCONNECTED)

    async def send(self, message: MutableMapping[str, Any]) -> None:
        self.sent.append(message)
        if message == LAST:
            self.gone.set()  # as uvicorn does


Route = Callable[[Client, Send], Awaitable[None]]


def answered(route: Route) -> tuple[Client, str]:
    """What a route sends through the guard, and the status that is noted."""

    async def run() -> tuple[Client, str]:
        client, metrics = Client(), Metrics()

        async def app(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
            await route(client, send)

        guard = Guard(app, ServerConfig(), [], metrics)
        request = {"type": "http", "method": "GET", "path": "/v1/models", "headers": []}
        await guard(request, client.receive, client.send)
        samples = metrics.requests.collect()[0].samples
        return client, next(each.labels["status"] for each in samples if each.name.endswith("_total"))

    return asyncio.run(run())


def test_a_route_is_cancelled_when_its_client_leaves() -> None:
    ended: list[str] = []

    async def route(client: Client, send: Send) -> None:
        client.gone.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    client, status = answered(route)
    assert (ended, client.sent, status) == (["cancelled"], [], "499")


def test_a_client_that_leaves_in_the_middle_of_an_answer_is_noted() -> None:
    async def route(client: Client, send: Send) -> None:
        await send(dict(START))
        await send(dict(FIRST))
        client.gone.set()
        await asyncio.sleep(30)

    assert answered(route)[1] == "499"


def test_a_route_may_work_after_its_answer() -> None:
    ended: list[str] = []

    async def route(client: Client, send: Send) -> None:
        await send(dict(START))
        await send(dict(LAST))
        for _ in range(10):
            await asyncio.sleep(0)
        ended.append("completed")

    client, status = answered(route)
    assert (ended, len(client.sent), status) == (["completed"], 2, "200")


def test_a_server_that_stops_can_cancel_a_request() -> None:
    async def route(client: Client, send: Send) -> None:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_soon(task.cancel)
        await asyncio.sleep(30)

    with pytest.raises(asyncio.CancelledError):
        answered(route)


def test_a_time_out_inside_a_route_is_not_called_a_slow_request() -> None:
    async def route(client: Client, send: Send) -> None:
        raise TimeoutError

    client, status = answered(route)
    assert status == "500"
    assert b"request_seconds" not in client.sent[1]["body"]
