"""The commands that rank, score, encode and describe, as users type them."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.cli.command import assert_fails, assert_refused, tercet, tercet_process

from tercet import BiEncoder
from tercet.data.sample import questions
from tercet.scorers.calibration import Calibration, Platt


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


def test_rank_prints_json_for_programs() -> None:
    result = tercet(
        "rank", "my parcel is late", "-c", "sample:faq.en", "--column", "answer", "-k", "2", "--json"
    )
    ranking = json.loads(result.stdout)["ranking"]
    assert len(ranking) == 2
    assert ranking[0]["score"] >= ranking[1]["score"]
    assert set(ranking[0]) == {
        "position",
        "score",
        "text",
        "context_truncated",
        "candidate_truncated",
        "columns",
    }
    assert set(ranking[0]["columns"]) == {"question", "context", "topic"}


def test_rank_shows_another_column_of_the_candidates() -> None:
    words = (
        "rank",
        "My card was declined",
        "-c",
        "sample:faq.en",
        "--column",
        "question",
        "--show",
        "answer",
    )
    (row,) = json.loads(tercet(*words, "-k", "1", "--json").stdout)["ranking"]
    answers = {question.question: question.answer for question in questions("en")}
    assert row["answer"] == answers[row["text"]]
    assert row["answer"].split()[0] in tercet(*words, "-k", "1").stdout


def test_several_words_are_the_turns_of_a_dialogue() -> None:
    result = tercet("rank", "hi", "how are you?", "--json", stdin="fine\n")
    assert json.loads(result.stdout)["context"] == ["hi", "how are you?"]


def test_rank_answers_every_context_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "asked.jsonl"
    file.write_text('{"context": "a cat"}\n{"context": ["hi", "a stock"]}\n')
    result = tercet("rank", "--contexts", str(file), "--json", "-k", "1", stdin="kitten\nmarket\n")
    tops = [json.loads(line)["ranking"][0]["text"] for line in result.stdout.splitlines()]
    assert tops == ["kitten", "market"]


def test_other_columns_reach_the_json_output(tmp_path: Path) -> None:
    asked, answers = tmp_path / "asked.csv", tmp_path / "answers.json"
    asked.write_text('id,context,score\n7,"[""hi"", ""a cat""]",x\n')
    answers.write_text('[{"score": "high", "text": "kitten", "columns": 5}]')
    words = ("rank", "--contexts", str(asked), "-c", str(answers), "--json")
    ranked = json.loads(tercet(*words, "--show", "score").stdout)
    assert ranked["context"] == ["hi", "a cat"]
    assert ranked["columns"] == {"id": "7", "score": "x"}
    (entry,) = ranked["ranking"]
    assert entry["columns"] == {"score": "high", "columns": 5}
    assert isinstance(entry["score"], float)  # a column does not replace a field
    pairs = ("score", "--pairs", str(asked), "--candidate-column", "id", "--json")
    assert json.loads(tercet(*pairs).stdout)["columns"] == {"score": "x"}


def test_positions_start_at_0_in_tables_as_in_json() -> None:
    shown = tercet("rank", "the cat sat", stdin="stocks fell\na cat was sitting\n").stdout
    cells = [[cell.strip() for cell in line.split("│")] for line in shown.splitlines() if "│" in line]
    assert [(row[3], row[4]) for row in cells] == [("1", "a cat was sitting"), ("0", "stocks fell")]


def test_several_columns_are_joined(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("title;body;id\nCats;They sleep.;3\n")
    done = tercet("rank", "a cat", "-c", str(file), "--column", "title", "--column", "body", "--json")
    (entry,) = json.loads(done.stdout)["ranking"]
    assert (entry["text"], entry["columns"]) == ("Cats\nThey sleep.", {"id": "3"})


@pytest.mark.parametrize(
    "command", [("rank", "a cat", "-c"), ("score", "a cat", "-c"), ("pairs",), ("cluster",)]
)
def test_empty_rows_are_listed_or_skipped_with_a_note(command: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("id,text\n1,kitten\n2,\n3,market\n4,  \n")
    assert_fails(tercet(*command, str(file)), f"{file}, lines 3 and 5: column 'text' is empty")
    done = tercet(*command, str(file), "--skip-empty", "--json")
    assert done.returncode == 0
    assert (
        done.stderr.strip() == f"note: 2 of 4 rows of {file} skipped: column 'text' is empty (lines 3 and 5)"
    )


def test_encode_finds_empty_rows_before_the_model_is_loaded(tmp_path: Path) -> None:
    file, out = tmp_path / "rows.csv", tmp_path / "vectors.npy"
    file.write_text("text,id\nkitten,1\n,2\n")
    words = ("encode", str(file), "-o", str(out), "-m", str(tmp_path / "no-model"))
    assert_fails(tercet(*words), "line 3: column 'text' is empty")
    done = tercet(*words[:4], "--skip-empty")
    assert done.stderr.count("1 of 2 rows") == 1
    assert np.load(out).shape == (1, 384)


def test_files_are_read_with_the_encoding_and_the_delimiter_given(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_bytes("질문#답\n몇 시, 어디서?#아홉 시\n".encode("cp949"))
    words = ("score", "언제", "-c", str(file), "--column", "질문")
    assert_fails(
        tercet(*words), "line 1: byte 1 is not UTF-8: the line is valid cp949: give --encoding cp949"
    )
    done = tercet(*words, "--encoding", "cp949", "--delimiter", "#", "--json")
    assert json.loads(done.stdout)["candidate"] == "몇 시, 어디서?"
    assert_fails(tercet(*words, "--encoding", "cp94"), "such as utf-8, utf-16, cp949")


def test_score_reads_candidates_from_a_file_in_their_order(tmp_path: Path) -> None:
    file = tmp_path / "candidates.txt"
    file.write_text("stocks fell\na kitten\n")
    given = [
        json.loads(line) for line in tercet("score", "a cat", "-c", str(file), "--json").stdout.splitlines()
    ]
    typed = tercet("score", "a cat", "stocks fell", "a kitten", "--json").stdout.splitlines()
    assert given == [json.loads(line) for line in typed]
    turns = json.loads(tercet("score", "hi", "a cat", "-c", str(file), "--json").stdout.splitlines()[0])
    assert turns["context"] == ["hi", "a cat"]


def test_probabilities_are_shown_beside_scores_of_a_calibrated_model(tiny: BiEncoder, tmp_path: Path) -> None:
    tiny.calibration = Calibration(Platt(slope=2.0, intercept=-1.0), threshold=0.5, f1=1.0, pairs=9)
    model = str(tmp_path / "model")
    tiny.save(model)
    words = ("-m", model, "--probability")
    scored = json.loads(tercet("score", "a dog", "a dog", *words, "--json").stdout)
    assert scored["score"] == pytest.approx(1.0)
    assert scored["probability"] == pytest.approx(1 / (1 + np.exp(-1.0)))  # 2 · 1 - 1
    ranked = tercet("rank", "a dog", *words, "--json", stdin="a dog\nbread\n").stdout
    assert json.loads(ranked)["ranking"][0]["probability"] == pytest.approx(scored["probability"])
    assert "0.7311" in tercet("rank", "a dog", *words, stdin="a dog\n").stdout
    assert "probability 0.7311" in tercet("score", "a dog", "a dog", *words).stdout


def test_probabilities_need_a_calibrated_model() -> None:
    for words in (("score", "a", "b"), ("rank", "a")):
        done = tercet(*words, "--probability", stdin="b\n")
        assert_fails(done, '"tercet calibrate bi --data FILE -o FOLDER"')


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
    assert json.loads(result.stdout) == {"path": str(out), "count": 3, "width": 384, "truncated": 0}
    assert np.load(out).shape == (3, 384)


def test_encode_normalizes_and_truncates_vectors(tmp_path: Path) -> None:
    out = tmp_path / "vectors.npy"
    result = tercet("encode", "-", "-o", str(out), "--normalize", "--dimensions", "64", stdin="one\ntwo\n")
    assert result.stdout == f"{out}: 2 vectors of 64 dimensions\n"
    np.testing.assert_allclose(np.linalg.norm(np.load(out), axis=1), 1, rtol=1e-5)


def test_encode_refuses_more_dimensions_than_the_model_has(tmp_path: Path) -> None:
    result = tercet("encode", "-", "-o", str(tmp_path / "x.npy"), "--dimensions", "385", stdin="one\n")
    assert_fails(result, "dimensions must be at most 384, the width of this model's vectors, got 385")


def test_info_lists_the_names_of_a_packaged_model() -> None:
    shown = tercet("info", "--model", "all-MiniLM-L6-v2").stdout
    assert "bi, all-MiniLM-L6-v2, sentence-transformers/all-MiniLM-L6-v2" in shown


def test_encode_reports_truncated_texts(tmp_path: Path) -> None:
    result = tercet("encode", "-", "-o", str(tmp_path / "vectors.npy"), stdin="word " * 9999)
    assert "1 texts were truncated" in result.stdout
    assert result.stderr.startswith("note: 1 of 1 candidates are longer than this model's 256 tokens")


def test_info_describes_the_model() -> None:
    described = json.loads(tercet("info", "--json").stdout)
    assert described["model"]["width"] == 384
    assert described["machine"]["torch"]


def test_the_demo_runs() -> None:
    shown = tercet("demo").stdout
    assert "an FAQ of 120 questions" in shown
    assert all(re.search(rf"^ +{name} +\d+ of 60 ", shown, re.MULTILINE) for name in ("bi", "poly", "cross"))
    assert "tercet --help" in shown


@pytest.mark.parametrize(
    ("words", "stdin", "message"),
    [
        (("rank", "hi"), "", "standard input has no rows"),
        (("rank", "hi"), b"one\ntw\xff\n", "standard input, line 2: byte 3 is not UTF-8"),
        (
            ("rank", "hi", "--format", "jsonl"),
            '{"text": "\\ud800"}\n',
            "line 1: column 'text' holds a lone surrogate",
        ),
        (("rank", " "), "one\n", "context is empty"),
        (("rank", "hi", "-k", "0"), "one\n", "k must be at least 1, got 0"),
        (("rank",), "one\n", "give CONTEXT or --contexts"),
        (("rank", "hi", "-c", "nothing.txt"), "", "there is no file nothing.txt"),
        (("rank", "hi", "-c", "sample:faq.en"), "", "'question', 'answer', 'context', 'topic'"),
        (
            ("rank", "hi", "-c", "sample:faq.en", "--column", "x"),
            "",
            "column 'x' is missing; the columns are 'question'",
        ),
        (("rank", "hi", "-c", "sample:faq.fr"), "", "sample must be one of faq.en"),
        (("rank", "hi", "--model", "/no/where"), "one\n", "there is no folder /no/where"),
        (("score", "hi"), "", "at least one candidate"),
        (("score", "hi", "ho", "--pairs", "x.csv"), "", "only one of them"),
        (("score", "--pairs", "x.csv", "-c", "y.csv"), "", "use --candidate-column"),
        (("score", "hi", "ho", "--column", "x"), "", "give -c FILE"),
        (("score", "hi", "-c", "-"), "", "standard input has no rows"),
        (("rank", "hi", "--show", "x"), "one\n", "the candidates have no column 'x' beside their text"),
        (("encode", "-", "-o", "/no/where/x.npy"), "one\n", "/no/where is not a folder"),
        (("encode", "-", "-o", "/tmp"), "one\n", "the folder /tmp exists"),
    ],
)
def test_bad_input_gets_one_clear_line(words: tuple[str, ...], stdin: str | bytes, message: str) -> None:
    assert_fails(tercet(*words, stdin=stdin), message)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("rank", "hi", "--precision", "int1"), "'int1' is not one of 'fp32', 'bf16', 'fp16'"),
        (
            ("encode", "-", "-o", "x.npy", "--side", "middle"),
            "'middle' is not one of 'context', 'candidate'",
        ),
    ],
)
def test_unknown_choices_are_refused(words: tuple[str, ...], message: str) -> None:
    assert_refused(tercet(*words), message)


def test_an_unexpected_failure_is_one_line_and_debug_shows_the_rest(tmp_path: Path) -> None:
    (tmp_path / "openvino.py").write_text("raise RuntimeError('broken on purpose')")
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
    ("error", "reason"),
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
        ("MemoryError()", "no details"),
    ],
)
def test_exhausted_memory_is_explained(error: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "openvino.py").write_text(f"raise {error}")
    result = tercet_process("score", "a", "b", environment={"PYTHONPATH": str(tmp_path)})
    assert_fails(result, "error: out of memory")
    assert reason in result.stderr
    assert "total capacity" not in result.stderr


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (
            ("rank", "train", "-c", "sample:faq.en", "--column", "question"),
            "give fewer or shorter texts at a time, or stop",
        ),
        (("-q", "score", "a", "b"), "give fewer or shorter texts at a time, or stop"),
        (
            ("train", "sample:RECIPE", "-o", "OUT"),
            "lower batches.batch_size or set batches.mini_batch_tokens",
        ),
    ],
)
def test_advice_on_memory_fits_the_command(words: tuple[str, ...], advice: str, tmp_path: Path) -> None:
    for name in ("openvino.py", "torch.py"):
        (tmp_path / name).write_text("raise MemoryError()")
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('[model]\nkind = "bi"\nsource = "bi"\n[data.train]\nfiles = ["sample:pairs.en"]\n')
    paths = {"sample:RECIPE": str(recipe), "OUT": str(tmp_path / "run")}
    result = tercet_process(
        *(paths.get(word, word) for word in words), environment={"PYTHONPATH": str(tmp_path)}
    )
    assert advice in result.stderr
    assert ("batches" in result.stderr) == ("batches" in advice)


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


def test_control_characters_of_data_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in tercet("score", "a", "b\x1b[2Jc").stdout


def test_an_existing_output_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "vectors.npy"
    out.write_text("precious")
    assert_fails(tercet("encode", "-", "-o", str(out), stdin="one\n"), "vectors.npy exists")
    assert out.read_text() == "precious"
