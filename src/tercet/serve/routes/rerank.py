"""Reranking as Cohere, Jina and Text Embeddings Inference offer it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from fastapi import APIRouter, Request, Response

from tercet.arrays import top_k
from tercet.records import Context, Floats
from tercet.scorers.cross_scorer import CrossScorer
from tercet.serve.json_body import JsonRoute, respond
from tercet.serve.routes.inputs import Ready, checked_context, checked_texts, truncated, usage
from tercet.serve.schemas import RerankRequest, RerankResponse, TeiRank, TeiRerankRequest
from tercet.serve.scoring import Scored, score_all
from tercet.serve.service import Service

router = APIRouter(route_class=JsonRoute, tags=["ranking"])


class Reranked(NamedTuple):
    """The scores of texts, how relevant they are, and their order."""

    model: str
    scored: Scored
    scores: Floats
    relevance: Floats
    order: list[int]


@router.post("/v1/rerank", response_model=RerankResponse)
async def rerank(body: RerankRequest, request: Request, service: Ready) -> Response:
    """Documents in the order of their relevance to a query (Jina, and Cohere's version 1)."""
    return await _cohere(body, request, service, version="1")


@router.post("/v2/rerank", response_model=RerankResponse)
async def rerank_v2(body: RerankRequest, request: Request, service: Ready) -> Response:
    """Documents in the order of their relevance to a query (Cohere's version 2)."""
    return await _cohere(body, request, service, version="2")


@router.post("/rerank", response_model=list[TeiRank])
async def rerank_tei(body: TeiRerankRequest, service: Ready) -> Response:
    """Texts in the order of their relevance to a query (Text Embeddings Inference)."""
    found = await _reranked(service, body.model, body.query, body.texts)
    scores = found.scores if body.raw_scores else found.relevance
    return respond(
        [
            {
                "index": position,
                "score": float(scores[position]),
                **({"text": body.texts[position]} if body.return_text else {}),
            }
            for position in found.order
        ]
    )


async def _cohere(body: RerankRequest, request: Request, service: Service, *, version: str) -> Response:
    texts = [each if isinstance(each, str) else each.text for each in body.documents]
    found = await _reranked(service, body.model, body.query, texts)
    results: list[dict[str, Any]] = [
        {
            "index": position,
            "relevance_score": float(found.relevance[position]),
            "score": float(found.scores[position]),
            **({"document": {"text": texts[position]}} if body.return_documents else {}),
        }
        for position in found.order[: body.top_n]
    ]
    counts = np.broadcast_to(found.scored.scores.candidate_truncated, found.scored.scores.values.shape)[0]
    return respond(
        {
            "id": request.state.request_id,
            "model": found.model,
            "results": results,
            "usage": usage(found.scored.tokens),
            "meta": {"api_version": {"version": version}, "billed_units": {"search_units": 0}},
            "truncated": truncated(counts.tolist()),
            "query_truncated": int(found.scored.scores.context_truncated.max()),
        }
    )


async def _reranked(
    service: Service, model: str | None, query: "str | Sequence[str]", texts: Sequence[str]
) -> Reranked:
    limits, name = service.config.limits, model or service.default_reranker()
    service.scorer(name)  # an unknown model comes before wrong texts
    context: Context = checked_context(query, limits, "query")
    candidates = checked_texts(texts, limits, "document")
    scored = await score_all(service.engine, name, [context], candidates)
    scores = scored.scores.values[0]
    relevance = _relevance(service, name, scores)
    return Reranked(name, scored, scores, relevance, top_k(scores, len(candidates)).tolist())


def _relevance(service: Service, name: str, scores: Floats) -> Floats:
    """Scores from 0 to 1 where that is possible without changing the order."""
    scorer = service.scorer(name)
    if scorer.calibration is not None:
        return scorer.calibration.probabilities(scores)
    if isinstance(scorer, CrossScorer) and scorer.config.activation == "identity":
        values: Floats = (1 / (1 + np.exp(-scores.astype(np.float64)))).astype(np.float32)
        return values
    return scores
