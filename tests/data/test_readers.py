"""Data sets by name, reader and columns."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tercet.data.overlap import overlap, without_overlap
from tercet.data.readers import READERS, iter_examples, read_examples
from tercet.data.sources import data_root, open_source
from tercet.data.summary import summarize
from tercet.errors import DataError, InputError
from tercet.records import Example
from tercet.settings.data import READER_KINDS, DataConfig


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def read(path: Path, **settings: Any) -> list[Example]:
    return list(iter_examples(DataConfig(files=(path.name,), **settings), root=path.parent))


def test_every_kind_of_reader_has_a_function() -> None:
    assert set(READERS) == set(READER_KINDS)


def test_column_names_can_be_set(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl.gz", [{"q": "one", "a": "two", "s": 3}])
    found = read(file, columns={"context": "q", "candidate": "a", "score": "s"})
    assert found == [Example("one", ("two",), (3.0,))]
    assert found[0].location == f"{file}, line 1"


def test_every_reader_reads_its_default_columns(tmp_path: Path) -> None:
    rows: dict[str, tuple[dict[str, Any], list[Example]]] = {
        "pairs": ({"context": "a", "candidate": "b", "score": 1}, [Example("a", ("b",), (1.0,))]),
        "triplets": ({"anchor": "a", "positive": "b", "negative": "c"}, [Example("a", ("b", "c"))]),
        "answers": ({"context": ["a", "b"], "answer": "c"}, [Example(("a", "b"), ("c",))]),
        "choices": ({"context": "a", "candidates": ["b", "c"], "label": 1}, [Example("a", ("c", "b"))]),
        "dialogues": ({"turns": ["a", "b", "c"]}, [Example(("a",), ("b",)), Example(("a", "b"), ("c",))]),
        "translations": ({"source": "a text", "target": "ein Text"}, [Example("ein Text", ("a text",))]),
        "documents": ({"text": "One. Two! Three"}, [Example("One.", ("Two!",)), Example("Two!", ("Three",))]),
    }
    for reader, (row, examples) in rows.items():
        assert read(write(tmp_path / f"{reader}.jsonl", [row]), reader=reader) == examples, reader


def retrieval_set(folder: Path, qrels: list[dict[str, Any]]) -> DataConfig:
    write(folder / "corpus.jsonl", [{"_id": "d1", "title": "T", "text": "body"}, {"_id": 2, "text": "x"}])
    write(folder / "queries.jsonl", [{"_id": "q", "text": "what?"}])
    write(folder / "qrels.jsonl", qrels)
    return DataConfig(files=("corpus.jsonl", "queries.jsonl", "qrels.jsonl"), reader="retrieval")


def test_a_retrieval_set_joins_its_three_files(tmp_path: Path) -> None:
    config = retrieval_set(
        tmp_path,
        [
            {"query-id": "q", "corpus-id": "d1", "score": 2},
            {"query-id": "q", "corpus-id": 2, "score": 0},  # irrelevant
            {"query-id": "q", "corpus-id": "2", "score": 1},
        ],
    )
    assert read_examples(config, root=tmp_path) == [Example("what?", ("T\nbody",)), Example("what?", ("x",))]


def test_judgements_without_a_relevance_are_relevant_if_none_has_one(tmp_path: Path) -> None:
    judged = [{"query-id": "q", "corpus-id": 2}, {"query-id": "q", "corpus-id": "d1"}]
    read = read_examples(retrieval_set(tmp_path, judged), root=tmp_path)
    assert [example.candidates for example in read] == [("x",), ("T\nbody",)]
    mixed = retrieval_set(tmp_path, [*judged, {"query-id": "q", "corpus-id": "d1", "score": 1}])
    with pytest.raises(DataError, match="lines 1 and 2: the judgement has no 'score', and others have one"):
        read_examples(mixed, root=tmp_path)


@pytest.mark.parametrize("relevance", ["high", None, float("nan")])
def test_a_relevance_that_is_not_a_number_is_rejected(relevance: object, tmp_path: Path) -> None:
    config = retrieval_set(tmp_path, [{"query-id": "q", "corpus-id": "d1", "score": relevance}])
    with pytest.raises(DataError, match=r"qrels\.jsonl, line 1: column 'score'"):
        read_examples(config, root=tmp_path)


def test_a_judgement_of_an_unknown_document_is_rejected(tmp_path: Path) -> None:
    config = retrieval_set(tmp_path, [{"query-id": "q", "corpus-id": "gone"}])
    with pytest.raises(DataError, match=r"qrels\.jsonl, line 1: there is no document with the id 'gone'"):
        read_examples(config, root=tmp_path)


def test_several_files_are_read_one_after_the_other(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / f"{name}.jsonl", [{"context": name, "answer": "x"}])
    config = DataConfig(files=("b.jsonl", "a.jsonl"), reader="answers")
    assert [example.context for example in iter_examples(config, root=tmp_path)] == ["b", "a"]


def test_a_limit_samples_at_random_and_keeps_the_order(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", [{"context": f"{n}", "answer": "x"} for n in range(100)])
    sampled = [int(str(example.context)) for example in read(file, reader="answers", limit=10)]
    assert len(sampled) == 10
    assert sampled == sorted(sampled) != list(range(10))
    assert sampled == [int(str(example.context)) for example in read(file, reader="answers", limit=10)]
    assert sampled != [
        int(str(example.context)) for example in read(file, reader="answers", limit=10, seed=1)
    ]
    assert len(read(file, reader="answers", limit=1000)) == 100


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"files": ()}, "files must name at least one file"),
        ({"files": ("a",), "reader": "poems"}, "reader must be one of pairs, triplets, answers"),
        ({"files": ("a",), "columns": {"query": "q"}}, "a column of pairs must be one of context, candidate"),
        ({"files": ("a",), "reader": "retrieval"}, r"retrieval reads 3 files .*, got 1"),
        ({"files": ("a",), "reader": "choices", "labels": ("x",)}, "labels apply to pairs, not to choices"),
        ({"files": ("a",), "limit": 0}, "limit must be at least 1"),
    ],
)
def test_invalid_settings_are_rejected(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        DataConfig(**settings)


def test_an_unlabelled_row_is_named(tmp_path: Path) -> None:
    rows = [{"context": "a", "candidate": "b", "score": 1}, {"context": "a", "candidate": "b", "score": None}]
    with pytest.raises(DataError, match=r"a\.jsonl, line 2: column 'score' is empty: fill it"):
        read(write(tmp_path / "a.jsonl", rows))


def test_an_empty_data_set_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").touch()
    with pytest.raises(DataError, match="no rows to read"):
        read_examples(DataConfig(files=("a.jsonl",)), root=tmp_path)


def test_a_missing_file_is_named_with_the_data_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no file .*stsb/train\.jsonl: .*TERCET_DATA, --data"):
        list(open_source("stsb/train.jsonl", root=tmp_path))


def test_the_data_folder_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERCET_DATA", str(tmp_path))
    assert data_root(None) == tmp_path
    assert data_root(Path("other")) == Path("other")


def test_a_hugging_face_data_set_is_read_from_a_local_folder(tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason="needs tercet[datasets]")
    write(
        tmp_path / "set" / "train.jsonl", [{"context": "a", "answer": "b"}, {"context": "c", "answer": "d"}]
    )
    config = DataConfig(files=(f"hf:{tmp_path / 'set'}@train",), reader="answers")
    found = read_examples(config)
    assert found == [Example("a", ("b",)), Example("c", ("d",))]
    assert found[1].location.endswith("@train, row 1")


@pytest.mark.parametrize("name", ["hf:org/name", "hf:@train", "hf:"])
def test_a_hugging_face_name_needs_a_split(name: str) -> None:
    with pytest.raises(DataError, match="does not name a data set and its split"):
        list(open_source(name))


def test_a_missing_hugging_face_split_is_named(tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason="needs tercet[datasets]")
    write(tmp_path / "set" / "train.jsonl", [{"context": "a", "answer": "b"}])
    with pytest.raises(DataError, match=r"@test cannot be read: .*"):
        list(open_source(f"hf:{tmp_path / 'set'}@test"))


def test_overlap_ignores_case_white_space_and_direction() -> None:
    train = [
        Example("A  b", ("c",)),
        Example("x", ("y",)),
        Example("c", ("a B",)),
        Example(("x", "z"), ("y",)),
    ]
    assert overlap(train, [Example("a b", ("C",))]) == [0, 2]
    assert overlap(train, [Example("x\nz", ("y",))]) == [3]


def test_training_rows_in_the_test_set_are_rejected_or_dropped() -> None:
    train = [Example("a", ("b",), location="file, line 1"), Example("c", ("d",))]
    with pytest.raises(
        DataError, match="1 of 2 training rows are in the test data too, the first at file, line 1"
    ):
        without_overlap(train, train[:1], name="test", drop=False)
    assert without_overlap(train, train[:1], name="test", drop=True) == train[1:]
    with pytest.raises(DataError, match="all 2 training rows are in the test data"):
        without_overlap(train, train, name="test", drop=True)


def test_a_summary_worked_out_by_hand() -> None:
    examples = [
        Example("abc", ("d", "e"), (1.0,)),
        Example("abc", ("d", "f"), (0.0,)),
        Example("a", ("longest",), (1.0,)),
    ]
    found = summarize(examples, against=[Example("a", ("longest",))], labels=("no", "yes"))
    assert found == {
        "examples": 3,
        "duplicates": 1,
        "shared with test": 1,
        "contexts": {
            "count": 3,
            "distinct": 2,
            "min": 1,
            "median": 1,
            "90th percentile": 1,
            "max": 3,
        },
        "candidates": {
            "count": 5,
            "distinct": 4,
            "min": 1,
            "median": 1,
            "90th percentile": 1,
            "max": 7,
        },
        "candidates per example": {"1": 1, "2": 2},
        "targets": {"no": 1, "yes": 2},
    }


def test_many_values_are_counted_in_intervals() -> None:
    found = summarize(Example("a", ("b",), (value / 20,)) for value in range(21))["targets"]
    assert len(found) == 10
    assert sum(found.values()) == 21
    assert found["0 to 0.1"] == 2
    assert found["0.9 to 1"] == 3  # the highest value belongs to the last


@pytest.mark.parametrize("value", [10**400, "1e999"])
def test_a_score_that_overflows_is_named(value: object, tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", [{"context": "a", "candidate": "b", "score": value}])
    with pytest.raises(DataError, match=r"a\.jsonl, line 1: column 'score' must be a (finite )?number"):
        read(file)


def test_very_large_targets_can_be_summarized() -> None:
    found = summarize(Example("a", ("b",), (value * 1e307,)) for value in range(-17, 18))
    assert sum(found["targets"].values()) == 35


def test_an_empty_data_set_can_be_summarized() -> None:
    assert summarize([]) == {"examples": 0}
