"""Search over chunks: a candidate is as good as its best chunk."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tercet
from tercet.index.items import Item
from tercet.records import Certainty, Part
from tercet.retrieve import Retriever
from tercet.settings.chunks import ChunkConfig
from tercet.settings.models import PolyConfig
from tests.conftest import SENTENCES
from tests.databases.places import ALL, NewRetriever, Places, needs_words, option

FolderOf = Callable[[str], Path]
CHUNK = ChunkConfig(size=12, overlap=4)
DOCUMENTS = {
    f"d{n}": " ".join(f"{SENTENCES[(n + step) % len(SENTENCES)]}." for step in range(0, 3 * (n % 5) + 1, 3))
    for n in range(30)
}
CONTEXT = SENTENCES[4]


@pytest.fixture(params=["bi", "poly"])
def scorer(request: pytest.FixtureRequest, tiny_folder: FolderOf) -> tercet.BiEncoder | tercet.PolyEncoder:
    if request.param == "bi":
        return tercet.BiEncoder.from_backbone(tiny_folder("bert"), device="cpu")
    return tercet.PolyEncoder.from_backbone(tiny_folder("bert"), config=PolyConfig(codes=4), device="cpu")


@pytest.fixture(params=ALL)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def retriever(scorer: tercet.BiEncoder, new: NewRetriever) -> Retriever:
    return filled(new(scorer, chunk=CHUNK))


def filled(retriever: Retriever) -> Retriever:
    retriever.add(Item(id_, text, {"even": not int(id_[1:]) % 2}) for id_, text in DOCUMENTS.items())
    return retriever


def best_chunks(
    scorer: tercet.Scorer, retriever: Retriever, documents: dict[str, str]
) -> list[tuple[str, float, Part]]:
    """Every document by the score of its best chunk, scored one by one."""
    parts = retriever.scorer.chunks(list(documents.values()), CHUNK)
    scored = []
    for (id_, text), of in zip(documents.items(), parts, strict=True):
        scores = scorer.score(CONTEXT, [text[part.start : part.end] for part in of])
        scored.append((id_, float(scores.max()), of[int(scores.argmax())]))
    return sorted(scored, key=lambda entry: -entry[1])


def test_documents_are_ranked_by_their_best_chunk(scorer: tercet.BiEncoder, retriever: Retriever) -> None:
    for k in (1, 3, 10, 30, 99):
        hits = retriever.search(CONTEXT, k)
        expected = best_chunks(scorer, retriever, DOCUMENTS)[:k]
        assert [hit.score for hit in hits] == pytest.approx([score for _, score, _ in expected], abs=1e-5)
        assert {hit.id for hit in hits} == {id_ for id_, _, _ in expected} or k < 30  # ties at the end
        assert hits.certainty is Certainty.CERTIFIED


def test_a_hit_says_which_part_matches(scorer: tercet.BiEncoder, retriever: Retriever) -> None:
    for hit in retriever.search(CONTEXT, 30):
        assert hit.text == DOCUMENTS[hit.id]
        assert hit.part is not None
        assert hit.passage == hit.text[hit.part.start : hit.part.end]
        assert scorer.score(CONTEXT, [hit.passage])[0] == pytest.approx(hit.score, abs=1e-5)


def test_where_searches_all_chunks_of_the_candidates(scorer: tercet.BiEncoder, retriever: Retriever) -> None:
    hits = retriever.search(CONTEXT, 99, where={"even": True})
    even = {id_: text for id_, text in DOCUMENTS.items() if not int(id_[1:]) % 2}
    expected = best_chunks(scorer, retriever, even)
    assert [hit.score for hit in hits] == pytest.approx([score for _, score, _ in expected], abs=1e-5)
    assert {hit.id for hit in hits} == set(even)


def test_updates_and_removals_concern_all_chunks(scorer: tercet.BiEncoder, retriever: Retriever) -> None:
    retriever.update([Item("d4", "the sea is deep.", {}), Item("d9", DOCUMENTS["d14"], {})])
    retriever.remove(["d13", "d29"])
    documents = DOCUMENTS | {"d4": "the sea is deep.", "d9": DOCUMENTS["d14"]}
    documents = {id_: text for id_, text in documents.items() if id_ not in ("d13", "d29")}
    for _ in range(2):
        hits = retriever.search(CONTEXT, 99)
        expected = best_chunks(scorer, retriever, documents)
        assert [hit.score for hit in hits] == pytest.approx([score for _, score, _ in expected], abs=1e-5)
        assert {hit.id: hit.text for hit in hits} == documents
        assert retriever.problems() == []
        retriever.compact()  # the second time from one segment


def test_an_index_with_chunks_opens_again(scorer: tercet.BiEncoder, places: Places, kind: str) -> None:
    place = places.new(kind)
    retriever = filled(Retriever(scorer, chunk=CHUNK, **option(place)))
    expected = list(retriever.search(CONTEXT, 7))
    retriever.close()
    with Retriever.open(place, scorer) as opened:
        assert opened.chunk == CHUNK
        assert list(opened.search(CONTEXT, 7)) == expected
        assert opened.store.summary()["chunks"] > len(DOCUMENTS)


def test_lost_chunks_are_encoded_again(scorer: tercet.BiEncoder, tmp_path: Path) -> None:
    retriever = filled(Retriever(scorer, chunk=CHUNK, path=tmp_path / "i.tercet"))
    expected = list(retriever.search(CONTEXT, 30))
    retriever.compact()
    (segment,) = retriever.store.segments.names()
    (retriever.path / "segments" / segment / "vectors.npy").write_bytes(b"broken")
    retriever.close()
    with Retriever.open(retriever.path, scorer) as opened:
        assert opened.repair() > len(DOCUMENTS)
        assert opened.problems() == []
        assert [hit.score for hit in opened.search(CONTEXT, 30)] == pytest.approx(
            [hit.score for hit in expected], abs=1e-5
        )


def test_the_reranker_reads_every_chunk(retriever: Retriever, tiny_folder: FolderOf) -> None:
    cross = tercet.CrossEncoder.from_backbone(tiny_folder("bert"), device="cpu")
    retriever.reranker = cross
    hits = retriever.search(CONTEXT, 30, rerank=30)
    expected = best_chunks(cross, retriever, DOCUMENTS)
    assert [hit.score for hit in hits] == pytest.approx([score for _, score, _ in expected], abs=1e-5)
    assert {hit.id: hit.part for hit in hits} == {id_: part for id_, _, part in expected}
    if retriever.store.has_lexical:
        assert len(retriever.search(CONTEXT, 3, rerank=5, mode="lexical")) == 3


def test_hybrid_search_fuses_whole_documents_with_best_chunks(retriever: Retriever) -> None:
    needs_words(retriever)
    hits = retriever.search(CONTEXT, 30, mode="hybrid")
    assert len({hit.id for hit in hits}) == len(hits) == 30
    assert any(hit.part is not None for hit in hits)


@pytest.mark.filterwarnings("ignore::tercet.errors.TruncationWarning")
def test_without_chunks_the_end_of_a_document_is_not_found(tiny: tercet.BiEncoder) -> None:
    last = "never the old house"
    text = " ".join(f"{sentence}." for sentence in [*SENTENCES * 8, last])
    with Retriever(tiny, chunk=8) as chunked, Retriever(tiny) as whole:
        for retriever in (chunked, whole):
            retriever.add([text])
        found, missed = (one.search(last, 1)[0] for one in (chunked, whole))
    assert found.passage == f"{last}."
    assert found.score > missed.score
    assert missed.part is None


def test_many_chunks_of_one_document_do_not_hide_others(tiny: tercet.BiEncoder, new: NewRetriever) -> None:
    with new(tiny, chunk=ChunkConfig(size=9)) as retriever:
        retriever.add([f"{SENTENCES[0]}. " * 300, SENTENCES[1], SENTENCES[2]])
        assert {hit.id for hit in retriever.search(SENTENCES[0], 3)} == {"0", "1", "2"}
        assert len(retriever.search(np.str_(SENTENCES[0]), 2)) == 2
