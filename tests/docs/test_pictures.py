"""The drawings are those that their code draws, are small, and take the colours of the page."""

import re
from pathlib import Path

import pytest

from drawings import DRAWINGS
from measured import MEASURED, quality

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
MAX_BYTES = 100_000


@pytest.mark.parametrize("name", DRAWINGS)
def test_the_drawing_is_what_its_code_draws(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == DRAWINGS[name]().svg()


def test_the_plot_has_the_figures_of_the_tables() -> None:
    assert (FOLDER / "quality.svg").read_text(encoding="utf-8") == quality().svg()


@pytest.mark.parametrize("name", [*DRAWINGS, *MEASURED])
def test_the_picture_is_small_and_has_no_colour_of_its_own(name: str) -> None:
    svg = (FOLDER / name).read_text(encoding="utf-8")
    assert len(svg.encode()) < MAX_BYTES
    colours = set(re.findall(r'(?:fill|stroke)="([^"]+)"', svg))
    assert {
        colour for colour in colours if not colour.startswith(("var(--", "currentColor", "none"))
    } == set()


def test_no_other_picture_is_in_the_folder() -> None:
    assert {file.name for file in FOLDER.glob("*.svg")} == {*DRAWINGS, *MEASURED}
