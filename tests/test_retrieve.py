"""The retriever: what it finds is what the scorer would rank first, by vectors, by words, by both."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tercet
from tercet.config import BiConfig, PolyConfig
from tercet.data.sample import questions
from tercet.errors import InputError, StaleIndexError
from tercet.index.items import Item
from tercet.retrieve import Retriever, fused
from tests.conftest import SENTENCES

FolderOf = Callable[[str], Path]
TEXTS = [*SENTENCES, *(f"{text} and {text}" for text in SENTENCES), *(f"no {text}" for text in SENTENCES)]


def bi(folder: Path) -> tercet.BiEncoder:
    return tercet.BiEncoder.from_backbone(folder, device="cpu")


def dot(folder: Path) -> tercet.BiEncoder:
    return tercet.BiEncoder.from_backbone(folder, config=BiConfig(similarity="dot"), device="cpu")


def poly(folder: Path) -> tercet.PolyEncoder:
    return tercet.PolyEncoder.from_backbone(
        folder, config=PolyConfig(codes=4, logit_scale=3.0, candidate_scale=2.0), device="cpu"
    )


MAKERS: dict[str, Callable[[Path], tercet.BiEncoder | tercet.PolyEncoder]] = {
    "bi": bi,
    "dot": dot,
    "poly": poly,
}


@pytest.fixture(params=list(MAKERS))
def scorer(request: pytest.FixtureRequest, tiny_folder: FolderOf) -> tercet.BiEncoder | tercet.PolyEncoder:
    return MAKERS[request.param](tiny_folder("bert"))


@pytest.fixture
def retriever(tiny: tercet.BiEncoder) -> Retriever:
    made = Retriever(tiny)
    made.add(
        Item(f"t{n}", text, {"odd": bool(n % 2), "words": len(text.split())}) for n, text in enumerate(TEXTS)
    )
    return made


def test_search_equals_rank_over_all_candidates(scorer: tercet.BiEncoder) -> None:
    with Retriever(scorer) as retriever:
        retriever.add(TEXTS)
        for context in (SENTENCES[1], ["a first turn", SENTENCES[2]]):
            found, wanted = retriever.search(context, 7), scorer.rank(context, TEXTS, 7)
            assert [int(hit.id) for hit in found] == [ranked.position for ranked in wanted]
            assert [hit.score for hit in found] == pytest.approx(
                [ranked.score for ranked in wanted], abs=1e-5
            )
            assert found.certified
        many = retriever.search_many(SENTENCES, 3)
        assert [hits[0].text for hits in many] == [hits[0].text for hits in map(retriever.search, SENTENCES)]


def test_a_saved_retriever_opens_with_its_model_and_refuses_others(
    scorer: tercet.BiEncoder, tiny_folder: FolderOf, tmp_path: Path
) -> None:
    retriever = Retriever(scorer)
    retriever.add(TEXTS)
    wanted = retriever.search(SENTENCES[0], 5)
    path = retriever.save(tmp_path / "some.tercet")
    assert retriever.search(SENTENCES[0], 5) == wanted
    assert Retriever.open(path, scorer).search(SENTENCES[0], 5) == wanted
    other = poly(tiny_folder("bert")) if scorer.kind == "bi" else bi(tiny_folder("bert"))
    with pytest.raises(StaleIndexError, match=r"was built by .*tercet index build"):
        Retriever.open(path, other)
    with pytest.raises(InputError, match="does not say where its model lies"):
        Retriever.open(path)


def test_where_a_model_lies_is_remembered(tiny_folder: FolderOf, tmp_path: Path) -> None:
    with Retriever(tiny_folder("bert"), path=tmp_path / "some.tercet", device="cpu") as retriever:
        retriever.add(TEXTS)
    with Retriever.open(tmp_path / "some.tercet", device="cpu") as opened:
        assert opened.search(TEXTS[3], 1)[0].text == TEXTS[3]


def test_words_find_what_shares_them(retriever: Retriever) -> None:
    word = SENTENCES[0].split()[-1]
    found = retriever.search(word, 20, mode="words")
    assert found
    assert all(word in hit.text.split() for hit in found)
    assert retriever.search("zzzz", 5, mode="words").found == ()


def test_both_is_the_fusion_of_the_two_rankings(retriever: Retriever) -> None:
    context = SENTENCES[2]
    by = {
        mode: {int(hit.id[1:]): hit.score for hit in retriever.search(context, 100, mode=mode)}
        for mode in ("vectors", "words")
    }
    wanted = fused(list(by.values()), 6)
    found = retriever.search(context, 6, mode="both")
    assert {int(hit.id[1:]): hit.score for hit in found} == pytest.approx(wanted)
    assert fused([{7: 0.9, 8: 0.1}, {8: 5.0}], 2) == pytest.approx({8: 1 / 62 + 1 / 61, 7: 1 / 61})


@pytest.mark.parametrize("mode", ["vectors", "words", "both"])
def test_metadata_chooses_in_every_mode(retriever: Retriever, mode: tercet.retrieve.Mode) -> None:
    for where, holds in (
        ({"odd": True}, lambda m: m["odd"]),
        ({"words": [3, 4], "odd": False}, lambda m: m["words"] in (3, 4) and not m["odd"]),
    ):
        found = retriever.search(SENTENCES[0], 50, mode=mode, where=where)
        assert all(holds(hit.metadata) for hit in found)
    everything = retriever.search(SENTENCES[0], 50, where={"odd": True})
    assert len(everything) == len(TEXTS) // 2
    assert retriever.search(SENTENCES[0], 5, mode=mode, where={"colour": "red"}).found == ()


def test_a_reranker_has_the_last_word(tiny_folder: FolderOf, tiny: tercet.BiEncoder) -> None:
    reranker = tercet.CrossEncoder.from_backbone(tiny_folder("bert"), device="cpu")
    retriever = Retriever(tiny, reranker=reranker)
    retriever.add(TEXTS)
    plain = retriever.search(SENTENCES[0], 8, rerank=0)
    found = retriever.search(SENTENCES[0], 3, rerank=8)
    wanted = reranker.rank(SENTENCES[0], [hit.text for hit in plain], 3)
    assert [hit.text for hit in found] == [ranked.candidate for ranked in wanted]
    assert [hit.score for hit in found] == pytest.approx([ranked.score for ranked in wanted], abs=1e-5)
    with pytest.raises(InputError, match="there is no reranker"):
        Retriever(tiny).search("a", rerank=5)


def test_candidates_are_updated_removed_and_compacted(retriever: Retriever) -> None:
    retriever.update([Item("t1", SENTENCES[0] + " now"), Item("new", "something new")])
    retriever.remove(["t0", "t3"])
    assert len(retriever) == len(TEXTS) - 1
    before = retriever.search(SENTENCES[0], 30)
    assert not {"t0", "t3"} & {hit.id for hit in before}
    retriever.compact()
    assert retriever.search(SENTENCES[0], 30) == before
    retriever.compact(graph_from=1)
    found = retriever.search(SENTENCES[0], 5)
    assert found.certainty == "certified up to the index's recall"
    assert not found.certified
    assert retriever.search(SENTENCES[0], 5, exact=True).certified
    assert retriever.problems() == []


def test_an_interrupted_build_goes_on(tiny: tercet.BiEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tercet.retrieve, "ADDED_AT_ONCE", 5)
    retriever = Retriever(tiny)

    def stopping() -> object:
        for place, text in enumerate(TEXTS):
            if place == 13:
                raise KeyboardInterrupt
            yield text

    with pytest.raises(KeyboardInterrupt):
        retriever.build(stopping(), source="texts")
    assert len(retriever) == 10
    told: list[int] = []
    retriever.build(TEXTS, source="texts", on_progress=told.append)
    assert len(retriever) == len(TEXTS)
    assert told[0] == 10
    assert sum(told) == len(TEXTS)
    assert [item.text for item in retriever.store.items(np.arange(99)).values()] == TEXTS
    with pytest.raises(InputError, match="was begun with other candidates"):
        retriever.build(TEXTS, source="others")


def test_wrong_input_is_refused(retriever: Retriever, tiny_folder: FolderOf) -> None:
    with pytest.raises(InputError, match="nothing of a cross-encoder can be kept"):
        Retriever(tercet.CrossEncoder.from_backbone(tiny_folder("bert"), device="cpu"))
    symmetric = PolyConfig(codes=2, towers=1, symmetric=True)
    with pytest.raises(InputError, match="a symmetric score needs codes and vectors of both texts"):
        Retriever(tercet.PolyEncoder.from_backbone(tiny_folder("bert"), config=symmetric, device="cpu"))
    with pytest.raises(InputError, match="candidate 'x' is empty"):
        retriever.add([Item("y", "good"), Item("x", "")])
    with pytest.raises(InputError, match="k must be at least 1"):
        retriever.search("a", 0)
    with pytest.raises(InputError, match="mode must be one of"):
        retriever.search("a", mode="all")
    with pytest.raises(InputError, match="'t2' is there already"):
        retriever.add([Item("t2", "again")])
    assert len(retriever) == len(TEXTS)
    with pytest.raises(InputError, match="was made without words"):
        Retriever(retriever.scorer, words=False).search("a", mode="words")


def test_a_list_is_wanted_where_a_text_would_be_taken_letter_by_letter(retriever: Retriever) -> None:
    for wrong in (retriever.add, retriever.update, retriever.remove):
        with pytest.raises(InputError, match="must be a list of them"):
            wrong("t1")
    assert len(retriever) == len(TEXTS)


def test_only_vectors_alone_are_certified(tiny_folder: FolderOf, tiny: tercet.BiEncoder) -> None:
    reranker = tercet.CrossEncoder.from_backbone(tiny_folder("bert"), device="cpu")
    retriever = Retriever(tiny, reranker=reranker)
    retriever.add(TEXTS)
    assert retriever.search("a dog", rerank=0).certified
    both = retriever.search("a dog", 20, mode="both", rerank=0)
    assert (len(both), both.certainty) == (20, "fused")
    found = retriever.search("a dog", 10, rerank=4)
    assert found.certainty == "reranked"
    assert [hit.id for hit in found[4:]] == [hit.id for hit in retriever.search("a dog", 10, rerank=0)[4:]]
    with pytest.raises(InputError, match="rerank must be at least 0, got -3"):
        retriever.search("a dog", rerank=-3)


def test_an_empty_retriever_finds_nothing(tiny: tercet.BiEncoder) -> None:
    for mode in ("vectors", "words", "both"):
        assert Retriever(tiny).search("a cat", 3, mode=mode).found == ()


def test_broken_vectors_are_made_again(retriever: Retriever) -> None:
    retriever.compact()
    wanted = retriever.search(SENTENCES[0], 5)
    folder = next((retriever.path / "segments").iterdir())
    (folder / "vectors.npy").unlink()
    assert retriever.problems()
    assert retriever.repair() == len(TEXTS)
    assert retriever.problems() == []
    found = retriever.search(SENTENCES[0], 5)
    assert [hit.id for hit in found] == [hit.id for hit in wanted]


def test_real_questions_find_what_the_model_ranks_first(minilm: tercet.BiEncoder) -> None:
    faq = questions("en")
    answers, asked = [question.answer for question in faq], [question.context for question in faq]
    retriever = Retriever(minilm)
    retriever.add(answers)
    wanted = [ranking[0].candidate for ranking in minilm.rank_many(asked, answers, 1)]
    assert [hits[0].text for hits in retriever.search_many(asked, 1)] == wanted
    assert sum(map(str.__eq__, wanted, answers)) == 83  # of 120
