"""``tercet evaluate``, ``tercet compare`` and ``tercet bench``."""

import json
import re
from pathlib import Path

import pytest
from tests.cli.command import assert_fails, assert_refused, tercet, text_of

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
    figure = first["metrics"]["R@1/120"]
    assert figure["low"] <= figure["value"] <= figure["high"]
    assert found["environment"]["packages"]["torch"]
    page = (out / "report.html").read_text()
    assert 'src="PICTURE"' in text_of(page)
    assert "http" not in text_of(page)


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


def test_compare_shows_the_cases_on_which_models_disagree() -> None:
    told = tercet("compare", "tfidf", "bm25", FAQ, "-n", "1").stdout
    better = int(re.search(r"tfidf is better in (\d+) of 120", told)[1])  # type: ignore[index]
    assert f"in (1 of {better} shown; --count shows more):" in told
    assert "bm25 compared with tfidf: +0.00 no difference shown" in told
    assert told.count("is better in") == 2
    assert told.count("expected") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bm25",), "no task among bm25: add task:stsb"),
        ((FAQ,), "give at least a model"),
        (("bm25", "bm25", FAQ), "two models are called 'bm25'"),
        (("./nowhere/model", FAQ), "there is no folder ./nowhere/model"),
        (("bm25", "tasks-none.toml"), "task tasks-none.toml does not exist"),
        (("bm25", "answers:none.jsonl"), "none.jsonl"),
        (("bm25", FAQ, "--column", "answer"), "ROLE=NAME"),
        (("bm25", FAQ, "--hybrid"), "for retrieval"),
        (("bm25", FAQ, "--split", "dev"), "split has no effect on choices"),
        (("bm25", "probe:sample:faq.en", "--limit", "3"), "limit has no effect on probe"),
        (("bm25", FAQ, "--rerank-depth", "5"), "--rerank-depth needs --reranker"),
        (("bm25", "sample:faq.en"), "write KIND:sample:faq.en"),
        (("bm25", "sample:poems.en"), "sample must be one of abstracts.en"),
        (("bm25", "retrieval:nowhere"), "there is no folder nowhere:"),
        (("bm25", "probe:sample:faq.en", "--column", "text=context", "--column", "label=topic"), "vector"),
    ],
)
def test_wrong_arguments_are_explained_in_one_line(arguments: tuple[str, ...], message: str) -> None:
    assert_fails(tercet("evaluate", *arguments), message)


def test_an_unknown_precision_is_refused() -> None:
    assert_refused(
        tercet("evaluate", "bm25", FAQ, "--precision", "int3"), "'int3' is not one of 'fp32', 'bf16', 'fp16'"
    )


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


def test_json_output_stays_valid_when_a_report_is_written(tmp_path: Path) -> None:
    told = tercet("evaluate", "bm25", FAQ, "--json", "-o", str(tmp_path / "report"))
    assert json.loads(told.stdout)["tasks"]


def test_a_label_with_dollars_is_drawn_as_it_is(tmp_path: Path) -> None:
    told = tercet("evaluate", r"a$\bad$=bm25", "tfidf", FAQ, "-o", str(tmp_path / "report"))
    assert told.returncode == 0
    assert (tmp_path / "report" / "report.html").is_file()


def test_a_missing_model_is_reported_before_anything_is_measured(tmp_path: Path) -> None:
    assert_fails(tercet("evaluate", "bm25", "./nowhere", FAQ), "there is no folder ./nowhere")
