"""Several indexes searched as one find what one index of all candidates finds."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tercet
from tercet.errors import InputError, StaleIndexError, UnmatchedConditionError
from tercet.index.conditions import Where
from tercet.index.items import Item
from tercet.index.ranking import reciprocal_rank_fusion
from tercet.records import Certainty, Hit, Hits
from tercet.retrieve import Retriever
from tercet.settings.models import PolyConfig
from tercet.sharded import ShardedRetriever, merged
from tests.conftest import SENTENCES

if TYPE_CHECKING:
    from tercet.settings.index import Mode

FolderOf = Callable[[str], Path]
TEXTS = [*SENTENCES, *(f"{text} and {text}" for text in SENTENCES), *(f"no {text}" for text in SENTENCES)]
ITEMS = [
    Item(f"t{n}", text, {"n": n} if n % 3 == 0 else {"odd": bool(n % 2), "n": n})
    for n, text in enumerate(TEXTS)
]
"""Those of the first of three shards have no column ``odd``."""


def fill(retriever: Retriever, items: list[Item], encoded_with: list[Item]) -> None:
    """Store items with the vectors that they have in a batch with others, so that no bit differs."""
    passages = retriever.passages(encoded_with)
    vectors = dict(zip([i.id for i in encoded_with], retriever.scorer.encode(passages.texts), strict=True))
    if items:
        retriever.write(retriever.passages(items), np.stack([vectors[item.id] for item in items]))


def in_shards(scorer: tercet.Scorer, items: list[Item], count: int = 3) -> ShardedRetriever:
    shards = [Retriever(scorer) for _ in range(count)]
    for number, shard in enumerate(shards):
        fill(shard, items[number::count], items)
    return ShardedRetriever(shards)


@pytest.fixture(params=["bi", "poly"])
def scorer(request: pytest.FixtureRequest, tiny: tercet.BiEncoder, tiny_folder: FolderOf) -> tercet.Scorer:
    config = PolyConfig(codes=4, logit_scale=3.0, candidate_scale=2.0)
    if request.param == "bi":
        return tiny
    return tercet.PolyEncoder.from_backbone(tiny_folder("bert"), config=config, device="cpu")


@pytest.fixture
def both(scorer: tercet.Scorer) -> Iterator[tuple[Retriever, ShardedRetriever]]:
    with Retriever(scorer) as one, in_shards(scorer, ITEMS) as sharded:
        fill(one, ITEMS, ITEMS)
        yield one, sharded


def shown(hits: Hits) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in hits]


WHERES: list[Where] = [
    {"odd": True},
    {"odd": {"!=": True}},
    {"odd": None},
    {"odd": {"not in": [True, None]}},
    {"n": {">=": 5, "<": 9}},
    {"n": 6, "odd": None},
    {"n": [1, 2]},
]


@pytest.mark.parametrize("where", [None, *WHERES])
def test_shards_find_what_one_index_finds(
    where: Where | None, both: tuple[Retriever, ShardedRetriever]
) -> None:
    one, sharded = both
    for k in (1, 7, 100):
        found, expected = (
            each.search_many([*SENTENCES, ["two", "turns"]], k, where=where) for each in (sharded, one)
        )
        for mine, its in zip(found, expected, strict=True):
            assert [score for _, score in shown(mine)] == [score for _, score in shown(its)]
            assert dict(shown(mine)) == dict(shown(its))
            assert mine.certainty is its.certainty is Certainty.CERTIFIED


def test_a_condition_that_no_shard_can_meet_is_an_error(both: tuple[Retriever, ShardedRetriever]) -> None:
    for where in ({"colour": "red"}, {"n": 99}, {"colour": {"!=": "red"}}):
        for each in both:
            with pytest.raises(UnmatchedConditionError):
                each.search("a dog", where=where)


def test_values_that_cannot_be_compared_are_an_error_in_any_shard(tiny: tercet.BiEncoder) -> None:
    sharded = in_shards(tiny, [Item("a", "a", {"y": 1}), Item("b", "b", {"y": "x"})], 2)
    with sharded, pytest.raises(InputError, match="cannot be compared"):
        sharded.search("a", where={"y": {">": 0}})


def test_the_least_certain_shard_decides() -> None:
    def hits(certainty: Certainty) -> Hits:
        return Hits((Hit(certainty, "a", 1.0),), certainty)

    levels = [Certainty.CERTIFIED, Certainty.CERTIFIED_UP_TO_RECALL, Certainty.BUDGET_REACHED]
    for number, worst in enumerate(levels):
        assert merged([hits(level) for level in levels[: number + 1]], 2).certainty is worst
        assert merged([hits(level) for level in reversed(levels[: number + 1])], 2).certainty is worst


def test_a_merge_keeps_the_best_and_orders_ties_by_shard() -> None:
    def hits(**scores: float) -> Hits:
        return Hits(tuple(Hit(id_, id_, score) for id_, score in scores.items()), Certainty.CERTIFIED)

    found = merged([hits(a=3.0, b=1.0), hits(c=3.0, d=2.0), hits()], 3)
    assert [hit.id for hit in found] == ["a", "c", "d"]


def test_hybrid_search_fuses_merged_rankings(tiny: tercet.BiEncoder) -> None:
    with in_shards(tiny, ITEMS) as sharded:
        mode: dict[str, Mode] = {"v": "vectors", "l": "lexical"}
        by = {name: sharded.search("a dog sat", 100, mode=each) for name, each in mode.items()}
        numbers = {id_: n for n, id_ in enumerate(dict.fromkeys(h.id for h in (*by["v"], *by["l"])))}
        rankings = [{numbers[hit.id]: hit.score for hit in hits} for hits in by.values()]
        expected = reciprocal_rank_fusion(rankings, 5)
        found = sharded.search("a dog sat", 5, mode="hybrid")
        assert [(numbers[hit.id], hit.score) for hit in found] == list(expected.items())
        assert found.certainty is Certainty.FUSED


def test_lexical_search_finds_the_words_of_all_shards(tiny: tercet.BiEncoder) -> None:
    with in_shards(tiny, ITEMS) as sharded:
        found = {hit.id for hit in sharded.search("river bird", 100, mode="lexical")}
        assert found == {item.id for item in ITEMS if "bird" in item.text}


def test_the_reranker_reads_the_merged_candidates(both: tuple[Retriever, ShardedRetriever]) -> None:
    one, sharded = both
    one.reranker = sharded.reranker = tercet.load("bi", device="cpu")
    for rerank in (1, 4, 10):
        assert shown(sharded.search(SENTENCES[1], 6, rerank=rerank)) == shown(
            one.search(SENTENCES[1], 6, rerank=rerank)
        )
    assert sharded.search(SENTENCES[1], 3).certainty is Certainty.RERANKED
    sharded.reranker = None
    with pytest.raises(InputError, match="no reranker"):
        sharded.search("a", rerank=3)


def test_chunked_shards_find_what_a_chunked_index_finds(tiny: tercet.BiEncoder) -> None:
    def opened() -> Retriever:
        return Retriever(tiny, chunk=4)

    with opened() as one, opened() as a, opened() as b:
        one.add(ITEMS)
        a.add(ITEMS[::2])
        b.add(ITEMS[1::2])
        found, expected = (each.search("the blue bird", 5) for each in (ShardedRetriever([a, b]), one))
        assert [hit.passage for hit in found] == [hit.passage for hit in expected]
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], abs=1e-5)
        with pytest.raises(InputError, match="same chunks"):
            ShardedRetriever([a, Retriever(tiny)])


def test_shards_of_different_models_are_refused(tiny: tercet.BiEncoder, tiny_folder: FolderOf) -> None:
    other = tercet.BiEncoder.from_backbone(tiny_folder("electra"), device="cpu")
    with pytest.raises(StaleIndexError, match="one model"):
        ShardedRetriever([Retriever(tiny), Retriever(other)])
    with pytest.raises(InputError, match="at least one shard"):
        ShardedRetriever([])


def test_an_id_in_two_shards_is_an_error(tiny: tercet.BiEncoder) -> None:
    with in_shards(tiny, [Item("a", "a dog"), Item("a", "a dog ran")], 2) as sharded:
        with pytest.raises(InputError, match=r"two shards have .*'a'"):
            sharded.search("a dog", 2)
        with pytest.raises(InputError, match="two shards have"):
            sharded.check_ids()


def test_changes_reach_the_shard_that_has_the_candidate(tiny: tercet.BiEncoder) -> None:
    with in_shards(tiny, ITEMS[:9]) as sharded:
        sharded.update([Item("t4", "a new river", {"new": True}), Item("x", "old house")])
        assert sharded.get("t4").text == "a new river"
        assert "t4" in sharded.shards[1]
        sharded.remove(["t0", "x"])
        assert "t0" not in sharded
        sharded.add(Item(f"n{n}", f"a dog {n}") for n in range(20))
        sharded.check_ids()
        assert len(sharded) == 28 == len(list(sharded))
        assert all(any(item.id.startswith("n") for item in shard) for shard in sharded.shards)
        with pytest.raises(InputError, match="'n3' exist already"):
            sharded.add([Item("n3", "a"), Item("n99", "b")])
        with pytest.raises(InputError, match="no shard has"):
            sharded.remove(["nobody"])
        with pytest.raises(InputError, match="has no id"):
            sharded.add(["a text"])


def test_shards_in_folders_share_one_model(tiny: tercet.BiEncoder, tmp_path: Path) -> None:
    saved = tiny.save(tmp_path / "model")
    for name in "ab":
        with Retriever(saved, path=tmp_path / f"{name}.tercet") as retriever:
            retriever.add([Item(name, f"a dog {name}")])
    with ShardedRetriever.open([tmp_path / "a.tercet", tmp_path / "b.tercet"]) as sharded:
        assert {hit.id for hit in sharded.search("a dog")} == {"a", "b"}
        assert sharded.shards[0].scorer is sharded.shards[1].scorer
