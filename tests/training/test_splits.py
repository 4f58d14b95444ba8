"""Held-out dev data: groups stay together."""

import json
from pathlib import Path

import pytest

from tercet.data.readers import read_examples
from tercet.errors import DataError, InputError
from tercet.records import Example
from tercet.settings.data import DataConfig
from tercet.training.splits import hold_out


def write_dialogues(folder: Path) -> Path:
    """A file with 40 dialogues of five rows each; every row is an answer to a turn."""
    file = folder / "dialogues.jsonl"
    rows = [
        {"dialogue": number, "context": [f"turn {number} {turn}"], "answer": f"answer {number} {turn}"}
        for turn in range(5)
        for number in range(40)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def dialogues_of(examples: list[Example]) -> set[str]:
    return {str(example.context[0]).split()[1] for example in examples}


def test_rows_of_one_dialogue_are_held_out_together(tmp_path: Path) -> None:
    config = DataConfig(files=(str(write_dialogues(tmp_path)),), reader="answers", group_column="dialogue")
    train, held_out = hold_out(read_examples(config), seed=0)
    assert len(held_out) == 20
    assert len(train) == 180
    assert not dialogues_of(train) & dialogues_of(held_out)


def test_without_a_group_column_rows_are_held_out_one_by_one(tmp_path: Path) -> None:
    config = DataConfig(files=(str(write_dialogues(tmp_path)),), reader="answers")
    train, held_out = hold_out(read_examples(config), seed=0)
    assert dialogues_of(train) & dialogues_of(held_out)


def examples_of(*sizes: int) -> list[Example]:
    return [
        Example(context=f"{group} {position}", candidates=("yes",), group=str(group))
        for group, size in enumerate(sizes)
        for position in range(size)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_a_group_with_most_of_the_data_stays_in_the_training_data(seed: int) -> None:
    train, held_out = hold_out(examples_of(199, 1), seed=seed)
    assert (len(train), len(held_out)) == (199, 1)


def test_a_single_group_cannot_be_split() -> None:
    with pytest.raises(
        InputError, match=r"too few examples .*, 200 in groups of up to 200: add dev data .*data\.dev"
    ):
        hold_out(examples_of(200), seed=0)


@pytest.mark.parametrize("value", [None, ""])
def test_a_row_without_a_group_is_named(tmp_path: Path, value: object) -> None:
    file = tmp_path / "dialogues.jsonl"
    file.write_text(json.dumps({"dialogue": value, "context": "a", "answer": "b"}) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"line 1.*'dialogue' is empty"):
        read_examples(DataConfig(files=(str(file),), reader="answers", group_column="dialogue"))


def test_a_missing_group_column_is_named_with_its_file(tmp_path: Path) -> None:
    file = write_dialogues(tmp_path)
    config = DataConfig(files=(str(file),), reader="answers", group_column="topic")
    with pytest.raises(DataError, match=r"dialogues\.jsonl.*topic"):
        read_examples(config)


def test_a_group_column_must_be_a_string() -> None:
    with pytest.raises(InputError, match="group_column must be a string"):
        DataConfig(files=("a",), reader="answers", group_column=5)  # possible in TOML


def test_retrieval_has_no_group_column() -> None:
    with pytest.raises(InputError, match="group_column applies to rows of one file"):
        DataConfig(files=("a", "b", "c"), reader="retrieval", group_column="dialogue")
