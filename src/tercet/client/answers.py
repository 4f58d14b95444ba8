"""Answers of the server as records."""

import warnings
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from tercet.client.results import IndexInfo, ModelInfo, Reranked, Written
from tercet.errors import TruncationWarning
from tercet.records import (
    Certainty,
    CodeShare,
    Explanation,
    ExplanationMethod,
    Floats,
    Hit,
    Hits,
    Part,
    Ranked,
    TokenShare,
)

Record = TypeVar("Record")


def vectors(answers: Sequence[Any], count: int) -> Floats:
    """``[N, D]``: the vectors of all answers, which hold them as float32 in base64.

    Args:
        count: N, as many as texts were sent.
    """
    for answer in answers:
        _warn_of_truncated(answer["truncated"], answer["model"])
    rows = [
        np.frombuffer(b64decode(each["embedding"]), dtype="<f4")
        for answer in answers
        for each in answer["data"]
    ]
    if len(rows) != count:
        raise ValueError(f"{count} texts have {len(rows)} vectors")
    return np.stack(rows).astype(np.float32, copy=False)


def scores(answers: Sequence[Any]) -> Floats:
    """``[B, C]``, or ``[B]`` for pairs."""
    (answer,) = answers
    truncated = [*answer["truncated_contexts"], *answer["truncated_candidates"]]
    _warn_of_truncated(truncated, answer["model"])
    return np.array(answer["scores"], dtype=np.float32)


def ranking(answers: Sequence[Any]) -> list[Ranked]:
    """The candidates, best first."""
    return [_record(Ranked, each) for each in answers[0]["ranking"]]


def reranking(answers: Sequence[Any], documents: Sequence[str]) -> list[Reranked]:
    """The documents, best first."""
    truncated = {each["index"]: each["tokens"] for each in answers[0]["truncated"]}
    return [
        Reranked(
            position=each["index"],
            score=each["score"],
            relevance=each["relevance_score"],
            text=documents[each["index"]],
            truncated=truncated.get(each["index"], 0),
        )
        for each in answers[0]["results"]
    ]


def explanation(answers: Sequence[Any]) -> Explanation:
    """The explanation, without ``attention``, which the server does not send."""
    (answer,) = answers
    given = {each.name: answer[each.name] for each in fields(Explanation) if each.name in answer}
    changed = {
        "method": ExplanationMethod(answer["method"]),
        "codes": tuple(_record(CodeShare, each) for each in answer["codes"]),
        "tokens": tuple(_record(TokenShare, each) for each in answer["tokens"]),
        "candidate_tokens": tuple(_record(TokenShare, each) for each in answer["candidate_tokens"]),
        "notes": tuple(answer["notes"]),
        "attention": np.zeros((0, 0), dtype=np.float32),
    }
    return Explanation(**(given | changed))


def hits(answers: Sequence[Any]) -> Hits:
    """The candidates that were found, best first."""
    (answer,) = answers
    if answer["context_truncated"]:
        _warn_of_truncated([answer], answer["model"])
    found = (
        _record(Hit, each | {"part": None if each["part"] is None else _record(Part, each["part"])})
        for each in answer["hits"]
    )
    return Hits(tuple(found), Certainty(answer["certainty"]))


def written(answers: Sequence[Any]) -> Written:
    """The sum of all changes, and the size after the last."""
    last = answers[-1]
    return Written(last["index"], sum(each["changed"] for each in answers), last["size"])


def model_list(answers: Sequence[Any]) -> list[ModelInfo]:
    """The models."""
    return [_record(ModelInfo, each) for each in answers[0]["data"]]


def index_list(answers: Sequence[Any]) -> list[IndexInfo]:
    """The indexes."""
    return [_record(IndexInfo, each) for each in answers[0]["data"]]


def _record(kind: type[Record], answer: dict[str, Any]) -> Record:
    """A record from the fields that it has: a newer server may send more."""
    names = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: answer[name] for name in names})


def _warn_of_truncated(truncated: Sequence[Any], model: str) -> None:
    if truncated:
        warnings.warn(
            f"some texts are longer than the model {model} reads, and were truncated",
            TruncationWarning,
            stacklevel=2,
        )
