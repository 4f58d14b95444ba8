"""The web application: routes behind the guard."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

import tercet
from tercet.inputs import shortened
from tercet.serve.guard import Guard
from tercet.serve.keys import read_keys
from tercet.serve.metrics import Metrics
from tercet.serve.problems import ProblemError, status_problem
from tercet.serve.refusals import Refusals
from tercet.serve.routes import embeddings, playground, ranking, rerank, search, status
from tercet.serve.schemas import ErrorResponse
from tercet.serve.service import Service
from tercet.settings.serve import ServerConfig

DESCRIPTION = """Scores, rankings, vectors and search with bi-, poly- and cross-encoders.

Every error has the same shape. Limits are settings of the server, and an error names the one that it exceeds.
"""
ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"model": ErrorResponse, "description": text}
    for code, text in (
        (400, "The body is not JSON."),
        (401, "An API key is needed."),
        (403, "The API key may not do this, or a page of another site may not call the server."),
        (404, "There is no such model or index."),
        (408, "The request or its answer took too long."),
        (413, "The request is too large."),
        (415, "The body must be application/json."),
        (421, "The server has no API keys, and answers to localhost only."),
        (422, "The request is invalid."),
        (429, "The server is overloaded: try again after the time in Retry-After."),
        (503, "The server is not ready."),
    )
}
SHOWN_CHARACTERS = 100
"""Characters of the name of a field in a message."""


def create_app(
    config: ServerConfig,
    *,
    load_first: bool = False,
    on_ready: Callable[[Service], None] | None = None,
    on_failure: Callable[[Exception], None] | None = None,
) -> FastAPI:
    """The application. Its models are loaded in the background once it is started.

    Args:
        load_first: load the models before requests are accepted, because other processes answer them.
        on_ready: called when the models are loaded and warmed up.
        on_failure: called if they cannot be loaded.
    """
    keys, metrics = read_keys(config.serve), Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.service = service = Service(config, metrics)
        app.state.refusals.watch(service.engine)
        loading = asyncio.create_task(_load(service, on_ready, on_failure))
        measuring = asyncio.create_task(metrics.keep_measuring(service.engine))
        if load_first:
            await loading
        yield
        for task in (loading, measuring):
            task.cancel()
        await asyncio.gather(loading, measuring, return_exceptions=True)
        await service.close()

    app = FastAPI(
        title="tercet",
        version=tercet.__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        responses=ERRORS,
    )
    app.state.metrics, app.state.config, app.state.refusals = metrics, config, Refusals(metrics)
    for module in (embeddings, rerank, ranking, search, status):
        app.include_router(module.router)
    if config.serve.playground:
        app.include_router(playground.router)
    app.add_exception_handler(HTTPException, _wrong_path)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_middleware(Guard, config=config, keys=keys, metrics=metrics)
    if config.serve.cors_origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=config.serve.cors_origins, allow_methods=["*"], allow_headers=["*"]
        )
    return app


async def _load(
    service: Service,
    on_ready: Callable[[Service], None] | None,
    on_failure: Callable[[Exception], None] | None,
) -> None:
    try:
        await service.start()
    except Exception as error:
        if on_failure is None:
            raise
        on_failure(error)
        return
    if on_ready is not None:
        on_ready(service)


async def _wrong_path(request: Request, error: Any) -> Response:
    """Raises: the guard answers every problem in the same way."""
    phrase = HTTPStatus(error.status_code).phrase.lower()
    raise status_problem(
        error.status_code, f"{request.method} {phrase}: the paths are listed in /openapi.json"
    ) from None


async def _invalid(request: Request, error: Any) -> Response:
    """Raises a problem that says where the request is wrong, without the value itself."""
    first = error.errors()[0]
    where = shortened(".".join(map(str, first["loc"][1:])), SHOWN_CHARACTERS)
    if not where:
        raise ProblemError(422, "invalid_request", "the body must be a JSON object") from None
    raise ProblemError(422, "invalid_request", f"{where}: {first['msg']}", param=where) from None
