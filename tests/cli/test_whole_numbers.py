"""Whole numbers that no machine can count to are one line that names the option."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.cli.command import assert_fails, tercet

from tercet.cli.main import app

HUGE = "9" * 26
RECIPE = "bi-sample"  # an argument of any command; recipes are read before options are checked
REQUIRED = {
    "--candidates": "sample:faq.en",
    "--model": "bi",
    "--out": "out",
    "-o": "out",
    "--output": "out",
    "--data": "a.csv",
}


def commands(command: Any, *words: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All commands with the words that call them."""
    if hasattr(command, "commands"):
        for name, each in command.commands.items():
            yield from commands(each, *words, name)
    else:
        yield words, command


def integer_options() -> list[tuple[tuple[str, ...], str, list[str]]]:
    """Each whole-number option of each command, and the arguments that the command needs."""
    found = []
    for words, command in commands(typer.main.get_command(app)):
        needed: list[str] = []
        for each in command.params:
            if each.required:
                is_option = each.opts[0].startswith("-")
                needed += [each.opts[0], REQUIRED[each.opts[0]]] if is_option else [RECIPE]
        found += [
            (words, each.opts[0], needed)
            for each in command.params
            if each.type_descriptor.annotation in (int, list[int])
        ]
    return found


OPTIONS = integer_options()


def test_the_options_are_found() -> None:
    assert {("evaluate",), ("rank",), ("bench",), ("new", "poly")} <= {words for words, _, _ in OPTIONS}


@pytest.mark.parametrize(
    ("words", "option", "needed"),
    OPTIONS,
    ids=[f"{' '.join(words)} {option}" for words, option, _ in OPTIONS],
)
def test_a_number_beyond_64_bits_is_an_error_that_names_the_option(
    words: tuple[str, ...], option: str, needed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = tercet(*words, *needed, option, HUGE)
    if refused.returncode == 2:  # the option has a maximum of its own
        assert option in refused.stderr
        return
    assert_fails(
        refused, f"error: {option} must be from -9,223,372,036,854,775,807 to 9,223,372,036,854,775,807"
    )


def test_more_classes_than_the_limit_are_refused() -> None:
    refused = tercet("new", "cross", "out", "--num-labels", str(10**18))
    assert_fails(refused, "num_labels is 1,000,000,000,000,000,000, and at most 100,000 are allowed")
