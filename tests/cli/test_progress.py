"""Progress on a terminal and elsewhere, and the options -q and -v."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.cli.command import assert_refused, tercet

from tercet.cli import progress
from tercet.cli.progress import ProgressLines, counting, duration, per_second, step_progress
from tercet.cli.verbosity import LEVEL, Verbosity


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_line_has_count_rate_and_time_left() -> None:
    clock = Clock()
    lines = ProgressLines("encoding", total=60_000, clock=clock)
    lines.count(12_000)
    clock.now = 15.0  # 800 a second: 48,000 more take 60 s
    assert lines.line() == "encoding: 12,000 of 60,000, 800/s, 1 min 0 s left"
    assert lines.summary() == "encoding: 12,000 in 15 s, 800/s"


def test_items_that_were_done_before_do_not_count_for_the_rate() -> None:
    clock = Clock()
    lines = ProgressLines("step", total=200, already=100, clock=clock)
    lines.count(20)
    clock.now = 10.0
    assert lines.line() == "step: 120 of 200, 2.0/s, 40 s left"


def test_a_line_without_a_total_has_count_and_rate() -> None:
    clock = Clock()
    lines = ProgressLines("encoding", total=None, clock=clock)
    lines.count(90)
    clock.now = 3.0
    assert lines.line() == "encoding: 90, 30/s"


def test_the_first_line_comes_after_ten_seconds_and_the_next_after_ten_more(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    lines = ProgressLines("encoding", total=100, clock=clock)
    for now in (1.0, 9.9, 10.0, 19.9, 20.0):
        clock.now = now
        lines.write_if_due(10)
    assert capsys.readouterr().err.splitlines() == [
        "encoding: 30 of 100, 3.0/s, 23 s left",
        "encoding: 50 of 100, 2.5/s, 20 s left",
    ]


def test_durations_and_rates() -> None:
    assert [duration(seconds) for seconds in (2.34, 59.4, 125, 7260)] == [
        "2.3 s",
        "59 s",
        "2 min 5 s",
        "2 h 1 min",
    ]
    assert [per_second(rate) for rate in (2.34, 1234.5)] == ["2.3/s", "1,234/s"]


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Standard error is a pseudo terminal; what was written to it is in the list afterwards."""
    master, slave = os.openpty()
    monkeypatch.setenv("TERM", "xterm")
    shown: list[str] = []
    with open(slave, "w", encoding="utf-8") as file:  # noqa: PTH123 (a descriptor)
        monkeypatch.setattr(sys, "stderr", file)
        yield shown
        file.flush()
        os.set_blocking(master, False)
        with suppress(BlockingIOError):
            while part := os.read(master, 4096):
                shown.append(part.decode())
    os.close(master)


def test_a_terminal_gets_a_bar_with_count_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch) as shown, counting("encoding", total=4) as advance:
        advance(4)
    assert all(part in "".join(shown) for part in ("encoding", "4/4", "/s", "left"))


def test_a_quiet_terminal_stays_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    before = LEVEL.set(Verbosity.QUIET)
    with terminal(monkeypatch) as shown:
        with counting("encoding", total=4) as advance:
            advance(4)
        with progress.spinner("loading"):
            pass
    LEVEL.reset(before)
    assert shown == []


def test_training_writes_lines_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = io.StringIO()
    monkeypatch.setattr(sys, "stderr", errors)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    with step_progress() as reporter:
        reporter.report("tokenizing")
        reporter.progress(1, 10, {})
        reporter.progress(2, 10, {"loss": 0.5})
        reporter.progress(2, 10, {"eval_mrr": 0.25})
    lines = errors.getvalue().splitlines()
    assert lines[0] == "tokenizing"
    assert lines[2].startswith("step: 2 of 10, ")
    assert lines[2].endswith(" left, loss 0.5000")
    assert lines[-1] == "step 2 of 10: dev mrr 0.2500"


@pytest.fixture
def korean(tmp_path: Path) -> str:
    file = tmp_path / "korean.txt"
    file.write_text("비밀번호를 재설정하려면\n어떻게 해야 하나요\n")
    return str(file)


@pytest.mark.parametrize("before", [True, False])
def test_quiet_prints_only_the_result(korean: str, tmp_path: Path, *, before: bool) -> None:
    command = ["encode", korean, "-o", str(tmp_path / "vectors.npy")]
    shown = tercet(*(["-q", *command] if before else [*command, "--quiet"]))
    assert shown.stderr == ""
    assert "2 vectors" in shown.stdout


def test_a_script_that_the_model_cannot_read_is_noted(korean: str, tmp_path: Path) -> None:
    shown = tercet("encode", korean, "-o", str(tmp_path / "vectors.npy"))
    assert "cannot read Hangul" in shown.stderr


@pytest.mark.parametrize("before", [True, False])
def test_verbose_prints_settings_model_device_and_times(*, before: bool) -> None:
    command = ["rank", "a cat", "-k", "1"]
    shown = tercet(*(["-v", *command] if before else [*command, "-v"]), stdin="kitten\nstock\n")
    lines = shown.stderr.splitlines()
    assert lines[0].startswith("rank: context=['a cat'], candidates=-, k=1, probability=False, model=bi")
    assert lines[1].startswith("loading bi: ")
    assert lines[2].startswith("bi: bi-encoder ")
    assert ", openvino on cpu, fp32, 256 tokens" in lines[2] or ", torch on cuda" in lines[2]
    assert lines[3].startswith("ranking: 3 in ")  # a context and two candidates
    assert lines[4].endswith(" s in all")
    assert "kitten" in shown.stdout


@pytest.mark.parametrize(("model", "count"), [("bi", 3), ("cross", 2)])
def test_ranking_counts_texts_or_pairs(model: str, count: int) -> None:
    shown = tercet("rank", "a cat", "-k", "1", "-v", "-m", model, stdin="kitten\nstock\n")
    assert f"ranking: {count} in " in shown.stderr


def test_evaluation_counts_what_the_models_process() -> None:
    shown = tercet("evaluate", "bi", "answers:sample:faq.en", "-v")
    (line,) = (line for line in shown.stderr.splitlines() if line.startswith("evaluating "))
    assert " in " in line
    assert ": 0 in" not in line


def test_quiet_and_verbose_exclude_each_other() -> None:
    for words in (("-q", "-v", "info"), ("-q", "info", "-v"), ("info", "-v", "-q")):
        assert_refused(tercet(*words), "-q and -v exclude each other")
