import json
from pathlib import Path

import pytest

from tercet.data.readers import DataConfig, all_lessons
from tercet.errors import DataError, InputError
from tercet.records import Lesson
from tercet.training.lesson_sets import hold_out


def talks(folder: Path) -> Path:
    """Forty dialogues of five rows each, every row an answer with the turns before it."""
    file = folder / "talks.jsonl"
    rows = [
        {"talk": talk, "context": [f"turn {talk} {turn}"], "answer": f"answer {talk} {turn}"}
        for turn in range(5)
        for talk in range(40)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def talks_of(lessons: list[Lesson]) -> set[str]:
    return {str(lesson.context[0]).split()[1] for lesson in lessons}


def test_rows_of_one_dialogue_are_held_out_together(tmp_path: Path) -> None:
    config = DataConfig(files=(str(talks(tmp_path)),), reader="answers", together="talk")
    train, held = hold_out(all_lessons(config), seed=0)
    assert len(held) == 20
    assert len(train) == 180
    assert not talks_of(train) & talks_of(held)


def test_without_a_column_rows_are_held_out_one_by_one(tmp_path: Path) -> None:
    config = DataConfig(files=(str(talks(tmp_path)),), reader="answers")
    train, held = hold_out(all_lessons(config), seed=0)
    assert talks_of(train) & talks_of(held)


def lessons_of(*sizes: int) -> list[Lesson]:
    return [
        Lesson(context=f"{group} {place}", candidates=("yes",), group=str(group))
        for group, size in enumerate(sizes)
        for place in range(size)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_a_group_that_is_most_of_the_data_is_learnt_from(seed: int) -> None:
    train, held = hold_out(lessons_of(199, 1), seed=seed)
    assert (len(train), len(held)) == (199, 1)


def test_one_group_cannot_be_split() -> None:
    with pytest.raises(
        InputError, match=r"too few lessons.*, 200 in groups of up to 200: name dev data .*data\.dev"
    ):
        hold_out(lessons_of(200), seed=0)


@pytest.mark.parametrize("value", [None, ""])
def test_a_row_of_no_dialogue_is_named(tmp_path: Path, value: object) -> None:
    file = tmp_path / "talks.jsonl"
    file.write_text(json.dumps({"talk": value, "context": "a", "answer": "b"}) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"line 1.*'talk' is empty"):
        all_lessons(DataConfig(files=(str(file),), reader="answers", together="talk"))


def test_a_column_that_is_not_there_is_named_with_its_file(tmp_path: Path) -> None:
    file = talks(tmp_path)
    config = DataConfig(files=(str(file),), reader="answers", together="dialogue")
    with pytest.raises(DataError, match=r"talks\.jsonl.*dialogue"):
        all_lessons(config)


def test_a_column_has_a_name() -> None:
    with pytest.raises(InputError, match="together must be a string"):
        DataConfig(files=("a",), reader="answers", together=5)  # what a recipe in TOML can hold


def test_three_files_have_no_column_in_common() -> None:
    with pytest.raises(InputError, match="together"):
        DataConfig(files=("a", "b", "c"), reader="retrieval", together="talk")
