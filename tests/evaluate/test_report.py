"""Reports: the HTML page and the JSON of tables."""

import json

import numpy as np
import pytest
from jinja2 import UndefinedError

from tercet.evaluate.report import against, as_json, page, percent
from tercet.evaluate.results import Case, Result
from tercet.evaluate.run import Row, Table
from tercet.evaluate.significance import Difference, MeanOf
from tercet.pages.render import render

ENVIRONMENT = {"command": ["tercet", "<evaluate>"], "gpus": [], "packages": {"torch": "<2>"}}


def row(label: str, *seeds: list[float]) -> Row:
    def result(values: list[float]) -> Result:
        right = np.array(values)
        return Result(
            "task",
            label,
            {"<accuracy>": MeanOf("right")},
            {"right": right},
            1 - right,
            lambda position: Case(f"<b>{position}", wanted="<i>", got="x" * 700),
            seconds=1.0,
        )

    return Row(label, tuple(map(result, seeds)))


@pytest.fixture
def table() -> Table:
    return Table("<task>", (row("<script>", [1, 0, 1, 0]), row("other", [1, 1, 1, 0], [1, 1, 0, 0])))


def test_every_value_on_the_page_is_escaped(table: Table) -> None:
    html = page([table], ENVIRONMENT)
    for text in ("<task>", "<script>", "<accuracy>", "<evaluate>", "<2>", "<b>", "<i>"):
        assert text not in html
        assert text.replace("<", "&lt;").replace(">", "&gt;") in html


def test_the_page_shows_every_metric_verdict_and_worst_case(table: Table) -> None:
    html = page([table], ENVIRONMENT)
    first, second = table.rows
    for shown in (
        percent(first, "<accuracy>"),
        percent(second, "<accuracy>"),
        against(table.verdicts["other"]),
    ):
        assert f"<td>{shown}</td>" in html
    assert "4 cases" in html
    assert html.count("<td>&lt;b&gt;") == 8
    assert f"<td>{'x' * 600}…</td>" in html
    assert 'src="data:image/png;base64,' in html


def test_a_percentage_has_its_interval_and_the_deviation_over_seeds(table: Table) -> None:
    assert percent(table.rows[0], "<accuracy>").startswith("50.00 (")
    assert percent(table.rows[1], "<accuracy>").startswith("62.50 ± 17.7 (")  # of 0.75 and 0.5


def test_a_small_p_value_is_shown_as_a_bound() -> None:
    assert against(Difference(0.1, 0.05, 0.2, 0.0004)) == "+10.00 better (p < 0.001)"
    assert against(Difference(-0.1, -0.2, 0.2, 0.4)) == "-10.00 no difference shown (p 0.400)"


def test_the_json_has_the_value_of_every_seed(table: Table) -> None:
    found = json.loads(json.dumps(as_json([table])))["tasks"][0]
    assert (found["task"], found["cases"]) == ("<task>", 4)
    assert found["rows"][0]["against_first"] is None
    assert found["rows"][1]["metrics"]["<accuracy>"]["seeds"] == [0.75, 0.5]


def test_a_value_that_a_template_needs_must_be_given() -> None:
    with pytest.raises(UndefinedError, match="environment"):
        render("report", tasks=[], reference="")
