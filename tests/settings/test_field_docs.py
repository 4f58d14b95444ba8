"""The settings of the scorers are documented, and the documentation is the help of ``tercet new``."""

from dataclasses import dataclass, fields

import pytest
import typer

from tercet.cli.new import new
from tercet.settings.field_docs import field_docs
from tercet.settings.models import SCORER_CONFIGS, ScorerKind


@dataclass
class Example:
    """A dataclass with a documented field and one without a docstring."""

    size: int = 1
    """The ``size``
    in tokens."""
    other: int = 2

    def method(self) -> None:
        """Not a field."""


def test_docs_are_one_line_without_markup() -> None:
    assert field_docs(Example) == {"size": "The size in tokens."}


@pytest.mark.parametrize("kind", SCORER_CONFIGS)
def test_every_setting_of_a_scorer_is_documented(kind: ScorerKind) -> None:
    config = SCORER_CONFIGS[kind]
    docs = field_docs(config)
    assert list(docs) == [field.name for field in fields(config)]
    assert all(text.endswith(".") for text in docs.values())


@pytest.mark.parametrize("kind", SCORER_CONFIGS)
def test_the_help_of_a_new_scorer_is_the_documentation_of_its_settings(kind: ScorerKind) -> None:
    command = typer.main.get_command(new).commands[kind]  # type: ignore[attr-defined]
    shown = {option.name: option.help for option in command.params}
    docs = field_docs(SCORER_CONFIGS[kind])
    assert {name: shown[name] for name in docs} == docs
