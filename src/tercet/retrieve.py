"""Retriever: a dual encoder, an index of its candidates, and optionally a reranker."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from tercet.arrays import top_k, unit_vectors
from tercet.errors import InputError, OutputError, StaleIndexError
from tercet.files.temporary import OwnTemporaryFolder
from tercet.formats.load import load
from tercet.formats.sources import absolute_source, stored_model
from tercet.index.conditions import Where
from tercet.index.export import export_items
from tercet.index.item_forms import ItemLike, item_of
from tercet.index.items import Item, items_digest
from tercet.index.owners import Owner
from tercet.index.reading import get_items, stored_items
from tercet.index.repair import Encoding, repair
from tercet.index.store import DATABASE, GRAPH_THRESHOLD, Store
from tercet.index.verify import problems
from tercet.inputs import check_choice, check_context, check_contexts, check_count, check_k, check_many
from tercet.records import Certainty, Codes, Context, Floats, Hit, Hits, Ints, Part, Progress, as_text
from tercet.retrieve_async import AsyncRetrieval
from tercet.scorers.cross_scorer import CrossScorer
from tercet.scorers.dual_scorer import DualScorer
from tercet.scorers.scorer import Scorer
from tercet.settings.chunks import ChunkConfig
from tercet.settings.index import MODES, Mode, Storage
from tercet.settings.models import Precision

ADDED_AT_ONCE = 8192
FUSION_DEPTH = 100
"""Minimum number of candidates from each of the two searches of a hybrid search."""
RANK_OFFSET = 60
"""Constant of reciprocal rank fusion (Cormack et al., 2009)."""
RERANK_DEPTH = 50
"""Default number of candidates that are reranked."""
ATTEMPTS = 5
"""Maximum number of attempts, if another process removes candidates during a search."""


class Retriever(AsyncRetrieval):
    """Finds the best of many candidates, which are encoded once and stored in a folder.

    Args:
        scorer: a bi- or poly-encoder, or the name or path of one, which is stored with the index.
        reranker: a cross-encoder that reorders the first candidates, or the name or path of one.
        path: the folder, usually ``*.tercet``. Default: a temporary one, which ``save`` can copy.
        storage: ``float32``, or ``bfloat16`` or ``int8``, which need half and a quarter of the space.
        lexical: whether to build a lexical index (BM25) too.
        chunk: how to split long candidates into chunks, or the number of tokens of a chunk. A candidate is
            then as good as its best chunk. Default: no chunks; a long candidate is truncated.
    """

    def __init__(
        self,
        scorer: Scorer | str | PathLike[str] = "bi",
        *,
        reranker: Scorer | str | PathLike[str] | None = None,
        path: str | PathLike[str] | None = None,
        storage: Storage = "float32",
        lexical: bool = True,
        chunk: ChunkConfig | int | None = None,
        precision: Precision = "fp32",
        device: str | None = None,
    ) -> None:
        model = None if isinstance(scorer, Scorer) else absolute_source(scorer)
        self.scorer = _dual_encoder(scorer, precision, device)
        self.reranker = _reranker(reranker, precision, device)
        self._temporary = OwnTemporaryFolder() if path is None else None
        folder = self._temporary.path / "index.tercet" if self._temporary else Path(path or "")
        self.chunk = _chunk_config(chunk)
        _check_new(folder)
        store = Store.create(
            folder,
            self.scorer.width,
            storage=storage,
            lexical=lexical,
            chunked=self.chunk is not None,
            metadata={
                "kind": self.scorer.kind,
                "fingerprint": self.scorer.fingerprint,
                "model": model,
                "chunk": None if self.chunk is None else asdict(self.chunk),
            },
        )
        self._use(store)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        scorer: Scorer | str | PathLike[str] | None = None,
        *,
        reranker: Scorer | str | PathLike[str] | None = None,
        precision: Precision = "fp32",
        device: str | None = None,
    ) -> Self:
        """The retriever in a folder.

        Args:
            scorer: the model that built the index. Default: the one that is stored with it, if it is on this
                machine; only a model that you pass is downloaded.
            reranker: a cross-encoder that reorders the first candidates, or the name or path of one.
        """
        retriever = cls.__new__(cls)
        store = Store(Path(path))
        retriever.reranker = _reranker(reranker, precision, device)
        retriever._temporary = None
        given = _stored_model(store) if scorer is None else scorer
        retriever.scorer = _dual_encoder(given, precision, device)
        retriever._use(store)
        retriever._check_model()
        chunk = retriever.store.metadata("chunk")
        retriever.chunk = None if chunk is None else ChunkConfig(**chunk)
        return retriever

    def _use(self, store: Store) -> None:
        """Search this store, on the GPU if the model is on one."""
        self.store = store
        scan = self.scorer.device_scan()
        if scan is not None:
            store.scan_with(scan)

    def __len__(self) -> int:
        return len(self.store)

    def __repr__(self) -> str:
        return f"<Retriever {self.path}: {len(self):,} candidates, {self.scorer!r}>"

    def __contains__(self, id_: object) -> bool:
        return isinstance(id_, str) and bool(self.store.database.numbers([id_]))

    def __iter__(self) -> Iterator[Item]:
        """All candidates, in the order in which they were stored; an updated one counts as new."""
        for items in stored_items(self.store.database):
            yield from items.values()

    @property
    def path(self) -> Path:
        """The folder of the index."""
        return self.store.path

    def get(self, id_: str) -> Item:
        """The candidate with an id, which must exist."""
        return get_items(self.store.database, [id_])[0]

    def export(
        self,
        path: str | PathLike[str],
        *,
        vectors: str | PathLike[str] | None = None,
        overwrite: bool = False,
    ) -> int:
        """Write id, text and metadata of each candidate to a JSONL file; returns how many were written.

        Args:
            vectors: an ``.npy`` file for the vectors, in the same order.
        """
        array = None if vectors is None else Path(vectors)
        return export_items(self.store, Path(path), vectors=array, overwrite=overwrite)

    def add(self, candidates: Iterable[ItemLike], *, on_progress: Progress | None = None) -> None:
        """Encode and store candidates, in batches; one without an id gets a number.

        Args:
            candidates: texts, items, or mappings such as ``{"id": "7", "text": "…", "topic": "cards"}``.
            on_progress: called with the number of candidates stored since the last call.
        """
        for items in _batches(check_many(candidates, "candidates")):
            parts = self._parts(items)
            self.store.add(items, self._vectors(items, parts), parts=parts)
            if on_progress is not None:
                on_progress(len(items))

    def build(
        self, candidates: Iterable[ItemLike], *, source: str, on_progress: Progress | None = None
    ) -> None:
        """As ``add``, but an interrupted build of the same candidates is resumed.

        Args:
            source: names the candidates and the settings of the build, for example a file and its columns.
                The candidates that were stored before are read again and must be the same.
        """
        if self.store.metadata("source") not in (None, source):
            raise InputError(f"{self.path} contains a build of other candidates: choose another folder")
        done = self.store.metadata("done") or 0
        rest = iter(candidates)
        digest = items_digest("", _items(islice(rest, done)))
        if done and digest != self.store.metadata("taken_digest"):
            raise InputError(
                f"{self.path} is an unfinished build whose first {done:,} candidates differ from those given "
                "now: give the same candidates, or remove the folder and build it again"
            )
        if on_progress is not None and done:
            on_progress(done)
        for items in _batches(rest, first=done):
            done, digest = done + len(items), items_digest(digest, items)
            progress = {"source": source, "done": done, "taken_digest": digest}
            parts = self._parts(items)
            self.store.add(items, self._vectors(items, parts), parts=parts, store_metadata=progress)
            if on_progress is not None:
                on_progress(len(items))

    def update(self, candidates: Iterable[ItemLike], *, on_progress: Progress | None = None) -> None:
        """Replace candidates that have these ids, and add the others.

        Args:
            candidates: items or mappings with ids. Their metadata changes the values that are stored, and
                None removes one.
            on_progress: called with the number of candidates stored since the last call.
        """
        for items in _batches(check_many(candidates, "candidates"), with_ids=True):
            parts = self._parts(items)
            self.store.update(items, self._vectors(items, parts), parts=parts)
            if on_progress is not None:
                on_progress(len(items))

    def passages(self, candidates: Iterable[ItemLike], *, with_ids: bool = False) -> "Passages":
        """The texts to encode for candidates, for callers that encode elsewhere and then call ``write``.

        Args:
            with_ids: whether each candidate must have an id, as for an update.
        """
        found = _batches(check_many(candidates, "candidates"), with_ids=with_ids)
        items = [item for batch in found for item in batch]
        parts = self._parts(items)
        return Passages(items, parts, _texts(items, parts))

    def write(self, passages: "Passages", vectors: Floats, *, update: bool = False) -> None:
        """Store candidates with the vectors ``[C, D]`` of their passages; ``update`` replaces known ids."""
        write = self.store.update if update else self.store.add
        write(passages.items, self._comparable(vectors), parts=passages.parts)

    def update_metadata(self, metadata: Mapping[str, Mapping[str, Any]]) -> None:
        """Change values in the metadata of candidates, by id; None removes one. Nothing is encoded."""
        self.store.update_metadata(metadata)

    def remove(self, ids: Iterable[str]) -> None:
        """Remove candidates, which must exist."""
        self.store.remove([str(id_) for id_ in check_many(ids, "ids")])

    def compact(self, *, graph_threshold: int = GRAPH_THRESHOLD) -> None:
        """Merge all vectors into one segment, without those that were removed.

        Args:
            graph_threshold: with at least this many vectors, also build an HNSW graph, which makes search
                faster and approximate.
        """
        self.store.compact(graph_threshold=graph_threshold)

    def search(
        self,
        context: Context,
        k: int = 10,
        *,
        mode: Mode = "vectors",
        where: Where | None = None,
        rerank: int | None = None,
        exact: bool = False,
    ) -> Hits:
        """The ``k`` best candidates, best first.

        Args:
            mode: ``vectors`` (by the scorer), ``lexical`` (BM25), or ``hybrid`` (reciprocal rank fusion of
                both).
            where: metadata that a candidate must have, such as ``{"topic": "cards"}``, ``{"topic": ["cards",
                "loans"]}`` (any of them) or ``{"year": {">=": 2020, "<": 2024}}``.
            rerank: how many candidates the reranker reads. Default: 50 with a reranker; 0 turns it off.
            exact: scan all vectors, even if there is a graph.
        """
        check_context(context)
        return self.search_many([context], k, mode=mode, where=where, rerank=rerank, exact=exact)[0]

    def search_many(
        self,
        contexts: Iterable[Context],
        k: int = 10,
        *,
        mode: Mode = "vectors",
        where: Where | None = None,
        rerank: int | None = None,
        exact: bool = False,
    ) -> list[Hits]:
        """The results of ``search`` for each context."""
        queries, k = check_contexts(contexts), check_k(k)
        check_choice("mode", mode, MODES)
        depth = self._rerank_depth(rerank)
        codes = None if mode == "lexical" else self.scorer.encode_contexts(queries)
        results = self.search_codes(queries, codes, max(k, depth), mode=mode, where=where, exact=exact)
        if depth:
            results = [
                self._rerank(context, hits, depth) for context, hits in zip(queries, results, strict=True)
            ]
        return [Hits(hits[:k], hits.certainty) for hits in results]

    def search_codes(
        self,
        contexts: Sequence[Context],
        codes: Codes | None,
        k: int,
        *,
        mode: Mode = "vectors",
        where: Where | None = None,
        exact: bool = False,
    ) -> list[Hits]:
        """The results of ``search`` for contexts that are encoded already, without reranking.

        Args:
            codes: what ``scorer.encode_contexts`` returns; a lexical search needs none.
        """
        k = min(k, max(len(self), 1))
        codes = None if codes is None else Codes(self._comparable(codes.vectors), codes.mask)
        for _ in range(ATTEMPTS):
            subset = self.store.where(where) if where else None
            rankings = self._rankings(contexts, codes, k, mode=mode, subset=subset, exact=exact)
            results = [self._hits(ranking) for ranking in rankings]
            if [len(hits) for hits in results] == [len(ranking.scores) for ranking in rankings]:
                break  # otherwise another process removed a candidate after it was found
        return results

    def save(self, path: str | PathLike[str]) -> Path:
        """Copy the index to a new folder and switch to it."""
        store = self.store.copy(Path(path))
        self.close()
        self._use(store)
        return store.path

    def problems(self) -> list[str]:
        """The problems of the index files, one line each. Reads every byte."""
        return problems(self.store)

    def repair(self, *, accept_loss: bool = False) -> int:
        """Drop broken files and encode their candidates again; returns how many vectors were encoded.

        Args:
            accept_loss: whether to give up candidates that are gone, and metadata that cannot be read.
                Otherwise they raise a ``BrokenIndexError``, after everything else was repaired.
        """
        return repair(self.store, Encoding(self._encoded, self.update), accept_loss=accept_loss)

    def close(self) -> None:
        """Close the files; a temporary folder is deleted."""
        self.store.close()
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_model(self) -> None:
        built_by, given = self.store.metadata("fingerprint"), self.scorer.fingerprint
        if built_by != given:
            raise StaleIndexError(
                f"{self.path} was built by the {self.store.metadata('kind')}-encoder {built_by}, got the "
                f"{self.scorer.kind}-encoder {given}: open it with the model that built it, or rebuild it "
                'with "tercet index build FILE -o NEW.tercet --model MODEL"'
            )

    def _parts(self, items: Sequence[Item]) -> list[list[Part]] | None:
        """The chunks of each candidate; None if the index has no chunks."""
        return None if self.chunk is None else self.scorer.chunks([item.text for item in items], self.chunk)

    def _vectors(self, items: Sequence[Item], parts: Sequence[Sequence[Part]] | None) -> Floats:
        """``[C, D]``: one vector for each candidate, or for each of its chunks."""
        return self._encoded(_texts(items, parts))

    def _encoded(self, texts: Sequence[str]) -> Floats:
        return self._comparable(self.scorer.encode_candidates(texts))

    def _comparable(self, vectors: Floats) -> Floats:
        """The vectors in the form that the index compares: by dot products."""
        return unit_vectors(vectors) if self.scorer.uses_cosine else vectors

    def _rerank_depth(self, rerank: int | None) -> int:
        """The number of candidates to rerank."""
        if rerank is not None and rerank < 0:
            raise InputError(f"rerank must be at least 0, got {rerank}")
        if self.reranker is None and rerank:
            raise InputError("there is no reranker: pass a cross-encoder to the Retriever")
        if self.reranker is None:
            return 0
        return RERANK_DEPTH if rerank is None else rerank

    def _rankings(
        self,
        contexts: Sequence[Context],
        codes: Codes | None,
        k: int,
        *,
        mode: Mode,
        subset: "Ints | None",
        exact: bool,
    ) -> "list[Ranking]":
        """The best candidates of each context, by number."""
        depth = max(k, FUSION_DEPTH) if mode == "hybrid" else k
        lexical = [] if mode == "vectors" else [self._by_terms(one, depth, subset) for one in contexts]
        if codes is None:
            return [Ranking(scores, Certainty.CERTIFIED, {}) for scores in lexical]
        vectors = self._by_vectors(codes, depth, exact=exact, subset=subset)
        if mode == "vectors":
            return vectors
        return [
            Ranking(reciprocal_rank_fusion([one.scores, by_terms], k), Certainty.FUSED, one.parts)
            for one, by_terms in zip(vectors, lexical, strict=True)
        ]

    def _by_vectors(self, codes: Codes, k: int, *, exact: bool, subset: "Ints | None") -> "list[Ranking]":
        """The best candidates by their best vectors.

        Several vectors of one candidate can be among the best, so the search goes deeper until there are
        ``k`` candidates. The first vectors in order then contain the best one of each.
        """
        vectors = None if subset is None else self.store.owners.vectors_of(subset)
        total = max(len(self.store.index()), 1)
        depth = min(k, total)
        while True:
            result = self.store.search(
                codes,
                depth,
                scale=self.scorer.attention_scale,
                exact=exact or not self.scorer.is_on_cpu,  # a GPU scans faster than a CPU walks a graph
                subset=vectors,
            )
            rows = zip(result.ids, result.scores, result.certainty, strict=True)
            rankings = [self._by_candidate(*row, k=k) for row in rows]
            if depth == total or all(len(one.scores) == k for one in rankings):
                return rankings
            depth = min(2 * depth, total)

    def _by_candidate(self, ids: Ints, scores: Floats, certainty: Certainty, *, k: int) -> "Ranking":
        """The first ``k`` candidates of vectors in order; a vector that was just removed counts as one."""
        found = ids[ids >= 0]
        owners = self.store.owners.owners(found)
        ranking = Ranking({}, certainty, {})
        for number, score in zip(found.tolist(), scores.tolist(), strict=False):
            owner = owners.get(number, Owner(-1 - number, None))
            if owner.candidate not in ranking.scores and len(ranking.scores) < k:
                ranking.scores[owner.candidate] = score * self.scorer.score_scale
                ranking.parts[owner.candidate] = owner.part
        return ranking

    def _by_terms(self, context: Context, k: int, subset: "Ints | None") -> dict[int, float]:
        if subset is None:
            return dict(self.store.search_lexical(as_text(context), k))
        allowed = set(subset.tolist())
        found = self.store.search_lexical(as_text(context), max(len(self), 1))
        return dict(islice(((number, score) for number, score in found if number in allowed), k))

    def _hits(self, ranking: "Ranking") -> Hits:
        items = self.store.items(np.fromiter(ranking.scores, dtype=np.int64))
        hits = (
            Hit(item.id, item.text, score, item.metadata or {}, ranking.parts.get(number))
            for number, score in ranking.scores.items()
            if (item := items.get(number)) is not None
        )
        return Hits(tuple(hits), ranking.certainty)

    def _rerank(self, context: Context, hits: Hits, count: int) -> Hits:
        """The first hits in the order and with the scores of the reranker, then the others."""
        if self.reranker is None or not hits:
            return hits
        parts = self.parts_to_rerank(hits[:count])
        scores = self.reranker.score(context, [part.passage for part in parts])
        return reranked(hits, parts, scores, count)

    def parts_to_rerank(self, hits: Sequence[Hit]) -> list[Hit]:
        """The hits, once for each chunk of their text, which a reranker is to read."""
        if self.chunk is None:
            return [replace(hit, part=None) for hit in hits]
        chunks = self.scorer.chunks([hit.text for hit in hits], self.chunk) if hits else []
        return [replace(hit, part=part) for hit, of in zip(hits, chunks, strict=True) for part in of]


class Passages(NamedTuple):
    """Candidates, their chunks if the index has any, and the texts that are encoded."""

    items: list[Item]
    parts: list[list[Part]] | None
    texts: list[str]


def reranked(hits: Hits, parts: Sequence[Hit], scores: Floats, count: int) -> Hits:
    """The first ``count`` hits in the order of a reranker, each with its best part, then the others.

    Args:
        parts: what the reranker read, as ``Retriever.parts_to_rerank`` returns it.
        scores: one for each part.
    """
    best: dict[str, Hit] = {}
    for position in top_k(scores, len(parts)).tolist():
        part = parts[position]
        best.setdefault(part.id, replace(part, score=float(scores[position])))
    return Hits((*best.values(), *hits[count:]), Certainty.RERANKED)


def _texts(items: Sequence[Item], parts: Sequence[Sequence[Part]] | None) -> list[str]:
    """The texts to encode: those of candidates, or of their chunks."""
    if parts is None:
        return [item.text for item in items]
    return [item.text[part.start : part.end] for item, of in zip(items, parts, strict=True) for part in of]


class Ranking(NamedTuple):
    """Scores by the numbers of candidates, best first, how certain they are, and the best parts."""

    scores: dict[int, float]
    certainty: Certainty
    parts: dict[int, Part | None]


def reciprocal_rank_fusion(rankings: Sequence[Mapping[int, float]], k: int) -> dict[int, float]:
    """The ``k`` best candidates of several rankings, by the sum of 1 / (60 + rank) over the rankings.

    Args:
        rankings: scores by candidate, best first; only the order counts.
    """
    fused: dict[int, float] = {}
    for ranking in rankings:
        for rank, number in enumerate(ranking, start=1):
            fused[number] = fused.get(number, 0.0) + 1 / (RANK_OFFSET + rank)
    return dict(sorted(fused.items(), key=lambda entry: (-entry[1], entry[0]))[:k])


def _batches(candidates: Iterable[object], *, first: int = 0, with_ids: bool = False) -> Iterator[list[Item]]:
    """The candidates as items, in batches; a plain text has no id yet.

    Args:
        first: the position of the first candidate, for messages.
        with_ids: whether each candidate must have an id.
    """
    numbered = enumerate(_items(candidates, first), start=first)
    while batch := list(islice(numbered, ADDED_AT_ONCE)):
        for position, item in batch:
            if with_ids and not item.id:
                raise InputError(
                    f"candidate {position} has no id, which an update needs: give it one (--id-column names "
                    "the column)"
                )
        yield [item for _, item in batch]


def _items(candidates: Iterable[object], first: int = 0) -> Iterator[Item]:
    return (item_of(candidate, position) for position, candidate in enumerate(candidates, start=first))


def _stored_model(store: Store) -> Path:
    """The folder of the model that built an index; it is never downloaded."""
    source = store.metadata("model")
    if source is None:
        raise InputError(f"{store.path} does not name the model that built it: pass that model too")
    return stored_model(source, stored_in=store.path, option="--model")


def _reranker(
    source: Scorer | str | PathLike[str] | None, precision: Precision, device: str | None
) -> Scorer | None:
    if source is None or isinstance(source, Scorer):
        return source
    return load(source, precision=precision, device=device)


def _chunk_config(chunk: ChunkConfig | int | None) -> ChunkConfig | None:
    if chunk is None or isinstance(chunk, ChunkConfig):
        return chunk
    return ChunkConfig(size=check_count("chunk", chunk))


def _check_new(path: Path) -> None:
    """Raise if the folder is an index already."""
    if (path / DATABASE).is_file():
        raise OutputError(
            f'{path} is an index: open it with tercet.Retriever.open("{path}"), or choose another path'
        )


def _dual_encoder(
    source: Scorer | str | PathLike[str], precision: Precision, device: str | None
) -> DualScorer:
    """The scorer, if codes of contexts and vectors of candidates determine its scores."""
    scorer = source if isinstance(source, Scorer) else load(source, precision=precision, device=device)
    if isinstance(scorer, CrossScorer):
        raise InputError(
            "a cross-encoder has no vectors to index: pass it as the reranker of a bi- or poly-encoder"
        )
    if not isinstance(scorer, DualScorer):
        raise InputError(f"an index needs a bi- or poly-encoder, got {type(scorer).__name__}")
    scorer.check_asymmetric()
    return scorer
