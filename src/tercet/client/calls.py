"""The requests of each method, and how their answers are read. Nothing here sends anything."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from tercet.client import answers
from tercet.client.results import IndexInfo, ModelInfo, Reranked, Written
from tercet.errors import InputError
from tercet.index.item_forms import ItemLike, item_of
from tercet.inputs import (
    check_candidates,
    check_choice,
    check_context,
    check_contexts,
    check_count,
    check_k,
    check_many,
    check_pairs,
    check_string,
    check_text,
)
from tercet.records import Context, Explanation, Floats, Hits, Ranked
from tercet.settings.index import Mode
from tercet.settings.models import SIDES, Side

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request."""

    path: str
    body: bytes | None = None
    """JSON for a POST; None: a GET."""
    changes: int = 0
    """How many candidates of an index it changes."""
    repeatable: bool = True
    """Whether it may be sent again if it is not known whether the server has executed it."""
    accepted: tuple[int, ...] = (200,)
    """Statuses of answers that are not errors."""
    retried: bool = True
    """Whether it is sent again at all."""


@dataclass(frozen=True, slots=True)
class Call(Generic[Result]):
    """What a method of a client sends, and what it returns."""

    requests: Sequence[Request]
    read: Callable[[Sequence[Any]], Result]
    """From the JSON of the answers, in the order of the requests."""

    @property
    def in_order(self) -> bool:
        """Whether a request must wait for the one before: candidates are stored in the given order."""
        return any(request.changes for request in self.requests)


@dataclass(frozen=True, slots=True)
class BatchSize:
    """How much of a long list one request holds."""

    texts: int
    bytes: int


def embed(
    texts: Iterable[str], size: BatchSize, *, model: str | None, side: Side, dimensions: int | None
) -> Call[Floats]:
    """Vectors of texts, in as many requests as needed."""
    check_choice("side", side, SIDES)
    if dimensions is not None:
        check_count("dimensions", dimensions)
    checked = [
        check_text(text, f"text {position}") for position, text in enumerate(check_many(texts, "texts"))
    ]
    if not checked:
        raise InputError("there are no texts: give at least one")
    given = {"model": model, "input_type": side, "dimensions": dimensions, "encoding_format": "base64"}
    requests = [
        Request("/v1/embeddings", _json(_without_none(given) | {"input": part}))
        for part in _split(checked, size)
    ]
    return Call(requests, partial(answers.vectors, count=len(checked)))


def rerank(
    query: Context, documents: Iterable[str], *, top_n: int | None, model: str | None
) -> Call[list[Reranked]]:
    """Documents in the order of their relevance."""
    texts = check_candidates(documents)
    if top_n is not None:
        check_count("top_n", top_n)
    body = {"query": check_context(query, "query"), "documents": texts, "top_n": top_n, "model": model}
    return Call([_post("/v2/rerank", body)], partial(answers.reranking, documents=texts))


def score(context: Context, candidates: Iterable[str], *, model: str | None) -> Call[Floats]:
    """``[C]``: the scores of candidates for one context."""
    body = {"contexts": [check_context(context)], "candidates": check_candidates(candidates), "model": model}
    return Call([_post("/v1/score", body)], lambda found: answers.scores(found)[0])


def score_many(contexts: Iterable[Context], candidates: Iterable[str], *, model: str | None) -> Call[Floats]:
    """``[B, C]``: the scores of every context against every candidate."""
    body = {"contexts": check_contexts(contexts), "candidates": check_candidates(candidates), "model": model}
    return Call([_post("/v1/score", body)], answers.scores)


def score_pairs(contexts: Iterable[Context], candidates: Iterable[str], *, model: str | None) -> Call[Floats]:
    """``[B]``: the score of each context and the candidate at its position."""
    left, right = check_pairs(contexts, candidates)
    body = {"contexts": left, "candidates": right, "pairs": True, "model": model}
    return Call([_post("/v1/score", body)], answers.scores)


def rank(context: Context, candidates: Iterable[str], k: int, *, model: str | None) -> Call[list[Ranked]]:
    """The best candidates."""
    body = {"candidates": check_candidates(candidates), "k": check_k(k), "model": model}
    return Call([_post("/v1/rank", body | {"context": check_context(context)})], answers.ranking)


def explain(context: Context, candidate: str, *, leave_one_out: bool, model: str | None) -> Call[Explanation]:
    """How words contribute to a score."""
    body = {"context": check_context(context), "candidate": check_text(candidate, "candidate")}
    return Call(
        [_post("/v1/explain", body | {"leave_one_out": leave_one_out, "model": model})], answers.explanation
    )


def search(
    index: str,
    context: Context,
    k: int,
    *,
    mode: Mode,
    where: Mapping[str, Any] | None,
    rerank: int | None,
    exact: bool,
) -> Call[Hits]:
    """The best candidates of an index."""
    check_string("index", index)
    body = {"index": index, "context": check_context(context), "k": check_k(k), "mode": mode}
    body |= {"where": where, "rerank": rerank, "exact": exact}
    return Call([_post("/v1/search", body)], answers.hits)


def add(index: str, candidates: Iterable[ItemLike], size: BatchSize) -> Call[Written]:
    """New candidates. Without ids they would be added twice if a request were executed twice."""
    return _write(index, "add", candidates, size)


def update(index: str, candidates: Iterable[ItemLike], size: BatchSize) -> Call[Written]:
    """Candidates that replace those with their ids, which are needed."""
    return _write(index, "update", candidates, size)


def remove(index: str, ids: Iterable[str], size: BatchSize) -> Call[Written]:
    """Ids of candidates to remove."""
    texts = [check_text(each, f"id {position}") for position, each in enumerate(check_many(ids, "ids"))]
    if not texts:
        raise InputError("there are no ids: give at least one")
    requests = [
        Request(_index_path(index, "remove"), _json({"ids": part}), changes=len(part))
        for part in _split(texts, size)
    ]
    return Call(requests, answers.written)


def models() -> Call[list[ModelInfo]]:
    """The models of the server."""
    return Call([Request("/v1/models")], answers.model_list)


def indexes() -> Call[list[IndexInfo]]:
    """The indexes of the server."""
    return Call([Request("/v1/indexes")], answers.index_list)


def ready() -> Call[bool]:
    """Whether the models are loaded."""
    request = Request("/health/ready", accepted=(200, 503), retried=False)
    return Call([request], lambda found: bool(found[0]["status"] == "ready"))


def _write(index: str, action: str, candidates: Iterable[ItemLike], size: BatchSize) -> Call[Written]:
    items = [item_of(each, position) for position, each in enumerate(check_many(candidates, "candidates"))]
    if not items:
        raise InputError("there are no candidates: give at least one")
    for position, item in enumerate(items):
        if action == "update" and not item.id:
            raise InputError(f"candidate {position} has no id: an update needs the ids of all candidates")
    values = [
        _without_none({"id": each.id or None, "text": each.text, "metadata": each.metadata}) for each in items
    ]
    requests = [
        Request(
            _index_path(index, action),
            _json({"candidates": part}),
            changes=len(part),
            repeatable=all("id" in each for each in part),
        )
        for part in _split(values, size)
    ]
    return Call(requests, answers.written)


def _index_path(index: str, action: str) -> str:
    check_string("index", index)
    return f"/v1/indexes/{quote(index, safe='')}/{action}"


def _post(path: str, body: Mapping[str, Any]) -> Request:
    return Request(path, _json(_without_none(body)))


def _without_none(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _json(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the request cannot be written as JSON: {error}") from None


def _plain(value: Any) -> Any:
    """Mappings as dicts, and numbers of numpy as Python's."""
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is neither text, number, list nor mapping")


def _split(values: Sequence[Any], size: BatchSize) -> Iterator[list[Any]]:
    """Parts of a list, in order: each within the limits, or a single value beyond them."""
    part: list[Any] = []
    room = size.bytes
    for value in values:
        length = len(_json(value))
        if part and (len(part) == size.texts or length > room):
            yield part
            part, room = [], size.bytes
        part.append(value)
        room -= length
    if part:
        yield part
