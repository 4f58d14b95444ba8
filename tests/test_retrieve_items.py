"""Candidates of a retriever as items and mappings: added, updated, read and exported."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tercet
from tercet.errors import InputError, ModelError, OutputError
from tercet.index import export, reading
from tercet.index.export import as_dict
from tercet.index.items import Item
from tercet.index.store import Store
from tercet.retrieve import Retriever
from tests.databases.places import NewRetriever

FolderOf = Callable[[str], Path]


@pytest.fixture
def retriever(tiny: tercet.BiEncoder, new: NewRetriever) -> Retriever:
    retriever = new(tiny)
    retriever.add(
        [
            Item("cat", "the cat sat on the mat", {"topic": "animals"}),
            {"id": "dog", "text": "a dog ran", "metadata": {"topic": "animals", "year": 2020}},
            {"id": 7, "text": "old house", "topic": "places", "year": 2021},
            "never",
        ]
    )
    return retriever


def test_items_mappings_and_texts_are_stored_alike(retriever: Retriever) -> None:
    assert list(retriever) == [
        Item("cat", "the cat sat on the mat", {"topic": "animals"}),
        Item("dog", "a dog ran", {"topic": "animals", "year": 2020}),
        Item("7", "old house", {"topic": "places", "year": 2021}),
        Item("3", "never", {}),
    ]


@pytest.mark.parametrize(
    ("candidate", "message"),
    [
        ({"id": "x", "question": "why"}, "candidate 1 has no key 'text', only 'id', 'question'"),
        ({}, "candidate 1 has no key 'text', only an empty mapping"),
        ({"id": 1.5, "text": "x"}, "'id' of candidate 1 must be a string, got float 1.5"),
        ({"text": "x", "metadata": {}, "topic": "y"}, "candidate 1 has the key 'metadata' and also 'topic'"),
        ({"text": "x", 5: "y"}, "a key in the metadata of candidate 1 must be a string, got int 5"),
        ({"text": " "}, "candidate 1 is empty"),
        (Item("x", "x", ["y"]), "the metadata of candidate 1 must be a mapping"),  # type: ignore[arg-type]
        (5, "candidate 1 must be a string, an Item or a mapping with the keys id and text, got int 5"),
    ],
)
def test_an_error_names_the_position_and_the_key(
    retriever: Retriever, candidate: object, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        retriever.add(["good", candidate])  # type: ignore[list-item]
    assert len(retriever) == 4


def test_positions_count_over_all_batches(retriever: Retriever, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tercet.retrieve, "ADDED_AT_ONCE", 2)
    with pytest.raises(InputError, match="candidate 3 is empty"):
        retriever.add(["a", "b", "c", ""])
    with pytest.raises(InputError, match="candidate 2 has no id, which an update needs"):
        retriever.update([{"id": "cat", "text": "x"}, {"id": "dog", "text": "x"}, "house"])


def test_an_update_changes_only_the_metadata_that_is_given(retriever: Retriever) -> None:
    retriever.update([Item("cat", "a cat ran"), {"id": "7", "text": "new house", "topic": "homes"}])
    retriever.update([{"id": "7", "text": "new house", "year": 2020}, Item("cat", "a cat ran", {})])
    retriever.update([Item("dog", "a dog sat", {"year": None}), Item("new", "a river")])
    assert {item.id: (item.text, item.metadata) for item in retriever} == {
        "3": ("never", {}),
        "cat": ("a cat ran", {"topic": "animals"}),
        "7": ("new house", {"topic": "homes", "year": 2020}),
        "dog": ("a dog sat", {"topic": "animals"}),
        "new": ("a river", {}),
    }
    assert retriever.search("a cat ran", 1, where={"topic": "animals"})[0].id == "cat"


def test_metadata_alone_is_replaced_without_encoding(
    retriever: Retriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Retriever, "_encoded", None)
    before = [item.id for item in retriever]
    retriever.update_metadata({"cat": {"topic": "pets"}, "3": {"year": 1}})
    assert [item.id for item in retriever] == before
    assert retriever.get("cat") == Item("cat", "the cat sat on the mat", {"topic": "pets"})
    with pytest.raises(InputError, match="the index has no candidate 'nobody'"):
        retriever.update_metadata({"cat": {}, "nobody": {}})
    assert retriever.get("cat").metadata == {"topic": "pets"}


def test_candidates_are_read_by_id(retriever: Retriever) -> None:
    assert retriever.get("7") == Item("7", "old house", {"topic": "places", "year": 2021})
    assert "7" in retriever
    assert "nobody" not in retriever
    assert 7 not in retriever
    with pytest.raises(InputError, match="the index has no candidate 'nobody'"):
        retriever.get("nobody")


def test_iteration_reads_one_batch_after_another(
    retriever: Retriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "READ_AT_ONCE", 3)
    assert [item.id for item in retriever] == ["cat", "dog", "7", "3"]
    retriever.remove(["dog"])
    assert [item.id for item in retriever] == ["cat", "7", "3"]


def test_an_export_can_be_added_again_and_has_the_vectors(
    retriever: Retriever, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "READ_AT_ONCE", 3)
    retriever.remove(["dog"])
    retriever.update([Item("cat", "the cat sat")])
    lines, vectors = tmp_path / "all.jsonl", tmp_path / "all.npy"
    assert retriever.export(lines, vectors=vectors) == 3
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    assert rows[0] == {"id": "7", "text": "old house", "metadata": {"topic": "places", "year": 2021}}
    expected = retriever._encoded([row["text"] for row in rows])
    np.testing.assert_allclose(np.load(vectors), expected, atol=1e-6)
    copy = Retriever(retriever.scorer)
    copy.add(rows)
    assert list(copy) == list(retriever)
    with pytest.raises(OutputError, match="exists: choose another path"):
        retriever.export(lines)
    assert retriever.export(lines, overwrite=True) == 3
    with pytest.raises(InputError, match="need a file each"):
        retriever.export(lines, vectors=lines, overwrite=True)
    with pytest.raises(InputError, match="has no candidates to export"):
        Retriever(retriever.scorer).export(tmp_path / "none.jsonl")


def test_names_and_paths_are_taken_for_scorer_and_reranker(tiny_folder: FolderOf, tmp_path: Path) -> None:
    cross = tmp_path / "cross"
    tercet.CrossEncoder.from_backbone(tiny_folder("bert"), device="cpu").save(cross)
    path = tmp_path / "some.tercet"
    with Retriever(tiny_folder("bert"), reranker=str(cross), path=path) as retriever:
        retriever.add(["the cat sat", "a dog ran"])
        expected = retriever.search("a dog")
    assert expected.certainty is tercet.records.Certainty.RERANKED
    assert Retriever.open(path, reranker=cross).search("a dog") == expected
    with pytest.raises(ModelError, match="there is no folder"):
        Retriever.open(path, reranker=tmp_path / "missing")


def test_an_export_holds_one_state_of_an_index_that_changes_meanwhile(
    tiny: tercet.BiEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    retriever = Retriever(tiny)
    retriever.add([Item("cat", "the cat sat"), Item("dog", "a dog ran"), Item("7", "old house"), "never"])

    def change_then_convert(item: Item) -> dict[str, Any]:
        if item.id == "cat":  # the first one: the second batch is not read yet
            other = Store(retriever.path)
            other.remove(["7"])
            other.add([Item("new", "a river")], retriever.scorer.encode(["a river"]))
        return as_dict(item)

    monkeypatch.setattr(reading, "READ_AT_ONCE", 2)
    monkeypatch.setattr(export, "as_dict", change_then_convert)
    assert retriever.export(tmp_path / "candidates.jsonl") == 4
    lines = (tmp_path / "candidates.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["cat", "dog", "7", "3"]
    assert [item.id for item in retriever] == ["cat", "dog", "3", "new"]
