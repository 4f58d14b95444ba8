"""ShardedRetriever: several indexes of one model, searched as one."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from os import PathLike
from typing import Any, NamedTuple, Self

from tercet.errors import InputError, StaleIndexError, UnmatchedConditionError
from tercet.index.conditions import Condition, Where, conditions_of
from tercet.index.item_forms import ItemLike, item_of
from tercet.index.items import Item
from tercet.index.ranking import reciprocal_rank_fusion
from tercet.inputs import check_choice, check_context, check_contexts, check_k, check_many, listed
from tercet.records import Certainty, Codes, Context, Hit, Hits, Progress
from tercet.retrieve import FUSION_DEPTH, RERANK_DEPTH, Retriever, reranked
from tercet.retrieve_async import AsyncRetrieval
from tercet.scorers.scorer import Scorer
from tercet.settings.index import MODES, Mode

LEVELS = list(Certainty)
"""From most to least certain."""
SHOWN_IDS = 5


class ShardedRetriever(AsyncRetrieval):
    """Searches several indexes in parallel and merges what they find.

    The merged candidates are those that one index of all candidates would find, with the same scores. They
    are certified if every shard's are: each candidate that a shard left out is worse than ``k`` others of its
    shard.

    A lexical search merges BM25 scores, which each shard computes from its own word counts.

    Args:
        shards: retrievers of one model with the same chunks, whose candidates have different ids.
        reranker: a cross-encoder that reorders the first merged candidates.
    """

    def __init__(self, shards: Sequence[Retriever], *, reranker: Scorer | None = None) -> None:
        self.shards = list(shards)
        self.reranker = reranker
        if not self.shards:
            raise InputError("a ShardedRetriever needs at least one shard, got none")
        for shard in self.shards[1:]:
            _check_alike(self.shards[0], shard)
        self.scorer = self.shards[0].scorer
        self._threads = ThreadPoolExecutor(len(self.shards), thread_name_prefix="tercet-shard")

    @classmethod
    def open(
        cls,
        paths: Iterable[str | PathLike[str]],
        scorer: Scorer | str | PathLike[str] | None = None,
        *,
        reranker: Scorer | None = None,
        **options: Any,
    ) -> Self:
        """The shards in several folders, whose model is loaded once.

        Args:
            scorer: the model that built them. Default: the one that is stored with the first.
            options: those of ``Retriever.open``, such as ``precision``.
        """
        first, *others = list(paths) or [""]
        if not first:
            raise InputError("a ShardedRetriever needs at least one shard, got none")
        opened = Retriever.open(first, scorer, **options)
        return cls([opened, *(Retriever.open(path, opened.scorer) for path in others)], reranker=reranker)

    def __len__(self) -> int:
        return sum(map(len, self.shards))

    def __repr__(self) -> str:
        return f"<ShardedRetriever: {len(self.shards)} shards, {len(self):,} candidates, {self.scorer!r}>"

    def __contains__(self, id_: object) -> bool:
        return any(id_ in shard for shard in self.shards)

    def __iter__(self) -> Iterator[Item]:
        """All candidates, shard by shard."""
        for shard in self.shards:
            yield from shard

    def get(self, id_: str) -> Item:
        """The candidate with an id, which must exist."""
        return self._shard_of(id_).get(id_)

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
        """The ``k`` best candidates of all shards, best first; arguments as for ``Retriever.search``."""
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
        """The results of ``search`` for each context, which is encoded once for all shards."""
        queries, k = check_contexts(contexts), check_k(k)
        check_choice("mode", mode, MODES)
        depth = self._rerank_depth(rerank)
        codes = None if mode == "lexical" else self.scorer.encode_contexts(queries)
        results = self.search_codes(queries, codes, max(k, depth), mode=mode, where=where, exact=exact)
        if depth:
            pairs = zip(queries, results, strict=True)
            results = [self._rerank(context, hits, depth) for context, hits in pairs]
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
        """The results of ``search`` for contexts that are encoded already, without reranking."""

        def best(mode: Mode, depth: int) -> list[Hits]:
            given = None if mode == "lexical" else codes

            def search(shard: Retriever, where: list[Condition]) -> list[Hits]:
                return shard.search_codes(contexts, given, depth, mode=mode, where=where, exact=exact)

            found = self._ask(search, where, len(contexts))
            return [merged(of_context, depth) for of_context in zip(*found, strict=True)]

        if mode != "hybrid":
            return best(mode, k)
        depth = max(k, FUSION_DEPTH)
        rankings = zip(best("vectors", depth), best("lexical", depth), strict=True)
        return [fused(by_vectors, by_terms, k) for by_vectors, by_terms in rankings]

    def add(self, candidates: Iterable[ItemLike], *, on_progress: Progress | None = None) -> None:
        """Encode and store candidates with new ids, which decide the shard.

        Each shard stores its candidates on its own: if one fails, the others keep theirs.
        """
        items = self._items(candidates)
        known = [item.id for item in items if item.id in self]
        if known:
            raise InputError(f"{listed(known, most=SHOWN_IDS)} exist already: update, or choose other ids")
        for shard, own in self._by_shard(items):
            shard.add(own, on_progress=on_progress)

    def update(self, candidates: Iterable[ItemLike], *, on_progress: Progress | None = None) -> None:
        """Replace candidates in the shards that have them, and add the others; otherwise as ``add``."""
        for shard, own in self._by_shard(self._items(candidates)):
            shard.update(own, on_progress=on_progress)

    def remove(self, ids: Iterable[str]) -> None:
        """Remove candidates, which must exist."""
        found = [(str(id_), self._shard_of(str(id_))) for id_ in check_many(ids, "ids")]
        for shard in self.shards:
            if own := [id_ for id_, of in found if of is shard]:
                shard.remove(own)

    def check_ids(self) -> None:
        """Raise if two shards have a candidate with the same id. Reads all candidates.

        A search notices it only if it finds both.
        """
        seen = dict[str, int]()
        for number, shard in enumerate(self.shards):
            for item in shard:
                if seen.setdefault(item.id, number) != number:
                    raise _repeated(item.id)

    def close(self) -> None:
        """Close all shards."""
        self._threads.shutdown()
        for shard in self.shards:
            shard.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(
        self, search: Callable[[Retriever, list[Condition]], list[Hits]], where: Where | None, count: int
    ) -> list[list[Hits]]:
        """What each shard finds for ``count`` contexts, if one of them has what ``where`` names."""
        conditions = conditions_of(where or {})
        tasks = [self._threads.submit(_answer, search, shard, conditions, count) for shard in self.shards]
        answers = [task.result() for task in tasks]
        for errors in ([answer.missing for answer in answers], [answer.unmatched for answer in answers]):
            if all(errors):
                raise min(filter(None, errors), key=lambda error: error.missing_column is not None)
        return [answer.found for answer in answers]

    def _rerank_depth(self, rerank: int | None) -> int:
        """The number of candidates to rerank."""
        if rerank is not None and rerank < 0:
            raise InputError(f"rerank must be at least 0, got {rerank}")
        if self.reranker is None:
            if rerank:
                raise InputError("there is no reranker: pass a cross-encoder to the ShardedRetriever")
            return 0
        return RERANK_DEPTH if rerank is None else rerank

    def _rerank(self, context: Context, hits: Hits, count: int) -> Hits:
        if self.reranker is None or not hits:
            return hits
        parts = self.shards[0].parts_to_rerank(hits[:count])  # all shards have the same chunks
        return reranked(hits, parts, self.reranker.score(context, [part.passage for part in parts]), count)

    def _items(self, candidates: Iterable[ItemLike]) -> list[Item]:
        given = enumerate(check_many(candidates, "candidates"))
        items = [item_of(candidate, position) for position, candidate in given]
        for position, item in enumerate(items):
            if not item.id:
                raise InputError(f"candidate {position} has no id, which decides its shard: give it one")
        return items

    def _by_shard(self, items: Sequence[Item]) -> Iterator[tuple[Retriever, list[Item]]]:
        """The shards that have these candidates, or are to have them."""
        of = [self._number_of(item.id) for item in items]
        for number, shard in enumerate(self.shards):
            own = [item for item, at in zip(items, of, strict=True) if at == number]
            if own:
                yield shard, own

    def _number_of(self, id_: str) -> int:
        """The shard that has a candidate; for a new one, the shard that its id decides."""
        has = (number for number, shard in enumerate(self.shards) if id_ in shard)
        return next(has, int(sha256(id_.encode()).hexdigest(), 16) % len(self.shards))

    def _shard_of(self, id_: str) -> Retriever:
        for shard in self.shards:
            if id_ in shard:
                return shard
        raise InputError(f"no shard has the candidate {id_!r}")


def merged(results: Sequence[Hits], k: int) -> Hits:
    """The ``k`` best hits of several indexes, as certain as the least certain of them.

    Equal scores are ordered by index, then as in the index.
    """
    _check_distinct(results)
    best = sorted((hit for hits in results for hit in hits), key=lambda hit: -hit.score)  # stable
    return Hits(tuple(best[:k]), max((hits.certainty for hits in results), key=LEVELS.index))


def fused(by_vectors: Hits, by_terms: Hits, k: int) -> Hits:
    """The ``k`` best hits of two merged rankings, by reciprocal rank fusion."""
    hits: dict[str, Hit] = {hit.id: hit for hit in (*by_terms, *by_vectors)}  # those with a part win
    order = dict.fromkeys(hit.id for hit in (*by_vectors, *by_terms))
    numbers = {id_: number for number, id_ in enumerate(order)}
    rankings = [{numbers[hit.id]: hit.score for hit in ranking} for ranking in (by_vectors, by_terms)]
    ids = list(numbers)
    scores = reciprocal_rank_fusion(rankings, k)
    found = ((hits[ids[number]], score) for number, score in scores.items())
    return Hits(
        tuple(Hit(hit.id, hit.text, score, hit.metadata, hit.part) for hit, score in found), Certainty.FUSED
    )


class _Answer(NamedTuple):
    """What a shard finds, and which conditions of a search do not fit it."""

    found: list[Hits]
    missing: UnmatchedConditionError | None = None
    """About a column that no candidate of the shard has."""
    unmatched: UnmatchedConditionError | None = None
    """About a condition because of which the shard finds nothing."""


def _answer(
    search: Callable[[Retriever, list[Condition]], list[Hits]],
    shard: Retriever,
    conditions: list[Condition],
    count: int,
) -> _Answer:
    """The hits of a shard for ``count`` contexts. A column that it lacks is missing in all its candidates."""
    missing = None
    while True:
        try:
            return _Answer(search(shard, conditions), missing)
        except UnmatchedConditionError as error:
            column = error.missing_column
            missing = missing or (error if column is not None else None)
            of_column = [each for each in conditions if each.column == column]
            if column is None or not all(each.holds_without_value for each in of_column):
                return _Answer([Hits((), Certainty.CERTIFIED) for _ in range(count)], missing, error)
            conditions = [each for each in conditions if each.column != column]


def _check_alike(first: Retriever, other: Retriever) -> None:
    """Raise if two shards have different models or chunks."""
    if first.scorer.fingerprint != other.scorer.fingerprint:
        raise StaleIndexError(
            f"all shards need one model: {first!r} has {first.scorer.fingerprint}, and {other!r} has "
            f"{other.scorer.fingerprint}: build one of them again"
        )
    if first.chunk != other.chunk:
        raise InputError(
            f"all shards need the same chunks: {first!r} has {first.chunk}, and {other!r} has {other.chunk}: "
            "build one of them again"
        )


def _check_distinct(results: Sequence[Hits]) -> None:
    seen: set[str] = set()
    for hits in results:
        ids = {hit.id for hit in hits}
        if repeated := sorted(seen & ids):
            raise _repeated(repeated[0])
        seen |= ids


def _repeated(id_: str) -> InputError:
    return InputError(f"two shards have a candidate with the id {id_!r}: remove it from one of them")
