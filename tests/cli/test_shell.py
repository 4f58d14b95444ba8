"""The command line in a shell: terminals, pipes, completion and exit statuses."""

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.command import SHOWN, SOURCE, tercet

from tercet.cli.search import _typed

ENVIRONMENT = os.environ | SHOWN | {"PYTHONPATH": str(SOURCE), "TERM": "dumb"}


@pytest.mark.parametrize(
    "words", [(), ("rank",), ("index", "build"), ("new", "bi"), ("data",), ("calibrate",)]
)
def test_h_shows_the_help_of_every_command(words: tuple[str, ...]) -> None:
    short, long = tercet(*words, "-h"), tercet(*words, "--help")
    assert short.returncode == 0
    assert short.stdout == long.stdout
    assert " ".join(["Usage: tercet", *words]) in short.stdout


def test_the_help_lists_the_exit_statuses() -> None:
    shown = " ".join(tercet("--help").stdout.split())
    assert "Exit status: 0 success, 1 failure, 2 wrong usage, 130 interrupted by Ctrl-C." in shown


def test_exit_statuses() -> None:
    assert tercet("--version").returncode == 0
    assert tercet("info", "--model", "/nowhere").returncode == 1
    assert tercet("info", "--unknown").returncode == 2
    assert tercet("nothing").returncode == 2


def test_typing_candidates_is_announced_and_ctrl_c_ends_with_130() -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-m", "tercet", "rank", "a cat"], ENVIRONMENT)
    shown = read_until(terminal, b"Ctrl-D")
    assert "reading candidates from standard input, one per line; end with Ctrl-D" in shown
    os.write(terminal, b"\x03")
    rest = read_until(terminal, None)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130
    assert "Traceback" not in rest
    assert "Aborted" not in rest


def read_until(terminal: int, wanted: bytes | None) -> str:
    """What the terminal shows until it has shown ``wanted``, or to the end."""
    shown = b""
    while wanted is None or wanted not in shown:
        try:
            shown += os.read(terminal, 4096) or b""
        except OSError:  # the process has ended
            break
    return shown.decode()


def test_piped_candidates_are_not_announced() -> None:
    assert "standard input" not in tercet("rank", "a cat", stdin="kitten\n").stderr


def typed(monkeypatch: pytest.MonkeyPatch, keys: bytes) -> list[str]:
    """The queries that are typed on a terminal."""
    master, slave = os.openpty()
    os.write(master, keys)
    with open(slave, encoding="utf-8") as file:  # noqa: PTH123 (a descriptor)
        monkeypatch.setattr(sys, "stdin", file)
        queries = list(_typed())
    os.close(master)
    return queries


def test_blank_lines_do_not_end_a_typed_search(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(monkeypatch, b"\nmy card\n   \nmy dog\n\x04") == ["my card", "my dog"]
    assert capsys.readouterr().err == "type a query; Ctrl-D, exit or quit ends the search\n"


@pytest.mark.parametrize("word", [b"exit", b"quit"])
def test_exit_and_quit_end_a_typed_search(word: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert typed(monkeypatch, b"my card\n" + word + b"\nmy dog\n") == ["my card"]


def test_piped_queries_may_be_called_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("exit\n\nmy card\n"))
    assert list(_typed()) == ["exit", "my card"]


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [("--help",), ("data", "summary", "sample:pairs.en", "--json")])
def test_a_closed_pipe_ends_the_command_quietly(words: tuple[str, ...], unbuffered: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tercet", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT | {"PYTHONUNBUFFERED": unbuffered},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


@pytest.mark.parametrize(
    ("line", "completed"),
    [("tercet calib", "calibrate"), ("tercet rank --model po", "poly"), ("tercet index bui", "build")],
)
def test_the_shell_completes_commands_and_models_without_torch(line: str, completed: str) -> None:
    code = "import sys; sys.modules['torch'] = None; from tercet.cli import main; main()"
    completing = {
        "_TERCET_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split()) - 1),
    }
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, env=ENVIRONMENT | completing, check=False, timeout=60)
    assert done.stdout.decode().split() == [completed], done.stderr.decode()


def test_folders_of_models_are_completed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tercet.cli.options import model_names

    (tmp_path / "my-bi").mkdir()
    (tmp_path / "my.txt").touch()
    monkeypatch.chdir(tmp_path)
    assert model_names("") == ["bi", "poly", "cross", "my-bi"]
    assert model_names("my") == ["my-bi"]
    assert model_names(f"{tmp_path}/") == [str(tmp_path / "my-bi")]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_of_each_shell_is_shown(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")  # tests may run in any shell
    assert "_TERCET_COMPLETE" in tercet("--show-completion", shell).stdout


def test_debug_is_accepted_after_the_command() -> None:
    assert "Traceback" in tercet("info", "--model", "/nowhere", "--debug").stderr
