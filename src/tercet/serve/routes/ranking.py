"""``/v1/score``, ``/v1/rank`` and ``/v1/explain``: tercet's own interface."""

import time
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
from fastapi import APIRouter, Response

from tercet.arrays import top_k
from tercet.errors import InputError
from tercet.inputs import check_text
from tercet.records import as_text
from tercet.serve.json_body import JsonRoute, respond
from tercet.serve.problems import ProblemError
from tercet.serve.routes.inputs import Ready, check_number, checked_context, checked_texts, truncated, usage
from tercet.serve.schemas import (
    ExplainRequest,
    ExplainResponse,
    RankRequest,
    RankResponse,
    ScoreRequest,
    ScoreResponse,
)
from tercet.serve.scoring import score_all, score_pairs

router = APIRouter(route_class=JsonRoute, tags=["ranking"])


@router.post("/v1/score", response_model=ScoreResponse)
async def score(request: ScoreRequest, service: Ready) -> Response:
    """Scores of contexts and candidates."""
    began = time.perf_counter()
    limits, name = service.config.limits, request.model or service.default_model()
    scorer = service.scorer(name)
    contexts = [
        checked_context(context, limits, f"context {position}")
        for position, context in enumerate(request.contexts)
    ]
    candidates = checked_texts(request.candidates, limits)
    if request.pairs and len(contexts) != len(candidates):
        raise InputError(
            f"pairs need as many contexts as candidates, got {len(contexts)} and {len(candidates)}"
        )
    check_number(len(contexts) if request.pairs else len(contexts) * len(candidates), limits)
    scored = await (score_pairs if request.pairs else score_all)(service.engine, name, contexts, candidates)
    values = scored.scores.values
    calibration = scorer.calibration
    left, right = scored.scores.context_truncated, scored.scores.candidate_truncated
    return respond(
        {
            "model": name,
            "scores": values,
            "probabilities": None if calibration is None else calibration.probabilities(values),
            "usage": usage(scored.tokens),
            "truncated_contexts": truncated(_most(left, 1)),
            "truncated_candidates": truncated(_most(right, 0)),
            "seconds": time.perf_counter() - began,
        }
    )


@router.post("/v1/rank", response_model=RankResponse)
async def rank(request: RankRequest, service: Ready) -> Response:
    """The best candidates for a context, which may have several turns."""
    began = time.perf_counter()
    limits, name = service.config.limits, request.model or service.default_model()
    scorer = service.scorer(name)
    context = checked_context(request.context, limits)
    candidates = checked_texts(request.candidates, limits)
    scored = await score_all(service.engine, name, [context], candidates)
    values = scored.scores.values[0]
    probabilities = None if scorer.calibration is None else scorer.calibration.probabilities(values)
    left, right = (
        np.broadcast_to(counts, scored.scores.values.shape)[0]
        for counts in (scored.scores.context_truncated, scored.scores.candidate_truncated)
    )
    return respond(
        {
            "model": name,
            "kind": scorer.kind,
            "ranking": [
                {
                    "position": position,
                    "score": float(values[position]),
                    "probability": None if probabilities is None else float(probabilities[position]),
                    "text": candidates[position],
                    "context_truncated": int(left[position]),
                    "candidate_truncated": int(right[position]),
                }
                for position in top_k(values, min(request.k, len(candidates))).tolist()
            ],
            "usage": usage(scored.tokens),
            "seconds": time.perf_counter() - began,
        }
    )


@router.post("/v1/explain", response_model=ExplainResponse)
async def explain(request: ExplainRequest, service: Ready) -> Response:
    """How the words of a context and of a candidate contribute to their score."""
    began = time.perf_counter()
    limits, name = service.config.limits, request.model or service.default_model()
    scorer = service.scorer(name)
    context = checked_context(request.context, limits)
    candidate = check_text(request.candidate, "candidate")
    characters = len(as_text(context)) + len(candidate)
    if characters > limits.max_explained_characters:
        raise ProblemError(
            413,
            "too_large",
            f"a pair to explain may have {limits.max_explained_characters:,} characters "
            f"(max_explained_characters), got {characters:,}: shorten it",
            limit="max_explained_characters",
        )
    found = await service.explainer.explain(name, context, candidate, leave_one_out=request.leave_one_out)
    answer = asdict(found)
    del answer["attention"]
    return respond(
        {
            "model": name,
            "kind": scorer.kind,
            **answer,
            "method": found.method.value,
            "seconds": time.perf_counter() - began,
        }
    )


def _most(counts: np.ndarray, axis: int) -> Sequence[int]:
    """The truncated tokens of each text, over all texts of the other side."""
    most: list[int] = (counts if counts.ndim == 1 else counts.max(axis=axis)).tolist()
    return most
