"""``tercet evaluate``, ``compare`` and ``bench``."""

import json
from pathlib import Path

import pytest
from tests.cli.command import assert_fails, tercet, words_of

FAQ = "answers:sample:faq.en"


def test_evaluate_writes_numbers_and_a_page_that_needs_no_network(tmp_path: Path) -> None:
    out = tmp_path / "report"
    told = tercet("evaluate", "bm25", "tfidf", FAQ, "similarity:sample:pairs.en", "-o", str(out))
    assert "R@1/120" in told.stdout
    assert "spearman" in told.stdout
    found = json.loads((out / "results.json").read_text())
    assert [task["task"] for task in found["tasks"]] == ["sample:faq.en", "sample:pairs.en"]
    first, second = found["tasks"][0]["rows"]
    assert first["against_first"] is None
    assert second["against_first"]["verdict"] == "no difference shown"
    assert len(first["worst"]) == 20
    figure = first["measures"]["R@1/120"]
    assert figure["low"] <= figure["value"] <= figure["high"]
    assert found["environment"]["packages"]["torch"]
    page = (out / "report.html").read_text()
    assert 'src="PICTURE"' in words_of(page)
    assert "http" not in words_of(page)


def test_texts_on_the_page_are_escaped(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    rows = [{"context": f"<script>alert({n})</script>", "answer": f"<b>{n}</b>"} for n in range(3)]
    file.write_text("\n".join(map(json.dumps, rows)))
    tercet("evaluate", "bm25", f"answers:{file}", "-o", str(tmp_path / "out"))
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<script>" not in page
    assert "<b>" not in page


def test_evaluate_as_json_prints_nothing_else() -> None:
    told = tercet("evaluate", "bm25", FAQ, "--json")
    assert json.loads(told.stdout)["tasks"][0]["cases"] == 120


def test_columns_are_named_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("question,reply\nwhere is it,here it is\nwho was it,it was me\n")
    told = tercet(
        "evaluate", "bm25", f"answers:{file}", "--column", "context=question", "--column", "answer=reply"
    )
    assert "R@1/2" in told.stdout


def test_compare_shows_where_models_disagree() -> None:
    told = tercet("compare", "tfidf", "bm25", FAQ, "-n", "1").stdout
    assert "bm25 against tfidf: +0.00 no difference shown" in told
    assert told.count("does better in") == 2
    assert told.count("wanted") == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("bm25",), "name a task"),
        ((FAQ,), "name a model"),
        (("bm25", "bm25", FAQ), "two models are called 'bm25'"),
        (("nowhere/model", FAQ), "nowhere"),
        (("bm25", "tasks-none.toml"), "there is no task"),
        (("bm25", "answers:none.jsonl"), "none.jsonl"),
        (("bm25", FAQ, "--column", "answer"), "ROLE=NAME"),
        (("bm25", FAQ, "--hybrid"), "for retrieval"),
        (("bm25", "probe:sample:faq.en", "--column", "text=context", "--column", "label=topic"), "vector"),
        (("bm25", FAQ, "--precision", "int3"), "precision must be"),
    ],
)
def test_what_cannot_be_measured_is_said_in_one_line(arguments: tuple[str, ...], said: str) -> None:
    assert_fails(tercet("evaluate", *arguments), said)


def test_a_report_does_not_overwrite(tmp_path: Path) -> None:
    (tmp_path / "report").mkdir()
    assert_fails(tercet("evaluate", "bm25", FAQ, "-o", str(tmp_path / "report")), "report")


def test_bench_times_the_three_scorers(tmp_path: Path) -> None:
    told = tercet("bench", "--size", "50", "--rounds", "2", "-o", str(tmp_path / "bench"))
    assert "| poly 64 |" in told.stdout
    found = json.loads((tmp_path / "bench" / "bench.json").read_text())
    names = {line["name"] for line in found["lines"]}
    assert {"bi", "poly 16", "poly 360", "cross", "bi, sentence-transformers"} <= names
    assert all(len(line["seconds"]) == 2 for line in found["lines"])
    assert (tmp_path / "bench" / "bench.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "bench" / "bench.md").is_file()


def test_json_stays_json_where_a_report_is_written_too(tmp_path: Path) -> None:
    told = tercet("evaluate", "bm25", FAQ, "--json", "-o", str(tmp_path / "report"))
    assert json.loads(told.stdout)["tasks"]


def test_a_label_with_dollars_is_drawn_as_it_is(tmp_path: Path) -> None:
    told = tercet("evaluate", r"a$\bad$=bm25", "tfidf", FAQ, "-o", str(tmp_path / "report"))
    assert told.returncode == 0
    assert (tmp_path / "report" / "report.html").is_file()


def test_an_option_that_does_not_fit_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    assert_fails(tercet("evaluate", "bm25", "nowhere", FAQ), "nowhere")
