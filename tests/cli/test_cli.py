"""The command line as users meet it."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.cli.command import assert_fails, tercet, tercet_process


def test_help_names_every_command() -> None:
    shown = tercet("--help").stdout
    assert all(command in shown for command in ("rank", "score", "explain", "encode", "new", "info", "demo"))


def test_the_version_is_shown() -> None:
    assert tercet("--version").stdout.startswith("tercet 0.")


def test_rank_shows_a_table() -> None:
    result = tercet("rank", "the cat sat", "-k", "1", stdin="a cat was sitting\nstocks fell\n")
    assert result.returncode == 0
    assert "a cat was sitting" in result.stdout
    assert "stocks fell" not in result.stdout


def test_rank_gives_json_for_programs() -> None:
    result = tercet(
        "rank", "my parcel is late", "-c", "sample:faq.en", "--column", "answer", "-k", "2", "--json"
    )
    ranking = json.loads(result.stdout)["ranking"]
    assert len(ranking) == 2
    assert ranking[0]["score"] >= ranking[1]["score"]
    assert set(ranking[0]) == {"position", "score", "candidate", "context_cut", "candidate_cut"}


def test_several_words_are_the_turns_of_a_dialogue() -> None:
    result = tercet("rank", "hi", "how are you?", "--json", stdin="fine\n")
    assert json.loads(result.stdout)["context"] == ["hi", "how are you?"]


def test_rank_answers_every_context_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "asked.jsonl"
    file.write_text('{"context": "a cat"}\n{"context": ["hi", "a stock"]}\n')
    result = tercet("rank", "--contexts", str(file), "--json", "-k", "1", stdin="kitten\nmarket\n")
    tops = [json.loads(line)["ranking"][0]["candidate"] for line in result.stdout.splitlines()]
    assert tops == ["kitten", "market"]


def test_score_keeps_the_order_given() -> None:
    lines = tercet("score", "a cat", "stocks fell", "a kitten").stdout.splitlines()
    assert [line.split("  ")[-1] for line in lines] == ["stocks fell", "a kitten"]
    assert float(lines[0].split()[0]) < float(lines[1].split()[0])


def test_score_reads_pairs_from_a_file() -> None:
    rows = [
        json.loads(line)
        for line in tercet("score", "--pairs", "sample:pairs.en", "--json").stdout.splitlines()
    ]
    assert len(rows) == 120
    assert all(-1 <= row["score"] <= 1 for row in rows)


def test_encode_writes_a_file_of_vectors(tmp_path: Path) -> None:
    out = tmp_path / "vectors.npy"
    result = tercet("encode", "-", "-o", str(out), "--json", stdin="one\ntwo\nthree\n")
    assert json.loads(result.stdout) == {"path": str(out), "count": 3, "width": 384, "cut": 0}
    assert np.load(out).shape == (3, 384)


def test_encode_reports_texts_that_were_cut(tmp_path: Path) -> None:
    result = tercet("encode", "-", "-o", str(tmp_path / "vectors.npy"), stdin="word " * 9999)
    assert "1 were longer than the model reads" in result.stdout
    assert result.stderr.startswith("note: 1 of 1 candidates were longer than the 256 tokens")


def test_info_describes_the_model() -> None:
    facts = json.loads(tercet("info", "--json").stdout)
    assert facts["model"]["width"] == 384
    assert facts["machine"]["torch"]


def test_the_demo_runs() -> None:
    shown = tercet("demo").stdout
    assert "120 questions" in shown
    assert all(re.search(rf"│ {name} +│ +\d+ │", shown) for name in ("bi", "poly", "cross"))


@pytest.mark.parametrize(
    ("words", "stdin", "message"),
    [
        (("rank", "hi"), "", "there are no candidates"),
        (("rank", "hi"), "one\n\ntwo\n", "standard input, line 2: column 'text' is empty"),
        (("rank", "hi"), b"one\ntw\xff\n", "standard input, line 2: byte 3 is not UTF-8"),
        (
            ("rank", "hi", "--format", "jsonl"),
            '{"text": "\\ud800"}\n',
            "line 1: column 'text' holds a lone surrogate",
        ),
        (("rank", " "), "one\n", "context 0 is empty"),
        (("rank", "hi", "-k", "0"), "one\n", "k must be at least 1, got 0"),
        (("rank",), "one\n", "give CONTEXT or --contexts"),
        (("rank", "hi", "-c", "nothing.txt"), "", "there is no file nothing.txt"),
        (("rank", "hi", "-c", "sample:faq.en"), "", "'context', 'answer', 'topic'"),
        (
            ("rank", "hi", "-c", "sample:faq.en", "--column", "x"),
            "",
            "there is no column 'x', only 'context'",
        ),
        (("rank", "hi", "-c", "sample:faq.fr"), "", "sample must be one of faq.en"),
        (("rank", "hi", "--model", "/no/where"), "one\n", "there is no folder /no/where"),
        (("rank", "hi", "--precision", "int1"), "one\n", "precision must be one of fp32, bf16"),
        (("score", "hi"), "", "at least one candidate"),
        (("score", "hi", "ho", "--pairs", "x.csv"), "", "only one of them"),
        (("encode", "-", "-o", "/no/where/x.npy"), "one\n", "/no/where is not a folder"),
        (("encode", "-", "-o", "/tmp"), "one\n", "is a folder that exists"),
        (
            ("encode", "-", "-o", "x.npy", "--side", "middle"),
            "one\n",
            "side must be one of context, candidate",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(words: tuple[str, ...], stdin: str | bytes, message: str) -> None:
    assert_fails(tercet(*words, stdin=stdin), message)


def test_an_unexpected_failure_is_one_line_and_debug_shows_the_rest(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise RuntimeError('broken on purpose')")
    environment = {"PYTHONPATH": str(tmp_path)}
    short = tercet_process("score", "a", "b", environment=environment)
    assert_fails(short, "unexpected RuntimeError: broken on purpose")
    long = tercet_process("--debug", "score", "a", "b", environment=environment)
    assert long.returncode == 1
    assert "Traceback" in long.stderr


CUDA = "CUDA out of memory. Tried to allocate 140.00 MiB. GPU 0 has a total capacity of 139.80 GiB of which"
CPU = (
    "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (f"RuntimeError({CUDA!r})", "Tried to allocate 140.00 MiB"),
        (
            "RuntimeError('CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`')",
            "ALLOC_FAILED",
        ),
        (
            f"RuntimeError({CPU + 'allocate 4000000000000000 bytes. Error code 12'!r})",
            "4000000000000000 bytes",
        ),
        ("MemoryError('Unable to allocate 728. TiB for an array with shape (10,)')", "728. TiB"),
        ("OSError(12, 'Cannot allocate memory')", "Cannot allocate memory"),
        ("MemoryError()", "no more to be had"),
    ],
)
def test_full_memory_is_explained(error: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text(f"raise {error}")
    result = tercet_process("score", "a", "b", environment={"PYTHONPATH": str(tmp_path)})
    assert_fails(result, "error: memory is full")
    assert said in result.stderr
    assert "batches.chunk_tokens" in result.stderr
    assert "total capacity" not in result.stderr


@pytest.mark.parametrize(
    "words", [("rank", "--bogus"), ("encode", "a.txt"), ("no-such-command",), ("rank", "-k", "x")]
)
def test_wrong_options_are_explained_with_status_2(words: tuple[str, ...]) -> None:
    result = tercet(*words)
    assert result.returncode == 2
    assert "Usage" in result.stderr
    assert "unexpected" not in result.stderr


def test_contexts_and_candidates_cannot_share_standard_input() -> None:
    assert_fails(tercet("rank", "--contexts", "-", "-c", "-"), "cannot both come from standard input")


def test_a_terminal_is_not_commanded_by_data() -> None:
    assert "\x1b" not in tercet("score", "a", "b\x1b[2Jc").stdout


def test_an_existing_output_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "vectors.npy"
    out.write_text("precious")
    assert_fails(tercet("encode", "-", "-o", str(out), stdin="one\n"), "vectors.npy exists")
    assert out.read_text() == "precious"
