"""Control characters of texts, names and files never reach the terminal, in any command."""

import csv
import json
import logging
import os
import pty
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
import typer
from safetensors.torch import load_file, save_file
from tests.cli.command import SOURCE, Result, tercet, tercet_process

import tercet as library
from tercet.cli.console import escaped_streams, one_line, printable
from tercet.cli.progress import counting, spinner
from tercet.settings.models import BiConfig, CrossConfig

EVIL = "\x1b]0;owned\x07 \x9b31m \u202e \x1b[2J \x7f"
"""A title, a colour, a reversed order and an erased screen, as 7- and 8-bit sequences."""
MANY = "한국어 ｱ 日本　語 🏴󠁧󠁢󠁥󠁮󠁧󠁿👨‍👩‍👧❤️ e\u0301 می‌خواهم שלום [red] :smile:"
"""Scripts, wide and combined characters, joined emoji, and what rich would read as a style and an emoji."""


def unsafe(text: str) -> list[str]:
    """The control characters other than line feeds, and those that change the direction."""
    controls = [each for each in text if unicodedata.category(each) == "Cc" and each != "\n"]
    return controls + re.findall("[\u202a-\u202e\u2066-\u2069]", text)


def assert_safe(result: Result) -> None:
    assert unsafe(result.stdout) == []
    assert unsafe(result.stderr) == []


@pytest.fixture(scope="module")
def files(
    tmp_path_factory: pytest.TempPathFactory, tiny_folder: Callable[[str], Path]
) -> Callable[[str], str]:
    """A function that puts paths for the names of files; paths, texts, columns and settings are hostile."""
    folder = tmp_path_factory.mktemp("data") / f"x{EVIL}"
    folder.mkdir()
    backbone = tiny_folder("bert")
    config = BiConfig(context_prompt=f"ask{EVIL}: ", candidate_prompt=f"ask{EVIL}: ")
    library.BiEncoder.from_backbone(backbone, config=config, device="cpu").save(folder / "MODEL")
    labels = CrossConfig(num_labels=2, labels=(f"yes{EVIL}", f"no{EVIL}"))
    library.CrossEncoder.from_backbone(backbone, config=labels, device="cpu").save(folder / "CLASSIFIER")
    unknown = library.BiEncoder.from_backbone(backbone, device="cpu").save(folder / "TENSOR")
    weights = load_file(unknown / "model.safetensors")
    more = {f"more{EVIL}": next(iter(weights.values())).clone()}
    save_file(weights | more, unknown / "model.safetensors", metadata={"format": "pt"})
    texts = (f"the cat {word}{EVIL}\n\tx" for word in ("sat", "ran", "old"))
    header = ["id", "text", f"topic{EVIL}"]
    write_csv(
        folder / "ROWS.csv", header, [[f"{n}{EVIL}", text, f"pets{EVIL}"] for n, text in enumerate(texts)]
    )
    pair = ["context", "candidate", "score"]
    write_csv(folder / "LABELLED.csv", pair, [[f"{n}", "b", f"{'ab'[n % 2]}{EVIL}"] for n in range(4)])
    write_csv(folder / "SCORED.csv", pair, [[f"cat{EVIL}", f"dog {n}{EVIL}", n] for n in range(9)])
    write_csv(
        folder / "TRAIN.csv", [f"question{EVIL}", "answer"], [[f"{n}{EVIL}", f"b{n}"] for n in range(30)]
    )
    write_csv(folder / "BROKEN.csv", ["text"], [[f"a{EVIL}", f"b{EVIL}"]])
    names = re.compile("|".join([*(path.name for path in folder.iterdir()), "INDEX", "NEW.toml"]))

    def path_of(word: str) -> str:
        return names.sub(lambda found: str(folder / found[0]), word)

    build = ("index", "build", "ROWS.csv", "--column", "text", "-o", "INDEX", "-m", "MODEL")
    assert tercet(*map(path_of, build)).returncode == 0
    return path_of


def write_csv(file: Path, header: list[str], lines: list[list[object]]) -> None:
    with file.open("w", newline="", encoding="utf-8") as opened:
        csv.writer(opened).writerows([header, *lines])


WITH_JSON = {
    "rank": (
        "rank",
        f"cat{EVIL}",
        "-c",
        "ROWS.csv",
        "--column",
        "text",
        "--show",
        f"topic{EVIL}",
        "-m",
        "MODEL",
    ),
    "score": ("score", f"cat{EVIL}", f"dog{EVIL}", "-m", "MODEL"),
    "labels": ("score", f"cat{EVIL}", f"dog{EVIL}", "-m", "CLASSIFIER"),
    "explain": ("explain", f"cat{EVIL}", f"dog{EVIL}", "-m", "MODEL"),
    "search": ("search", "INDEX", f"cat{EVIL}", "--show", f"topic{EVIL}"),
    "pairs": ("pairs", "ROWS.csv", "--column", "text", "-m", "MODEL"),
    "cluster": ("cluster", "ROWS.csv", "--column", "text", "--threshold", "-1", "-m", "MODEL"),
    "info": ("info", "-m", "MODEL"),
    "index get": ("index", "get", "INDEX", f"0{EVIL}"),
    "index info": ("index", "info", "INDEX"),
    "evaluate": ("evaluate", f"one{EVIL}=MODEL", f"two{EVIL}=MODEL", "similarity:SCORED.csv"),
}
WITHOUT_JSON = {
    "labels of a model": ("info", "-m", "CLASSIFIER"),
    "labels of data": ("data", "summary", "LABELLED.csv", "--label", f"a{EVIL}", "--label", f"b{EVIL}"),
    "-v": ("-v", "score", f"cat{EVIL}", f"dog{EVIL}", "-m", "MODEL"),
    "index verify": ("index", "verify", "INDEX"),
    "compare": ("compare", f"one{EVIL}=MODEL", f"two{EVIL}=MODEL", "similarity:SCORED.csv"),
    "new-recipe": (
        "new-recipe",
        "bi",
        "--data",
        "TRAIN.csv",
        "--column",
        f"context=question{EVIL}",
        "-o",
        "NEW.toml",
    ),
}
FAILING = {
    "recipe": ("train", f"no{EVIL}"),
    "option": ("rank", f"--{EVIL}"),
    "command": (f"no{EVIL}",),
    "value": ("rank", "a", "--precision", EVIL),
    "traceback": ("info", "-m", f"./{EVIL}", "--debug"),
    "model": ("info", "-m", f"./{EVIL}"),
    "file": ("rank", "a", "-c", f"{EVIL}.jsonl"),
    "column": ("rank", "a", "-c", "ROWS.csv", "--column", EVIL),
    "metadata": ("search", "INDEX", "a", "--where", f"{EVIL}=1"),
    "id": ("index", "get", "INDEX", EVIL),
    "rows": ("rank", "a", "-c", "BROKEN.csv"),
    "tensor": ("info", "-m", "TENSOR"),
}


@pytest.mark.parametrize("command", (WITH_JSON | WITHOUT_JSON).values(), ids=WITH_JSON | WITHOUT_JSON)
def test_no_command_prints_control_characters(command: tuple[str, ...], files: Callable[[str], str]) -> None:
    result = tercet(*map(files, command))
    assert result.returncode == 0, result.stderr
    assert "owned" in result.stdout  # escaped, but there
    assert_safe(result)


@pytest.mark.parametrize("command", FAILING.values(), ids=FAILING)
def test_no_error_prints_control_characters(command: tuple[str, ...], files: Callable[[str], str]) -> None:
    result = tercet(*map(files, command))
    assert result.returncode in (1, 2)
    assert "owned" in re.sub(r"[\s│]", "", result.stderr)  # a box may fold it
    assert "unexpected" not in result.stderr
    assert_safe(result)


@pytest.mark.parametrize("command", WITH_JSON.values(), ids=WITH_JSON)
def test_json_escapes_control_characters_and_keeps_the_strings(
    command: tuple[str, ...], files: Callable[[str], str]
) -> None:
    result = tercet(*map(files, command), "--json")
    assert any(EVIL in text for line in result.stdout.splitlines() for text in strings(json.loads(line)))
    assert_safe(result)


def strings(content: object) -> list[str]:
    """All strings in a JSON value, keys too."""
    if isinstance(content, dict):
        return [text for pair in content.items() for each in pair for text in strings(each)]
    if isinstance(content, list):
        return [text for each in content for text in strings(each)]
    return [content] if isinstance(content, str) else []


@pytest.mark.parametrize(
    "command",
    [
        ("pairs", "ROWS.csv", "--column", "text", "-m", "MODEL"),
        ("cluster", "ROWS.csv", "--column", "text", "--threshold", "-1", "-m", "MODEL"),
        ("index", "export", "INDEX"),
    ],
    ids=["pairs", "cluster", "index export"],
)
def test_jsonl_files_escape_control_characters_and_keep_the_strings(
    command: tuple[str, ...], files: Callable[[str], str], tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    assert_safe(tercet(*map(files, command), "-o", str(out)))
    written = out.read_text(encoding="utf-8")
    assert unsafe(written) == []
    assert any(EVIL in text for line in written.splitlines() for text in strings(json.loads(line)))


def test_scripts_emoji_and_brackets_are_printed_as_they_are(files: Callable[[str], str]) -> None:
    result = tercet("score", "a", MANY, "-m", files("MODEL"))
    assert result.stdout.strip().endswith(f"  {MANY}")
    assert json.loads(tercet("score", "a", MANY, "-m", files("MODEL"), "--json").stdout)["candidate"] == MANY
    table = tercet("rank", "a", "-m", files("MODEL"), stdin=MANY)
    assert f" {one_line(MANY)} " in table.stdout


def test_line_breaks_and_tabs_stay_within_the_cells_of_a_table(files: Callable[[str], str]) -> None:
    shown = tercet("search", files("INDEX"), "a\n\tb", "--show", f"topic{EVIL}").stdout
    assert r"a\n\tb" in shown
    widths = {len(line) for line in shown.splitlines() if line.startswith(("│", "├", "└"))}
    assert len(widths) == 1


def test_printable_escapes_what_json_escapes() -> None:
    assert (
        printable("a\tb\nc\x1b\x9b\x7f\u2028\u2066\ud800") == r"a\tb\nc\u001b\u009b\u007f\u2028\u2066\ud800"
    )
    assert one_line(f" {MANY}\n") == MANY.replace("　", " ")


def test_a_file_name_that_is_not_unicode_is_printed(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff.jsonl")
    result = tercet("rank", "a", "-c", str(tmp_path / name))
    assert result.returncode == 1
    assert r"\udcff.jsonl" in result.stderr


def test_json_is_valid_where_the_encoding_lacks_letters(tmp_path: Path) -> None:
    file, label = tmp_path / "pairs.csv", "é한🙂"
    write_csv(file, ["context", "candidate", "score"], [["a", "b", label]])
    command = ("data", "summary", str(file), "--label", label, "--json")
    result = tercet_process(*command, environment={"PYTHONIOENCODING": "ascii"})
    assert label in strings(json.loads(result.stdout))


@contextmanager
def terminal() -> Iterator[list[str]]:
    """A terminal as standard error; the list holds what it showed, once it is closed."""
    master, slave = os.openpty()
    shown: list[str] = []
    with (
        os.fdopen(slave, "w", encoding="utf-8") as stream,
        patch.object(sys, "stderr", stream),
        patch.dict(os.environ, {"TERM": "xterm"}),
        escaped_streams(),
    ):
        yield shown
    shown.append(read_all(master))
    os.close(master)


def read_all(descriptor: int) -> str:
    """What a terminal shows until the other end is closed."""
    shown = b""
    while True:
        try:
            shown += os.read(descriptor, 4096)
        except OSError:  # the other end is closed
            return shown.decode()


def assert_harmless(shown: str) -> None:
    """Styles and moves of the cursor are rich's own."""
    assert "owned" in shown
    for part in ("\x1b]", "\x07", "\x9b", "\u202e", "\x1b[2J", "\x7f"):
        assert part not in shown


def test_a_bar_on_a_terminal_shows_no_control_characters_of_its_title() -> None:
    with terminal() as shown, counting(f"a{EVIL}[/x]", total=2) as advance:
        advance(1)
    assert_harmless(*shown)


def test_what_is_printed_beside_a_bar_is_escaped() -> None:
    with terminal() as shown, counting("encoding", total=2) as advance:
        typer.echo(f"x{EVIL}\x1b[31m", err=True)
        advance(1)
    assert_harmless(*shown)
    assert r"\u001b[31m" in shown[0]


def test_a_spinner_on_a_terminal_shows_no_control_characters() -> None:
    with terminal() as shown, spinner(f"loading {EVIL}[/x]"):
        pass
    assert_harmless(*shown)


def test_logs_of_other_libraries_are_escaped() -> None:
    logger = logging.getLogger("tests.terminal")
    with terminal() as shown:
        logger.addHandler(logging.StreamHandler())
        logger.warning("cannot read %s", EVIL)
    logger.handlers.clear()
    assert_harmless(*shown)


@pytest.mark.parametrize("words", [("rank", f"--{EVIL}"), ("tasks", "show", EVIL), ("--help",)])
def test_a_terminal_gets_our_styles_and_nothing_else(words: tuple[str, ...]) -> None:
    pid, descriptor = pty.fork()
    if pid == 0:
        environment = {**os.environ, "PYTHONPATH": str(SOURCE), "TERM": "xterm", "COLUMNS": "100"}
        environment.pop("NO_COLOR", None)
        os.execve(sys.executable, [sys.executable, "-m", "tercet", *words], environment)
    shown = read_all(descriptor).replace("\r\n", "\n")
    os.waitpid(pid, 0)
    rest, styles = re.subn(r"\x1b\[[\d;]+m", "", shown)
    assert styles
    assert unsafe(rest) == []
