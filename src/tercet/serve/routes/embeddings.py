"""``/v1/embeddings``, as OpenAI's clients call it."""

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import numpy as np
from fastapi import APIRouter, Response

from tercet.arrays import unit_vectors
from tercet.errors import InputError
from tercet.serve.json_body import JsonRoute, respond
from tercet.serve.models import TokenArray
from tercet.serve.routes.inputs import (
    Ready,
    check_length,
    check_number,
    checked_texts,
    truncated,
    usage,
    with_vectors,
)
from tercet.serve.schemas import EmbeddingRequest, EmbeddingResponse
from tercet.serve.scoring import encode
from tercet.settings.serve import ServeLimits

if TYPE_CHECKING:
    from tercet.settings.models import Side

router = APIRouter(route_class=JsonRoute, tags=["vectors"])


@router.post("/v1/embeddings", response_model=EmbeddingResponse)
async def embeddings(request: EmbeddingRequest, service: Ready) -> Response:
    """Vectors of texts."""
    name = with_vectors(service, request.model)
    scorer: Any = service.scorer(name)
    side: Side = "context" if request.input_type in ("context", "query") else "candidate"
    if side == "context" and scorer.max_codes > 1:
        raise InputError(f"a context of the poly-encoder {name} has several vectors: encode candidates")
    full_width = scorer.width
    width = request.dimensions or full_width
    if width > full_width:
        raise InputError(f"dimensions may be {full_width} for the model {name}, got {width}")
    encoded = await encode(service.engine, name, _texts(request.input, service.config.limits), side)
    vectors = encoded.codes.vectors[:, 0]
    if width < full_width:
        vectors = unit_vectors(np.ascontiguousarray(vectors[:, :width]))
    return respond(
        {
            "object": "list",
            "data": [
                {"object": "embedding", "index": index, "embedding": _written(vector, request)}
                for index, vector in enumerate(vectors)
            ],
            "model": name,
            "usage": usage(encoded.tokens),
            "truncated": truncated(encoded.truncated.tolist()),
        }
    )


def _texts(given: Any, limits: ServeLimits) -> list[Any]:
    """The texts or token arrays of a request."""
    many = [given] if isinstance(given, str) or isinstance(given[0], int) else given
    check_number(len(many), limits)
    if isinstance(many[0], str):
        return list(checked_texts(many, limits, "input"))
    for position, ids in enumerate(many):
        check_length(len(ids), limits, f"input {position}")
    return [TokenArray(tuple(ids)) for ids in many]


def _written(vector: Any, request: EmbeddingRequest) -> Any:
    if request.encoding_format == "base64":
        return b64encode(vector.astype("<f4").tobytes()).decode()
    return vector
