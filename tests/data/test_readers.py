"""Data sets by their names, readers and columns."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tercet.data.overlap import overlap, without_overlap
from tercet.data.readers import DataConfig, all_lessons, read_lessons
from tercet.data.sources import data_root, open_source
from tercet.data.summary import summarise
from tercet.errors import DataError, InputError
from tercet.records import Lesson


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def read(path: Path, **settings: Any) -> list[Lesson]:
    return list(read_lessons(DataConfig(files=(path.name,), **settings), root=path.parent))


def test_columns_are_called_as_the_file_calls_them(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl.gz", [{"q": "one", "a": "two", "s": 3}])
    found = read(file, columns={"context": "q", "candidate": "a", "target": "s"})
    assert found == [Lesson("one", ("two",), (3.0,))]
    assert found[0].where == f"{file}, line 1"


def test_every_reader_reads_its_usual_columns(tmp_path: Path) -> None:
    rows: dict[str, tuple[dict[str, Any], list[Lesson]]] = {
        "pairs": ({"context": "a", "candidate": "b", "score": 1}, [Lesson("a", ("b",), (1.0,))]),
        "triplets": ({"anchor": "a", "positive": "b", "negative": "c"}, [Lesson("a", ("b", "c"))]),
        "answers": ({"context": ["a", "b"], "answer": "c"}, [Lesson(("a", "b"), ("c",))]),
        "choices": ({"context": "a", "candidates": ["b", "c"], "label": 1}, [Lesson("a", ("c", "b"))]),
        "dialogues": ({"turns": ["a", "b", "c"]}, [Lesson(("a",), ("b",)), Lesson(("a", "b"), ("c",))]),
        "documents": ({"text": "One. Two! Three"}, [Lesson("One.", ("Two!",)), Lesson("Two!", ("Three",))]),
    }
    for reader, (row, lessons) in rows.items():
        assert read(write(tmp_path / f"{reader}.jsonl", [row]), reader=reader) == lessons, reader


def retrieval_set(folder: Path, judgements: list[dict[str, Any]]) -> DataConfig:
    write(folder / "corpus.jsonl", [{"_id": "d1", "title": "T", "text": "body"}, {"_id": 2, "text": "x"}])
    write(folder / "queries.jsonl", [{"_id": "q", "text": "what?"}])
    write(folder / "qrels.jsonl", judgements)
    return DataConfig(files=("corpus.jsonl", "queries.jsonl", "qrels.jsonl"), reader="retrieval")


def test_a_retrieval_set_joins_its_three_files(tmp_path: Path) -> None:
    config = retrieval_set(
        tmp_path,
        [
            {"query-id": "q", "corpus-id": "d1", "score": 2},
            {"query-id": "q", "corpus-id": 2, "score": 0},  # judged, and no answer
            {"query-id": "q", "corpus-id": "2"},  # without a grade it is one
        ],
    )
    assert all_lessons(config, root=tmp_path) == [Lesson("what?", ("T\nbody",)), Lesson("what?", ("x",))]


@pytest.mark.parametrize("grade", ["high", None, float("nan")])
def test_a_grade_that_is_no_number_is_refused(grade: object, tmp_path: Path) -> None:
    config = retrieval_set(tmp_path, [{"query-id": "q", "corpus-id": "d1", "score": grade}])
    with pytest.raises(DataError, match=r"qrels\.jsonl, line 1: column 'score'"):
        all_lessons(config, root=tmp_path)


def test_a_judgement_of_nothing_is_refused(tmp_path: Path) -> None:
    config = retrieval_set(tmp_path, [{"query-id": "q", "corpus-id": "gone"}])
    with pytest.raises(DataError, match=r"qrels\.jsonl, line 1: there is no text with the key 'gone'"):
        all_lessons(config, root=tmp_path)


def test_several_files_are_read_one_after_the_other(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / f"{name}.jsonl", [{"context": name, "answer": "x"}])
    config = DataConfig(files=("b.jsonl", "a.jsonl"), reader="answers")
    assert [lesson.context for lesson in read_lessons(config, root=tmp_path)] == ["b", "a"]


def test_a_limit_draws_by_chance_and_keeps_the_order(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", [{"context": f"{n}", "answer": "x"} for n in range(100)])
    drawn = [int(str(lesson.context)) for lesson in read(file, reader="answers", limit=10)]
    assert len(drawn) == 10
    assert drawn == sorted(drawn) != list(range(10))
    assert drawn == [int(str(lesson.context)) for lesson in read(file, reader="answers", limit=10)]
    assert drawn != [int(str(lesson.context)) for lesson in read(file, reader="answers", limit=10, seed=1)]
    assert len(read(file, reader="answers", limit=1000)) == 100


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"files": ()}, "files must name at least one file"),
        ({"files": ("a",), "reader": "poems"}, "reader must be one of pairs, triplets, answers"),
        ({"files": ("a",), "columns": {"query": "q"}}, "a column of pairs must be one of context, candidate"),
        ({"files": ("a",), "reader": "retrieval"}, "3 files, got 1"),
        ({"files": ("a",), "reader": "choices", "labels": ("x",)}, "labels are for pairs, not for choices"),
        ({"files": ("a",), "limit": 0}, "limit must be at least 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        DataConfig(**settings)


def test_an_unlabelled_row_is_named(tmp_path: Path) -> None:
    rows = [{"context": "a", "candidate": "b", "score": 1}, {"context": "a", "candidate": "b", "score": None}]
    with pytest.raises(DataError, match=r"a\.jsonl, line 2: column 'score' is empty: label the row"):
        read(write(tmp_path / "a.jsonl", rows))


def test_nothing_to_learn_from_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").touch()
    with pytest.raises(DataError, match="there are no rows to read"):
        all_lessons(DataConfig(files=("a.jsonl",)), root=tmp_path)


def test_a_file_that_is_not_under_the_folder_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no stsb/train\.jsonl under .*--data, TERCET_DATA"):
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
    found = all_lessons(config)
    assert found == [Lesson("a", ("b",)), Lesson("c", ("d",))]
    assert found[1].where.endswith("@train, row 2")


@pytest.mark.parametrize("name", ["hf:org/name", "hf:@train", "hf:"])
def test_a_hugging_face_name_needs_its_split(name: str) -> None:
    with pytest.raises(DataError, match="does not name a data set and its split"):
        list(open_source(name))


def test_a_hugging_face_split_that_is_not_there_is_said(tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason="needs tercet[datasets]")
    write(tmp_path / "set" / "train.jsonl", [{"context": "a", "answer": "b"}])
    with pytest.raises(DataError, match=r"@test cannot be read: .*"):
        list(open_source(f"hf:{tmp_path / 'set'}@test"))


def test_overlap_sees_through_case_space_and_order() -> None:
    train = [Lesson("A  b", ("c",)), Lesson("x", ("y",)), Lesson("c", ("a B",)), Lesson(("x", "z"), ("y",))]
    assert overlap(train, [Lesson("a b", ("C",))]) == [0, 2]
    assert overlap(train, [Lesson("x\nz", ("y",))]) == [3]


def test_training_rows_in_the_test_set_are_refused_or_dropped() -> None:
    train = [Lesson("a", ("b",), where="file, line 1"), Lesson("c", ("d",))]
    with pytest.raises(
        DataError, match="1 of 2 training rows are in the test data too, the first at file, line 1"
    ):
        without_overlap(train, train[:1], name="test", drop=False)
    assert without_overlap(train, train[:1], name="test", drop=True) == train[1:]
    with pytest.raises(DataError, match="all 2 training rows are in the test data"):
        without_overlap(train, train, name="test", drop=True)


def test_a_summary_worked_out_by_hand() -> None:
    lessons = [
        Lesson("abc", ("d", "e"), (1.0,)),
        Lesson("abc", ("d", "f"), (0.0,)),
        Lesson("a", ("longest",), (1.0,)),
    ]
    found = summarise(lessons, against=[Lesson("a", ("longest",))], labels=("no", "yes"))
    assert found == {
        "lessons": 3,
        "duplicates": 1,
        "shared with test": 1,
        "contexts": {
            "count": 3,
            "different": 2,
            "shortest": 1,
            "median": 1,
            "nine in ten up to": 1,
            "longest": 3,
        },
        "candidates": {
            "count": 5,
            "different": 4,
            "shortest": 1,
            "median": 1,
            "nine in ten up to": 1,
            "longest": 7,
        },
        "candidates of a lesson": {"1": 1, "2": 2},
        "targets": {"no": 1, "yes": 2},
    }


def test_many_values_are_counted_in_intervals() -> None:
    found = summarise(Lesson("a", ("b",), (value / 20,)) for value in range(21))["targets"]
    assert len(found) == 10
    assert sum(found.values()) == 21
    assert found["0 to 0.1"] == 2
    assert found["0.9 to 1"] == 3  # the highest value belongs to the last


@pytest.mark.parametrize("value", [10**400, "1e999"])
def test_a_score_too_large_for_a_number_is_named(value: object, tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", [{"context": "a", "candidate": "b", "score": value}])
    with pytest.raises(DataError, match=r"a\.jsonl, line 1: column 'score' must be a (finite )?number"):
        read(file)


def test_the_largest_numbers_have_a_summary() -> None:
    found = summarise(Lesson("a", ("b",), (value * 1e307,)) for value in range(-17, 18))
    assert sum(found["targets"].values()) == 35


def test_an_empty_set_has_a_summary() -> None:
    assert summarise([]) == {"lessons": 0}
