"""The roles of columns in the documentation are those that readers and tasks accept."""

import re
from dataclasses import fields
from inspect import signature
from pathlib import Path

import pytest

from tercet.data.readers import READERS
from tercet.data.retrieval import RetrievalColumns
from tercet.errors import InputError
from tercet.settings.data import READER_COLUMNS, READER_KINDS, DataConfig, ReaderKind
from tercet.settings.tasks import LABELLED_ROLES, TASK_KINDS, TASK_READERS, TaskConfig

DOCS = Path(__file__).parents[2] / "docs"
Roles = dict[str, str | None]


def documented(page: str, heading: str) -> dict[str, Roles]:
    """The roles in each row of the table with a column of this heading; None for optional roles."""
    lines = (DOCS / page).read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if f"| {heading} |" in line)
    position = [cell.strip() for cell in lines[start].split("|")].index(heading)
    found: dict[str, Roles] = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.split("|")]
        needed, _, optional = cells[position].partition("; optional ")
        roles: Roles = {
            role: name or role for role, name in re.findall(r"`(\w+)`(?: = \"([\w-]+)\")?", needed)
        }
        found[cells[1].strip("`")] = roles | dict.fromkeys(re.findall(r"`(\w+)`", optional))
    return found


def test_the_documented_roles_of_readers_are_those_accepted() -> None:
    assert documented("training.md", "roles and their default columns") == READER_COLUMNS


def test_the_documented_roles_of_tasks_are_those_accepted() -> None:
    labelled: Roles = {"text": "text", "label": "label", "other": None}
    assert set(labelled) == set(LABELLED_ROLES)
    expected = {kind: READER_COLUMNS[readers[0]] for kind, readers in TASK_READERS.items()}
    expected |= {kind: labelled for kind in TASK_KINDS if kind not in TASK_READERS}
    expected |= {"answers": READER_COLUMNS["answers"]}  # a kind of KIND:FILE
    assert documented("evaluation.md", "roles and their default columns") == expected


@pytest.mark.parametrize("reader", READER_KINDS)
def test_readers_take_the_roles_that_are_accepted(reader: ReaderKind) -> None:
    if reader == "retrieval":
        taken = {field.name for field in fields(RetrievalColumns)}
    else:
        taken = set(signature(READERS[reader]).parameters) - {"rows", "labels"}
    assert taken == set(READER_COLUMNS[reader])


@pytest.mark.parametrize("reader", READER_KINDS)
def test_a_wrong_role_lists_the_right_ones(reader: ReaderKind) -> None:
    files = ("a", "b", "c") if reader == "retrieval" else ("a",)
    roles = ", ".join(READER_COLUMNS[reader])
    with pytest.raises(InputError, match=f"a column of {reader} must be one of {roles}, got 'nothing'"):
        DataConfig(files=files, reader=reader, columns={"nothing": "x"})


def test_a_wrong_role_of_labelled_texts_lists_the_right_ones() -> None:
    with pytest.raises(InputError, match="a column of probe must be one of text, other, label, got 'target'"):
        TaskConfig(name="t", kind="probe", files=("a",), columns={"target": "x"})
