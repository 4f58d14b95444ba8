"""The retriever: its results equal the scorer's ranking; lexical and hybrid search, reranking, updates."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tercet.retrieve
from tercet.data.sample import questions
from tercet.errors import InputError, StaleIndexError
from tercet.index.items import Item
from tercet.records import Certainty
from tercet.retrieve import Retriever, reciprocal_rank_fusion
from tercet.settings.index import MODES, Mode
from tercet.settings.models import BiConfig, PolyConfig
from tests.conftest import SENTENCES
from tests.databases.places import NewRetriever, needs_words

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
def retriever(tiny: tercet.BiEncoder, new: NewRetriever) -> Retriever:
    retriever = new(tiny)
    retriever.add(
        Item(f"t{n}", text, {"odd": bool(n % 2), "words": len(text.split())}) for n, text in enumerate(TEXTS)
    )
    return retriever


def test_search_equals_rank_over_all_candidates(scorer: tercet.BiEncoder, new: NewRetriever) -> None:
    with new(scorer) as retriever:
        retriever.add(TEXTS)
        for context in (SENTENCES[1], ["a first turn", SENTENCES[2]]):
            found, expected = retriever.search(context, 7), scorer.rank(context, TEXTS, 7)
            assert [int(hit.id) for hit in found] == [ranked.position for ranked in expected]
            assert [hit.score for hit in found] == pytest.approx(
                [ranked.score for ranked in expected], abs=1e-5
            )
            assert found.certified
        many = retriever.search_many(SENTENCES, 3)
        assert [hits[0].text for hits in many] == [hits[0].text for hits in map(retriever.search, SENTENCES)]


def test_a_saved_retriever_opens_with_its_model_and_refuses_others(
    scorer: tercet.BiEncoder, tiny_folder: FolderOf, tmp_path: Path
) -> None:
    retriever = Retriever(scorer)
    retriever.add(TEXTS)
    expected = retriever.search(SENTENCES[0], 5)
    path = retriever.save(tmp_path / "some.tercet")
    assert retriever.search(SENTENCES[0], 5) == expected
    assert Retriever.open(path, scorer).search(SENTENCES[0], 5) == expected
    other = poly(tiny_folder("bert")) if scorer.kind == "bi" else bi(tiny_folder("bert"))
    with pytest.raises(StaleIndexError, match=r"was built by .*tercet index build"):
        Retriever.open(path, other)
    with pytest.raises(InputError, match="does not name the model that built it"):
        Retriever.open(path)


def test_the_path_of_the_model_is_stored_with_the_index(tiny_folder: FolderOf, tmp_path: Path) -> None:
    with Retriever(tiny_folder("bert"), path=tmp_path / "some.tercet", device="cpu") as retriever:
        retriever.add(TEXTS)
    with Retriever.open(tmp_path / "some.tercet", device="cpu") as opened:
        assert opened.search(TEXTS[3], 1)[0].text == TEXTS[3]


def test_lexical_search_finds_texts_with_a_common_word(retriever: Retriever) -> None:
    needs_words(retriever)
    word = SENTENCES[0].split()[-1]
    found = retriever.search(word, 20, mode="lexical")
    assert found
    assert all(word in hit.text.split() for hit in found)
    assert retriever.search("zzzz", 5, mode="lexical").found == ()


def test_hybrid_search_fuses_the_two_rankings(retriever: Retriever) -> None:
    needs_words(retriever)
    context = SENTENCES[2]
    rankings = {
        mode: {int(hit.id[1:]): hit.score for hit in retriever.search(context, 100, mode=mode)}
        for mode in ("vectors", "lexical")
    }
    expected = reciprocal_rank_fusion(list(rankings.values()), 6)
    hits = retriever.search(context, 6, mode="hybrid")
    assert {int(hit.id[1:]): hit.score for hit in hits} == pytest.approx(expected)


def test_reciprocal_rank_fusion_sums_the_reciprocal_ranks() -> None:
    fused = reciprocal_rank_fusion([{7: 0.9, 8: 0.1}, {8: 5.0}], 2)
    assert fused == pytest.approx({8: 1 / 62 + 1 / 61, 7: 1 / 61})
    assert list(fused) == [8, 7]


@pytest.mark.parametrize("mode", MODES)
def test_metadata_filters_in_every_mode(retriever: Retriever, mode: Mode) -> None:
    if mode != "vectors":
        needs_words(retriever)
    for where, holds in (
        ({"odd": True}, lambda m: m["odd"]),
        ({"words": [3, 4], "odd": False}, lambda m: m["words"] in (3, 4) and not m["odd"]),
    ):
        found = retriever.search(SENTENCES[0], 50, mode=mode, where=where)
        assert all(holds(hit.metadata) for hit in found)
    assert len(retriever.search(SENTENCES[0], 50, where={"odd": True})) == len(TEXTS) // 2
    contradiction = {"odd": True, "words": {"in": [3, 4], "not in": [3, 4]}}
    assert retriever.search(SENTENCES[0], 5, mode=mode, where=contradiction).found == ()


def test_a_reranker_determines_the_final_order(
    tiny_folder: FolderOf, tiny: tercet.BiEncoder, new: NewRetriever
) -> None:
    reranker = tercet.CrossEncoder.from_backbone(tiny_folder("bert"), device="cpu")
    retriever = new(tiny, reranker=reranker)
    retriever.add(TEXTS)
    plain = retriever.search(SENTENCES[0], 8, rerank=0)
    found = retriever.search(SENTENCES[0], 3, rerank=8)
    expected = reranker.rank(SENTENCES[0], [hit.text for hit in plain], 3)
    assert [hit.text for hit in found] == [ranked.text for ranked in expected]
    assert [hit.score for hit in found] == pytest.approx([ranked.score for ranked in expected], abs=1e-5)
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
    retriever.compact(graph_threshold=1)
    hits = retriever.search(SENTENCES[0], 5)
    assert hits.certainty is Certainty.CERTIFIED_UP_TO_RECALL
    assert not hits.certified
    assert retriever.search(SENTENCES[0], 5, where={}) == hits
    assert retriever.search(SENTENCES[0], 5, where=[]) == hits
    assert retriever.search(SENTENCES[0], 5, exact=True).certified
    assert retriever.problems() == []


def test_an_interrupted_build_is_resumed(
    tiny: tercet.BiEncoder, new: NewRetriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tercet.retrieve, "ADDED_AT_ONCE", 5)
    retriever = new(tiny)

    def interrupted() -> Iterator[str]:
        for position, text in enumerate(TEXTS):
            if position == 13:
                raise KeyboardInterrupt
            yield text

    with pytest.raises(KeyboardInterrupt):
        retriever.build(interrupted(), source="texts")
    assert len(retriever) == 10
    progress: list[int] = []
    retriever.build(TEXTS, source="texts", on_progress=progress.append)
    assert len(retriever) == len(TEXTS)
    assert progress[0] == 10
    assert sum(progress) == len(TEXTS)
    assert [item.text for item in retriever] == TEXTS
    with pytest.raises(InputError, match="contains a build of other candidates"):
        retriever.build(TEXTS, source="others")
    with pytest.raises(InputError, match="candidates differ from those given now: give the same"):
        retriever.build([*reversed(TEXTS)], source="texts")


def test_invalid_input_is_refused(retriever: Retriever, tiny_folder: FolderOf, new: NewRetriever) -> None:
    with pytest.raises(InputError, match="a cross-encoder has no vectors to index"):
        Retriever(tercet.CrossEncoder.from_backbone(tiny_folder("bert"), device="cpu"))
    symmetric = PolyConfig(codes=2, towers=1, symmetric=True)
    with pytest.raises(InputError, match="a symmetric score needs codes and vectors of both texts"):
        Retriever(tercet.PolyEncoder.from_backbone(tiny_folder("bert"), config=symmetric, device="cpu"))
    with pytest.raises(InputError, match="candidate 'x' is empty"):
        retriever.add([Item("y", "good"), Item("x", "")])
    with pytest.raises(InputError, match="k must be at least 1"):
        retriever.search("a", 0)
    with pytest.raises(InputError, match="mode must be one of vectors, lexical, hybrid, got 'all'"):
        retriever.search("a", mode="all")
    with pytest.raises(InputError, match="'t2' exists already: update"):
        retriever.add([Item("t2", "again")])
    assert len(retriever) == len(TEXTS)
    with pytest.raises(InputError, match="has no lexical index"):
        new(retriever.scorer, lexical=False).search("a", mode="lexical")


def test_a_string_is_not_taken_for_a_list_of_characters(retriever: Retriever) -> None:
    for method in (retriever.add, retriever.update, retriever.remove):
        with pytest.raises(InputError, match="must be a list, got str 't1'"):
            method("t1")
    assert len(retriever) == len(TEXTS)


def test_hybrid_and_reranked_results_are_not_certified(
    tiny_folder: FolderOf, tiny: tercet.BiEncoder, new: NewRetriever
) -> None:
    reranker = tercet.CrossEncoder.from_backbone(tiny_folder("bert"), device="cpu")
    retriever = new(tiny, reranker=reranker)
    retriever.add(TEXTS)
    needs_words(retriever)
    assert retriever.search("a dog", rerank=0).certified
    assert retriever.search("a dog", mode="lexical", rerank=0).certainty is Certainty.CERTIFIED
    hybrid = retriever.search("a dog", 20, mode="hybrid", rerank=0)
    assert (len(hybrid), hybrid.certainty) == (20, Certainty.FUSED)
    reranked = retriever.search("a dog", 10, rerank=4)
    assert reranked.certainty is Certainty.RERANKED
    assert [hit.id for hit in reranked[4:]] == [hit.id for hit in retriever.search("a dog", 10, rerank=0)[4:]]
    with pytest.raises(InputError, match="rerank must be at least 0, got -3"):
        retriever.search("a dog", rerank=-3)


def test_an_empty_retriever_finds_nothing(tiny: tercet.BiEncoder, new: NewRetriever) -> None:
    retriever = new(tiny)
    for mode in MODES if retriever.store.has_lexical else MODES[:1]:
        assert retriever.search("a cat", 3, mode=mode).found == ()


def test_broken_vectors_are_encoded_again(tiny: tercet.BiEncoder) -> None:
    retriever = Retriever(tiny)
    retriever.add(TEXTS)
    retriever.compact()
    expected = retriever.search(SENTENCES[0], 5)
    folder = next((retriever.path / "segments").iterdir())
    (folder / "vectors.npy").unlink()
    assert retriever.problems()
    assert retriever.repair() == len(TEXTS)
    assert retriever.problems() == []
    found = retriever.search(SENTENCES[0], 5)
    assert [hit.id for hit in found] == [hit.id for hit in expected]


def test_search_equals_rank_on_real_questions(minilm: tercet.BiEncoder, new: NewRetriever) -> None:
    faq = questions("en")
    answers, contexts = [question.answer for question in faq], [question.context for question in faq]
    retriever = new(minilm)
    retriever.add(answers)
    expected = [ranking[0].text for ranking in minilm.rank_many(contexts, answers, 1)]
    assert [hits[0].text for hits in retriever.search_many(contexts, 1)] == expected
    assert sum(map(str.__eq__, expected, answers)) == 83  # of 120
