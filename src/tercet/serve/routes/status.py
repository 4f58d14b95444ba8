"""Models, health and metrics."""

from typing import Any

from fastapi import APIRouter, Request, Response

from tercet.serve.json_body import JsonRoute, respond
from tercet.serve.routes.inputs import Ready
from tercet.serve.schemas import Health, Model, ModelList
from tercet.serve.service import Service

router = APIRouter(route_class=JsonRoute, tags=["status"])


@router.get("/v1/models", response_model=ModelList)
async def models(service: Ready) -> Response:
    """The loaded models."""
    return respond({"object": "list", "data": [_model(service, name) for name in service.engine.names]})


@router.get("/v1/models/{name}", response_model=Model)
async def model(name: str, service: Ready) -> Response:
    """A loaded model."""
    service.scorer(name)
    return respond(_model(service, name))


@router.head("/health/live", include_in_schema=False)
@router.get("/health/live", response_model=Health)
async def live() -> Response:
    """Whether the process answers."""
    return respond({"status": "alive"})


@router.head("/health/ready", include_in_schema=False)
@router.get("/health/ready", response_model=Health, responses={503: {"model": Health}})
async def ready(request: Request) -> Response:
    """Whether the models are loaded and warmed up, and every index is in its folder; 503 otherwise."""
    service: Service = request.app.state.service
    if not service.ready:
        return respond({"status": "loading"}, status=503)
    missing = await service.missing_indexes()
    if missing:
        return respond({"status": "index_missing", "indexes": missing}, status=503)
    return respond({"status": "ready"})


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(request: Request) -> Response:
    """Metrics in Prometheus' format."""
    state = request.app.state
    return Response(state.metrics.text(state.service.engine), media_type="text/plain; version=0.0.4")


def _model(service: Service, name: str) -> dict[str, Any]:
    scorer: Any = service.scorer(name)
    return {
        "id": name,
        "object": "model",
        "created": 0,
        "owned_by": "tercet",
        "kind": scorer.kind,
        "width": getattr(scorer, "width", None),
        "codes": getattr(scorer, "max_codes", None),
        "max_tokens": scorer.tokenizer.max_tokens,
        "calibrated": scorer.calibration is not None,
        "precision": scorer.precision,
        "fingerprint": service.fingerprints[name],
        "scripts": service.scripts[name],
    }
