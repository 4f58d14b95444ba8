"""The limits on what is read, and the environment variables that set them."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from tercet.errors import InputError
from tercet.inputs import check_candidates, check_context
from tercet.settings.field_docs import field_docs
from tercet.settings.limits import Limits, current_limits, variable

DOCS = Path(__file__).parents[2] / "docs"


def test_an_environment_variable_sets_a_limit_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert current_limits() == Limits()
    monkeypatch.setenv("TERCET_MAX_LINE_BYTES", "1000")
    assert current_limits() == Limits(max_line_bytes=1000)
    monkeypatch.setenv("TERCET_MAX_LINE_BYTES", "2000")
    assert current_limits().max_line_bytes == 2000


@pytest.mark.parametrize("value", ["many", "0", "-1", "1.5"])
def test_a_limit_is_a_positive_number(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERCET_MAX_DEPTH", value)
    with pytest.raises(InputError, match=r"TERCET_MAX_DEPTH must be a whole number.*, got"):
        current_limits()


def test_every_limit_is_documented_once_with_its_variable() -> None:
    assert list(field_docs(Limits)) == [each.name for each in fields(Limits)]
    text = "".join((DOCS / page).read_text(encoding="utf-8") for page in ("files.md", "models.md"))
    rows = re.findall(r"^\| `(TERCET_MAX_\w+)` \|", text, re.MULTILINE)
    assert sorted(rows) == sorted(variable(each.name) for each in fields(Limits))


def test_a_text_may_be_as_long_as_the_limit_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERCET_MAX_TEXT_CHARACTERS", "70000")
    assert check_candidates(["x" * 70_000])
    message = "has 70,001 characters, and at most 70,000 are allowed: .*TERCET_MAX_TEXT_CHARACTERS"
    with pytest.raises(InputError, match=f"candidate 1 {message}"):
        check_candidates(["fine", "x" * 70_001])
    with pytest.raises(InputError, match=f"turn 1 of context {message}"):
        check_context(["fine", "x" * 70_001])
