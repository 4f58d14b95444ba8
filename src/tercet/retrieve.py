"""Retriever: a dual encoder, an index of its candidates, and optionally a reranker."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from tercet.arrays import top_k, unit_vectors
from tercet.errors import InputError, StaleIndexError
from tercet.files.temporary import OwnTemporaryFolder
from tercet.formats.load import load
from tercet.formats.sources import absolute_source, stored_model
from tercet.index.conditions import Where
from tercet.index.folder import FolderStore
from tercet.index.item_forms import ItemLike, item_of
from tercet.index.items import Item, items_digest
from tercet.index.opening import create_store, display, is_address, open_store
from tercet.index.protocol import CandidateStore, Encoding, View
from tercet.index.ranking import Ranking, reciprocal_rank_fusion
from tercet.index.store import GRAPH_THRESHOLD
from tercet.inputs import check_choice, check_context, check_contexts, check_count, check_k, check_many
from tercet.records import Certainty, Codes, Context, Floats, Hit, Hits, Part, Progress, as_text
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
RERANK_DEPTH = 50
"""Default number of candidates that are reranked."""
ATTEMPTS = 5
"""Maximum number of attempts, if another process removes candidates during a search."""

Source: TypeAlias = Scorer | str | PathLike[str]
"""A scorer, or the name or path of one."""


class Retriever(AsyncRetrieval):
    """Finds the best of many candidates, which are encoded once and stored in a folder or a database.

    Args:
        scorer: a bi- or poly-encoder, or the name or path of one, which is stored with the index.
        reranker: a cross-encoder that reorders the first candidates, or the name or path of one.
        path: the folder, usually ``*.tercet``. Default: a temporary one, which ``save`` can copy.
        index: the address of an index in a database, such as ``postgresql://user@host/database/faq``, instead
            of a folder.
        storage: ``float32``, or ``bfloat16`` or ``int8``, which need half and a quarter of the space. A
            database has ``float32`` and ``float16``.
        lexical: whether to build a lexical index (BM25) too. Default: if tantivy is installed; a database
            does not need it.
        chunk: how to split long candidates into chunks, or the number of tokens of a chunk. A candidate is
            then as good as its best chunk. Default: no chunks; a long candidate is truncated.
    """

    def __init__(
        self,
        scorer: Source = "bi",
        *,
        reranker: Source | None = None,
        path: str | PathLike[str] | None = None,
        index: str | None = None,
        storage: Storage = "float32",
        lexical: bool | None = None,
        chunk: ChunkConfig | int | None = None,
        precision: Precision = "fp32",
        device: str | None = None,
    ) -> None:
        model = None if isinstance(scorer, Scorer) else absolute_source(scorer)
        self.scorer = dual_encoder(scorer, precision, device)
        self.reranker = _reranker(reranker, precision, device)
        self.chunk = _chunk_config(chunk)
        given = _one_place(path, index)
        self._temporary = OwnTemporaryFolder() if given is None else None
        place = self._temporary.path / "index.tercet" if self._temporary else given
        self.store: CandidateStore = create_store(
            place or "",
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
        self._search_on_device()

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        scorer: Source | None = None,
        *,
        reranker: Source | None = None,
        precision: Precision = "fp32",
        device: str | None = None,
    ) -> Self:
        """The retriever in a folder or a database.

        Args:
            path: the folder, or the address of an index in a database.
            scorer: the model that built the index. Default: the one that is stored with it, if it is on this
                machine; only a model that you pass is downloaded.
            reranker: a cross-encoder that reorders the first candidates, or the name or path of one.
        """
        retriever = cls.__new__(cls)
        retriever.store = open_store(path)
        retriever.reranker = _reranker(reranker, precision, device)
        retriever._temporary = None
        given = _stored_model(retriever.store) if scorer is None else scorer
        retriever.scorer = dual_encoder(given, precision, device)
        retriever._search_on_device()
        retriever._check_model()
        chunk = retriever.store.metadata("chunk")
        retriever.chunk = None if chunk is None else ChunkConfig(**chunk)
        return retriever

    def _search_on_device(self) -> None:
        """Search a folder on the GPU, if the model is on one."""
        scan = self.scorer.device_scan()
        if scan is not None and isinstance(self.store, FolderStore):
            self.store.scan_with(scan)

    def __len__(self) -> int:
        return len(self.store)

    def __repr__(self) -> str:
        return f"<Retriever {self.name}: {len(self):,} candidates, {self.scorer!r}>"

    def __contains__(self, id_: object) -> bool:
        return isinstance(id_, str) and self.store.contains(id_)

    def __iter__(self) -> Iterator[Item]:
        """All candidates, in the order in which they were stored; an updated one counts as new."""
        return iter(self.store)

    @property
    def name(self) -> str:
        """The folder of the index, or its address without secrets."""
        return self.store.name

    @property
    def path(self) -> Path:
        """The folder of the index; one in a database has none."""
        if is_address(self.name):
            raise InputError(f"{self.name} has no folder: use name instead of path")
        return Path(self.name)

    def get(self, id_: str) -> Item:
        """The candidate with an id, which must exist."""
        return self.store.get([id_])[0]

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
        return self.store.export(Path(path), vectors=array, overwrite=overwrite)

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
            raise InputError(f"{self.name} contains a build of other candidates: choose another one")
        done = self.store.metadata("done") or 0
        rest = iter(candidates)
        digest = items_digest("", _items(islice(rest, done)))
        if done and digest != self.store.metadata("taken_digest"):
            raise InputError(
                f"{self.name} is an unfinished build whose first {done:,} candidates differ from those given "
                "now: give the same candidates, or remove the index and build it again"
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
        codes = None if codes is None else Codes(self._comparable(codes.vectors), codes.mask)

        def found(view: View) -> tuple[list[Ranking], list[Hits]]:
            most = min(k, max(view.bound(), 1))
            selection = view.select(where) if where else None
            rankings = self._rankings(
                view, contexts, codes, most, mode=mode, selection=selection, exact=exact
            )
            return rankings, [_hits(view, ranking) for ranking in rankings]

        for _ in range(ATTEMPTS):
            rankings, results = self.store.read(found)
            if [len(hits) for hits in results] == [len(ranking.scores) for ranking in rankings]:
                break  # otherwise another process removed a candidate after it was found
        return results

    def save(self, path: str | PathLike[str]) -> Path:
        """Copy the index to a new folder and switch to it."""
        store = self.store.save(Path(path))
        self.close()
        self.store = store
        self._search_on_device()
        return Path(path)

    def problems(self) -> list[str]:
        """The problems of the index, one line each. Reads every byte of a folder."""
        return self.store.problems()

    def repair(self, *, accept_loss: bool = False) -> int:
        """Drop broken files and encode their candidates again; returns how many vectors were encoded.

        Args:
            accept_loss: whether to give up candidates that are gone, and metadata that cannot be read.
                Otherwise they raise a ``BrokenIndexError``, after everything else was repaired.
        """
        return self.store.repair(Encoding(self._encoded, self.update), accept_loss=accept_loss)

    def close(self) -> None:
        """Close files or connections; a temporary folder is deleted."""
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
                f"{self.name} was built by the {self.store.metadata('kind')}-encoder {built_by}, got the "
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
        view: View,
        contexts: Sequence[Context],
        codes: Codes | None,
        k: int,
        *,
        mode: Mode,
        selection: Any,
        exact: bool,
    ) -> list[Ranking]:
        """The best candidates of each context, by number."""
        depth = min(max(k, FUSION_DEPTH), max(view.bound(), k)) if mode == "hybrid" else k
        texts = [] if mode == "vectors" else [as_text(context) for context in contexts]
        words = [view.by_words(text, depth, selection) for text in texts]
        if codes is None:
            return [Ranking(scores, Certainty.CERTIFIED, {}) for scores in words]
        scale = self.scorer.attention_scale
        found = view.by_vectors(codes, depth, scale=scale, exact=exact, selection=selection)
        vectors = [_scaled(ranking, self.scorer.score_scale) for ranking in found]
        if mode == "vectors":
            return vectors
        return [
            Ranking(reciprocal_rank_fusion([one.scores, by_words], k), Certainty.FUSED, one.parts)
            for one, by_words in zip(vectors, words, strict=True)
        ]

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


def _scaled(ranking: Ranking, scale: float) -> Ranking:
    return ranking._replace(scores={number: score * scale for number, score in ranking.scores.items()})


def _hits(view: View, ranking: Ranking) -> Hits:
    items = view.items(np.fromiter(ranking.scores, dtype=np.int64))
    hits = (
        Hit(item.id, item.text, score, item.metadata or {}, ranking.parts.get(number))
        for number, score in ranking.scores.items()
        if (item := items.get(number)) is not None
    )
    return Hits(tuple(hits), ranking.certainty)


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


def _stored_model(store: CandidateStore) -> Path:
    """The folder of the model that built an index; it is never downloaded."""
    source = store.metadata("model")
    if source is None:
        raise InputError(f"{store.name} does not name the model that built it: pass that model too")
    return stored_model(source, stored_in=store.name, option="--model")


def _one_place(path: str | PathLike[str] | None, index: str | None) -> str | PathLike[str] | None:
    """Where the index is to be: a folder or an address; None for a temporary folder."""
    if path is not None and index is not None:
        raise InputError(f"give path (a folder) or index (an address), got {path} and {display(index)}")
    return path if index is None else index


def _reranker(source: Source | None, precision: Precision, device: str | None) -> Scorer | None:
    if source is None or isinstance(source, Scorer):
        return source
    return load(source, precision=precision, device=device)


def _chunk_config(chunk: ChunkConfig | int | None) -> ChunkConfig | None:
    if chunk is None or isinstance(chunk, ChunkConfig):
        return chunk
    return ChunkConfig(size=check_count("chunk", chunk))


def dual_encoder(source: Source, precision: Precision = "fp32", device: str | None = None) -> DualScorer:
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
