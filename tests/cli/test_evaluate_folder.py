"""``tercet evaluate`` on the folder of a retrieval set, and the example of its documentation."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from tests.cli.command import assert_fails, tercet

DOCS = Path(__file__).parents[2] / "docs" / "evaluation.md"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two documents, and three queries of which two are judged."""
    made = tmp_path / "my-set"
    made.mkdir()
    (made / "corpus.tsv").write_text("id\ttext\na\tred cats\nb\tblue dogs\n")
    (made / "queries.tsv").write_text("id\ttext\n1\tcats\n2\tdogs\n3\tbirds\n")
    (made / "qrels").mkdir()
    (made / "qrels" / "dev.tsv").write_text("1 0 a 1\n2 0 b 1\n")
    return made


def unwrapped(told: str) -> str:
    """The words of an output, whose lines are broken after a long path."""
    return " ".join(told.split())


def test_a_folder_is_evaluated_in_one_line(folder: Path) -> None:
    told = unwrapped(tercet("evaluate", "bm25", "tfidf", str(folder)).stdout)
    assert "my-set, 2 queries" in told
    assert "nDCG@10" in told
    assert "judgements: qrels/dev.tsv (the only split)" in told
    assert "skipped queries without a judgement: 1" in told


def test_json_and_report_say_what_was_skipped(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "report"
    told = tercet("evaluate", "bm25", str(folder), "--limit", "1", "--seed", "4", "--json", "-o", str(out))
    (task,) = json.loads(told.stdout)["tasks"]
    assert (task["cases"], task["sampled_from"]) == (1, 2)
    assert task["skipped"] == {"queries without a judgement": 1}
    stored = json.loads((out / "results.json").read_text())
    assert stored["tasks"][0]["skipped"] == task["skipped"]
    assert (stored["settings"]["limit"], stored["settings"]["seed"]) == (1, 4)
    page = (out / "report.html").read_text()
    assert "1 of 2 queries" in page
    assert "skipped queries without a judgement: 1" in page


def test_columns_of_a_folder_are_named_on_the_command_line(folder: Path) -> None:
    (folder / "queries.tsv").write_text("id\tquestion\n1\tcats\n2\tdogs\n")
    (folder / "corpus.tsv").write_text("id\tquestion\na\tred cats\nb\tblue dogs\n")
    assert "--column text=NAME" in tercet("evaluate", "bm25", str(folder)).stderr
    told = tercet("evaluate", "bm25", str(folder), "--column", "text=question").stdout
    assert "2 queries" in unwrapped(told)


def test_chunks_are_for_retrieval_and_are_said(folder: Path) -> None:
    told = tercet("evaluate", "bm25", str(folder), "--chunk", "50", "--chunk-overlap", "5").stdout
    assert "chunks: 50 tokens, overlap 5; BM25 and tf-idf read whole documents" in told
    refused = tercet("evaluate", "bm25", "answers:sample:faq.en", "--chunk", "50")
    assert_fails(refused, "--reranker, --hybrid and --chunk are for retrieval: remove them")


def test_the_rerank_depth_is_said(folder: Path) -> None:
    told = tercet("evaluate", "bm25", str(folder), "--reranker", "tfidf", "--rerank-depth", "1").stdout
    assert "bm25 + tfidf" in told
    assert "reranked documents of each query: 1" in told


def test_compare_takes_a_folder(folder: Path) -> None:
    told = tercet("compare", "bm25", "tfidf", str(folder), "--limit", "1").stdout
    assert "my-set, 1 of 2 queries" in told


def test_an_unknown_split_lists_the_existing_ones(folder: Path) -> None:
    assert_fails(tercet("evaluate", "bm25", str(folder), "--split", "test"), "choose one of dev")


def test_a_folder_that_is_neither_model_nor_set_is_explained(tmp_path: Path) -> None:
    told = tercet("evaluate", "bm25", "tfidf", str(tmp_path))
    assert_fails(told, "is neither a model nor a retrieval set")
    assert "config.json" in told.stderr
    assert "corpus.jsonl" in told.stderr
    assert "the folder is empty" in told.stderr


def test_a_folder_called_like_a_baseline_is_not_a_model(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bm25").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "2 queries" in tercet("evaluate", "bm25", "my-set").stdout


def test_each_problem_of_the_data_has_a_line_of_its_own(folder: Path) -> None:
    (folder / "qrels" / "dev.tsv").write_text("1 0 z 1\n9 0 a 1\n2 0 b much\n")
    told = tercet("evaluate", "bm25", str(folder))
    assert told.returncode == 1
    first, *listed = told.stderr.strip().splitlines()
    assert first == "error: 3 problems in the data: correct these rows"
    assert len(listed) == 3
    assert all(f"{folder}/qrels/dev.tsv, line" in line for line in listed)


def test_help_mentions_a_folder() -> None:
    assert "tercet evaluate bi bm25 my-folder" in " ".join(tercet("evaluate", "--help").stdout.split())


def test_the_example_of_the_documentation_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = DOCS.read_text(encoding="utf-8").partition("## Your own retrieval set")[2]
    lines = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)[0].splitlines()
    commands = [line for line in lines if line.startswith("tercet ")]
    script = "\n".join(line for line in lines if line not in commands)
    subprocess.run(["bash", "-e"], input=script, text=True, cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    table, limited = (tercet(*shlex.split(command)[1:]) for command in commands)
    assert "my-set, 2 queries" in table.stdout
    assert json.loads(limited.stdout)["tasks"][0]["sampled_from"] == 2


def test_the_sample_in_the_documentation_is_evaluated() -> None:
    assert "tercet evaluate bi bm25 sample:abstracts.en" in DOCS.read_text(encoding="utf-8")
    assert "sample:abstracts.en, 18 queries" in tercet("evaluate", "bm25", "sample:abstracts.en").stdout


def test_encoding_and_delimiter_of_the_data_are_options(tmp_path: Path) -> None:
    file = tmp_path / "faq.csv"
    rows = [f"{word} 질문/{word} 답변" for word in ("카드", "배송", "환불", "계정")]
    file.write_bytes("\n".join(["context/answer", *rows]).encode("cp949"))
    task = f"answers:{file}"
    assert "--encoding cp949" in tercet("evaluate", "bm25", task).stderr
    shown = tercet("evaluate", "bm25", task, "--encoding", "cp949", "--delimiter", "/")
    assert "4 cases" in shown.stdout, shown.stderr


def test_rows_with_empty_cells_are_skipped_on_request(tmp_path: Path) -> None:
    file = tmp_path / "faq.csv"
    file.write_text("context,answer\ncats,red cats\ndogs,\nbirds,blue birds\n")
    assert_fails(tercet("evaluate", "bm25", f"answers:{file}"), "line 3: column 'answer' is empty")
    done = tercet("evaluate", "bm25", f"answers:{file}", "--skip-empty")
    assert "2 cases" in done.stdout, done.stderr
    assert "1 of 3 rows" in done.stderr


def test_a_misspelt_name_suggests_the_right_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    assert_fails(tercet("evaluate", "bm25", "my-sets"), "did you mean my-set?")
    assert_fails(tercet("evaluate", "bm52", "my-set"), "did you mean bm25?")
