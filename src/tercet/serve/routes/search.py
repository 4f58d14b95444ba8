"""``/v1/search`` and changes of indexes."""

import time
from dataclasses import asdict

from fastapi import APIRouter, Response

from tercet.serve.json_body import JsonRoute, respond
from tercet.serve.routes.inputs import Ready, Writing, check_k, check_length, check_number, checked_context
from tercet.serve.schemas import (
    IndexList,
    RemoveRequest,
    SearchRequest,
    SearchResponse,
    WriteRequest,
    WriteResponse,
)
from tercet.serve.service import Service

router = APIRouter(route_class=JsonRoute, tags=["search"])


@router.post("/v1/search", response_model=SearchResponse)
async def search(request: SearchRequest, service: Ready) -> Response:
    """The best candidates of an index."""
    began = time.perf_counter()
    limits, index = service.config.limits, service.index(request.index)
    found = await index.search(
        service.engine,
        checked_context(request.context, limits),
        check_k(request.k, limits),
        mode=request.mode,
        where=request.where,
        rerank=None if request.rerank is None else check_k(request.rerank, limits, name="rerank"),
        exact=request.exact,
    )
    return respond(
        {
            "index": index.name,
            "model": index.model,
            "hits": [asdict(hit) for hit in found.hits],
            "certainty": found.hits.certainty.value,
            "context_truncated": found.context_truncated,
            "seconds": time.perf_counter() - began,
        }
    )


@router.get("/v1/indexes", response_model=IndexList)
async def indexes(service: Ready) -> Response:
    """The indexes, without those whose folders are missing."""
    missing = await service.missing_indexes()
    data = [
        {
            "id": name,
            "size": await index.size(),
            "model": index.model,
            "kind": service.scorer(index.model).kind,
            "reranker": index.reranker,
        }
        for name, index in service.indexes.items()
        if name not in missing
    ]
    return respond({"object": "list", "data": data})


@router.post("/v1/indexes/{index}/add", response_model=WriteResponse)
async def add(index: str, request: WriteRequest, service: Writing) -> Response:
    """Add candidates; ids that are known already are an error, and then nothing is added."""
    return await _write(service, index, request, update=False)


@router.post("/v1/indexes/{index}/update", response_model=WriteResponse)
async def update(index: str, request: WriteRequest, service: Writing) -> Response:
    """Replace candidates by their ids, and add those with new ids."""
    return await _write(service, index, request, update=True)


@router.post("/v1/indexes/{index}/remove", response_model=WriteResponse)
async def remove(index: str, request: RemoveRequest, service: Writing) -> Response:
    """Remove candidates by their ids; an unknown one is an error, and then nothing is removed."""
    check_number(len(request.ids), service.config.limits)
    served = service.index(index)
    changed = await served.remove(request.ids)
    return respond({"index": index, "changed": changed, "size": await served.size()})


async def _write(service: Service, name: str, request: WriteRequest, *, update: bool) -> Response:
    served, limits = service.index(name), service.config.limits
    check_number(len(request.candidates), limits)
    for position, candidate in enumerate(request.candidates):
        text = candidate if isinstance(candidate, str) else candidate.get("text")
        check_length(len(text) if isinstance(text, str) else 0, limits, f"candidate {position}")
    changed = await served.write(service.engine, request.candidates, update=update)
    return respond({"index": name, "changed": changed, "size": await served.size()})
