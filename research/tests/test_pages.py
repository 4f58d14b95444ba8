"""The tables on docs/results.md and research/notes.md are those of the stored results.

These tests take about half a minute: they repeat all bootstraps and permutation tests of the study.
"""

import sys
from importlib import import_module
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
results = import_module("results")


@pytest.fixture(scope="module")
def tables() -> dict[str, str]:
    stored: dict[str, str] = results.stored_tables()
    return stored


@pytest.mark.parametrize("page", results.PAGES, ids=lambda page: page.name)
def test_the_tables_of_a_page_are_those_of_the_stored_results(page: Path, tables: dict[str, str]) -> None:
    text = page.read_text(encoding="utf-8")
    written = results.with_tables(text, tables)
    assert written == text, "write the tables again: python research/results.py --stored"


def test_every_table_is_on_a_page(tables: dict[str, str]) -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in results.PAGES)
    shown = {match["name"] for match in results.TABLE.finditer(pages)}
    assert shown == {*tables, *results.MEASURED}


def test_a_new_table_replaces_the_old_one_and_nothing_else() -> None:
    block = "<!-- table: {} -->\n{}\n<!-- end -->\n"
    page = "before\n" + block.format("codes", "old") + "after\n" + block.format("korean", "kept")
    assert results.with_tables(page, {"codes": "new"}) == page.replace("old", "new")


def test_a_page_cannot_name_a_table_that_does_not_exist() -> None:
    with pytest.raises(SystemExit, match="there is no table 'cods': choose from similarity"):
        results.with_tables("<!-- table: cods -->\n<!-- end -->\n", {"codes": "new"})
