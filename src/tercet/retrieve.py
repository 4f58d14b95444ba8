"""Retriever: a dual encoder, an index of candidates, and perhaps a cross-encoder that has the last word."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple, Self, TypeAlias, TypeVar, get_args

import numpy as np

from tercet.config import Precision
from tercet.errors import InputError, StaleIndexError
from tercet.index.items import Item
from tercet.index.repair import problems, repair
from tercet.index.segment import Storage
from tercet.index.store import GRAPH_FROM, Store
from tercet.inputs import check_choice, check_context, check_contexts, check_many, check_text, check_top
from tercet.models.cross import CrossEncoder
from tercet.models.dual import DualEncoder
from tercet.models.load import load
from tercet.models.scorer import Scorer, best
from tercet.models.sources import lasting_name
from tercet.records import Codes, Context, Counts, Floats, Hit, Hits, as_text

Mode: TypeAlias = Literal["vectors", "words", "both"]
MODES: tuple[Mode, ...] = get_args(Mode)

T = TypeVar("T")

ADDED_AT_ONCE = 8192
FUSED = 100
"""How many each of vectors and words may name where both are asked."""
RANK_OFFSET = 60
"""Of reciprocal rank fusion (Cormack et al., 2009): a candidate gains 1 / (60 + its rank)."""
RERANKED = 50
ATTEMPTS = 5
"""How often a search is done again because a candidate that it found was removed meanwhile."""


class Retriever:
    """Finds the best of many candidates, which are encoded once and kept in a folder.

    Args:
        scorer: a bi- or poly-encoder, or where one lies, which is remembered.
        reranker: a cross-encoder that reads the best again, together with the context.
        path: the folder, usually ``*.tercet``; without one, a temporary one that ``save`` can keep.
        storage: how vectors are kept: ``float32``, or ``bfloat16`` or ``int8``, which take less.
        words: whether candidates are found by their words too.
    """

    def __init__(
        self,
        scorer: Scorer | str | PathLike[str] = "bi",
        *,
        reranker: Scorer | None = None,
        path: str | PathLike[str] | None = None,
        storage: Storage = "float32",
        words: bool = True,
        precision: Precision = "fp32",
        device: str | None = None,
    ) -> None:
        model = None if isinstance(scorer, Scorer) else lasting_name(scorer)
        self.scorer = opened(scorer, precision, device)
        self.reranker = reranker
        self._temporary = TemporaryDirectory(prefix="tercet-") if path is None else None
        folder = Path(self._temporary.name) / "index.tercet" if self._temporary else Path(path or "")
        facts = {"kind": self.scorer.kind, "fingerprint": self.scorer.fingerprint, "model": model}
        self.store = Store.create(folder, self.scorer.width, storage=storage, words=words, facts=facts)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        scorer: Scorer | str | PathLike[str] | None = None,
        *,
        reranker: Scorer | None = None,
        precision: Precision = "fp32",
        device: str | None = None,
    ) -> Self:
        """A retriever that was saved.

        Args:
            scorer: the model that made it, or where that lies; by default where it lay then.
        """
        retriever = cls.__new__(cls)
        retriever.store, retriever.reranker = Store(Path(path)), reranker
        retriever._temporary = None
        source = retriever.store.fact("model") if scorer is None else scorer
        if source is None:
            raise InputError(f"{path} does not say where its model lies: give the model too")
        retriever.scorer = opened(source, precision, device)
        retriever._check_model()
        return retriever

    def _check_model(self) -> None:
        made, asks = self.store.fact("fingerprint"), self.scorer.fingerprint
        if made != asks:
            raise StaleIndexError(
                f"{self.path} was built by the {self.store.fact('kind')}-encoder {made}, and is asked by the "
                f"{self.scorer.kind}-encoder {asks}: open it with the model that built it, or build it anew "
                'with "tercet index build FILE -o NEW.tercet --model MODEL"'
            )

    def __len__(self) -> int:
        return len(self.store)

    @property
    def path(self) -> Path:
        """The folder."""
        return self.store.path

    def add(
        self,
        candidates: Iterable[str | Item],
        *,
        on_progress: Callable[[int], None] | None = None,
    ) -> None:
        """Encode candidates and keep them, some thousands at a time; one without an id gets a number.

        Args:
            on_progress: called with the number of candidates that were kept since the last call.
        """
        for part in in_parts(check_many(candidates, "candidates"), ADDED_AT_ONCE):
            items = list(_items(part))
            self.store.add(items, self._vectors(items))
            if on_progress is not None:
                on_progress(len(items))

    def build(
        self,
        candidates: Iterable[str | Item],
        *,
        source: str,
        on_progress: Callable[[int], None] | None = None,
    ) -> None:
        """As ``add``; a build of the same source that was interrupted goes on where it stopped.

        Args:
            source: what the candidates are, such as a file's digest.
        """
        begun = self.store.fact("source")
        if begun not in (None, source):
            raise InputError(f"{self.path} was begun with other candidates: choose another folder")
        done = self.store.fact("done") or 0
        if on_progress is not None and done:
            on_progress(done)
        for part in in_parts(islice(candidates, done, None), ADDED_AT_ONCE):
            items = list(_items(part))
            done += len(items)
            self.store.add(items, self._vectors(items), facts={"source": source, "done": done})
            if on_progress is not None:
                on_progress(len(items))

    def update(self, candidates: Iterable[Item], *, on_progress: Callable[[int], None] | None = None) -> None:
        """Put candidates in the place of those that have their ids, and beside the others."""
        for part in in_parts(check_many(candidates, "candidates"), ADDED_AT_ONCE):
            items = list(_items(part))
            self.store.update(items, self._vectors(items))
            if on_progress is not None:
                on_progress(len(items))

    def remove(self, ids: Iterable[str]) -> None:
        """Take out candidates that are there."""
        self.store.remove([str(id_) for id_ in check_many(ids, "ids")])

    def compact(self, *, graph_from: int = GRAPH_FROM) -> None:
        """Put all vectors together, without those removed; if there are many, in a graph that is quick."""
        self.store.compact(graph_from=graph_from)

    def search(
        self,
        context: Context,
        k: int = 10,
        *,
        mode: Mode = "vectors",
        where: Mapping[str, Any] | None = None,
        rerank: int | None = None,
        exact: bool = False,
    ) -> Hits:
        """The ``k`` best candidates.

        Args:
            mode: ``vectors`` (the scorer's), ``words`` (BM25), or ``both``, by the sum of reciprocal ranks.
            where: metadata that a candidate must have; a list means any of its values.
            rerank: how many of the best the reranker reads again; 50 where there is one, 0 to leave it out.
            exact: look at every vector, even where there is a graph.
        """
        check_context(context)
        return self.search_many([context], k, mode=mode, where=where, rerank=rerank, exact=exact)[0]

    def search_many(
        self,
        contexts: Iterable[Context],
        k: int = 10,
        *,
        mode: Mode = "vectors",
        where: Mapping[str, Any] | None = None,
        rerank: int | None = None,
        exact: bool = False,
    ) -> list[Hits]:
        """As ``search``, for each context."""
        asked, k = check_contexts(contexts), check_top(k)
        check_choice("mode", mode, MODES)
        if rerank and self.reranker is None:
            raise InputError("there is no reranker: give the Retriever a cross-encoder")
        if rerank is not None and rerank < 0:
            raise InputError(f"rerank must be at least 0, got {rerank}")
        again = 0 if self.reranker is None else RERANKED if rerank is None else rerank
        codes = None if mode == "words" else self._codes(asked)
        for _ in range(ATTEMPTS):
            among = None if where is None else self.store.where(where)
            found = self._named(asked, codes, max(k, again), mode=mode, among=among, exact=exact)
            hits = [self._hits(named) for named in found]
            if all(len(each) == len(named.scores) for each, named in zip(hits, found, strict=True)):
                break  # otherwise somebody has removed a candidate since it was found
        if again:
            hits = [self._reranked(context, each, again) for context, each in zip(asked, hits, strict=True)]
        return [Hits(each[:k], each.certainty) for each in hits]

    def save(self, path: str | PathLike[str]) -> Path:
        """Keep everything in a new folder, and go on there."""
        store = self.store.copy(Path(path))
        self.close()
        self.store = store
        return store.path

    def problems(self) -> list[str]:
        """What is wrong with the folder's files; every byte is read."""
        return problems(self.store)

    def repair(self) -> int:
        """Make the vectors of broken files again; gives how many."""
        return repair(self.store, lambda texts: self._encoded(texts))

    def close(self) -> None:
        """Give the files back; a temporary folder is gone then."""
        self.store.close()
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _vectors(self, items: Sequence[Item]) -> Floats:
        return self._encoded([item.text for item in items])

    def _encoded(self, texts: Sequence[str]) -> Floats:
        vectors = self.scorer.encode_candidates(texts)
        return unit(vectors) if self.scorer.by_angle else vectors

    def _codes(self, contexts: Sequence[Context]) -> Codes:
        codes = self.scorer.encode_contexts(contexts)
        return Codes(unit(codes.vectors), codes.mask) if self.scorer.by_angle else codes

    def _named(
        self,
        contexts: Sequence[Context],
        codes: Codes | None,
        k: int,
        *,
        mode: Mode,
        among: "Counts | None",
        exact: bool,
    ) -> "list[Named]":
        """The best candidates of each context, by their numbers."""
        most = k if mode != "both" else max(k, FUSED)
        words = [] if mode == "vectors" else [self._by_words(context, most, among) for context in contexts]
        if codes is None:
            return [Named(scores, "certified") for scores in words]
        vectors = self._by_vectors(codes, most, exact=exact, among=among)
        if mode == "vectors":
            return vectors
        both = zip(vectors, words, strict=True)
        return [Named(fused([named.scores, scores], k), "fused") for named, scores in both]

    def _by_vectors(self, codes: Codes, k: int, *, exact: bool, among: "Counts | None") -> "list[Named]":
        found = self.store.search(codes, k, scale=self.scorer.attention_scale, exact=exact, among=among)
        times = self.scorer.score_scale
        return [
            Named({int(n): float(s) * times for n, s in zip(ids, scores, strict=True) if n >= 0}, certainty)
            for ids, scores, certainty in zip(found.ids, found.scores, found.certainty, strict=True)
        ]

    def _by_words(self, context: Context, k: int, among: "Counts | None") -> dict[int, float]:
        if among is None:
            return dict(self.store.search_words(as_text(context), k))
        allowed = set(among.tolist())
        found = self.store.search_words(as_text(context), max(len(self), 1))
        return dict(islice(((n, score) for n, score in found if n in allowed), k))

    def _hits(self, named: "Named") -> Hits:
        items = self.store.items(np.fromiter(named.scores, dtype=np.int64))
        ordered = ((items[number], score) for number, score in named.scores.items() if number in items)
        return Hits(
            tuple(Hit(item.id, item.text, score, item.metadata) for item, score in ordered), named.certainty
        )

    def _reranked(self, context: Context, hits: Hits, count: int) -> Hits:
        """The best of ``hits`` in the order of the reranker, with its scores; the others as they were."""
        if self.reranker is None or not hits:
            return hits
        read = hits[:count]
        scores = self.reranker.score(context, [hit.text for hit in read])
        order = best(scores, len(read)).tolist()
        again = (replace(read[place], score=float(scores[place])) for place in order)
        return Hits((*again, *hits[count:]), "reranked")


class Named(NamedTuple):
    """Scores by the numbers of candidates, the best first, and how certain they are."""

    scores: dict[int, float]
    certainty: str


def in_parts(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """The values, so many at a time."""
    left = iter(values)
    while part := list(islice(left, size)):
        yield part


def _items(candidates: Sequence[object]) -> Iterator[Item]:
    """Candidates as items; a plain text has no id yet."""
    for place, candidate in enumerate(candidates):
        if isinstance(candidate, Item):
            check_text(candidate.text, f"candidate {candidate.id or place!r}")
            yield candidate
        else:
            yield Item("", check_text(candidate, f"candidate {place}"))


def fused(rankings: Sequence[Mapping[int, float]], k: int) -> dict[int, float]:
    """Reciprocal rank fusion: the ``k`` candidates that gain the most 1 / (60 + rank) over all rankings."""
    gains: dict[int, float] = {}
    for ranking in rankings:
        for rank, number in enumerate(ranking, start=1):
            gains[number] = gains.get(number, 0.0) + 1 / (RANK_OFFSET + rank)
    return dict(sorted(gains.items(), key=lambda gain: (-gain[1], gain[0]))[:k])


def unit(vectors: Floats) -> Floats:
    """Vectors of length 1; zeros stay."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    made: Floats = vectors / np.maximum(lengths, 1e-12)
    return made


def opened(source: Scorer | str | PathLike[str], precision: Precision, device: str | None) -> DualEncoder:
    """A dual encoder whose scores come from codes and vectors alone."""
    scorer = source if isinstance(source, Scorer) else load(source, precision=precision, device=device)
    if isinstance(scorer, CrossEncoder):
        raise InputError(
            "nothing of a cross-encoder can be kept: give it as reranker, beside a bi- or poly-encoder"
        )
    if not isinstance(scorer, DualEncoder):
        raise InputError(f"an index needs a bi- or poly-encoder, got {type(scorer).__name__}")
    scorer.check_one_way()
    return scorer
