"""Runs the code of Markdown pages and compares what it prints with what the pages show.

    python docs/_ext/run_pages.py docs/tutorials/*.md            # says where output differs
    python docs/_ext/run_pages.py --write docs/tutorials/*.md    # writes the new output into the pages

A ``python`` block runs in the page's own namespace, and a ``text`` block after it shows its output. Lines of
a ``console`` block that begin with ``$`` run in bash, and the lines after them are their output; a command
that ends with ``&`` runs until the page ends. ``<!-- file: NAME -->`` before a block writes it to a file, and
``<!-- not run -->`` skips it. Port 8080 is replaced by a free one.
"""

import contextlib
import difflib
import io
import os
import re
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shown_output import same_output

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>[^\n]*) -->\n)?```(?P<kind>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
PAGES = (
    "index",
    "get-started",
    "ko/get-started",
    "which-scorer",
    "how-it-works",
    "migrate",
    "tutorials/faq-bot",
    "tutorials/reply-selection",
    "tutorials/duplicates",
    "tutorials/own-csv",
    "tutorials/few-labels",
    "tutorials/server",
)
"""The pages whose code runs."""
PORT = "8080"
NOT_RUN = re.compile(r"\s*(pip|docker|kubectl|sudo|systemctl|torchrun) ")
"""Commands that pages show and that would change the machine."""
PROGRESS = re.compile(r"^[\w :.%/-]+: [\d,]+( of [\d,]+)?, .*(/s|each|left)\n", re.MULTILINE)
"""Lines that a command writes every ten seconds, on a slow machine more of them."""


class PageError(Exception):
    """A block failed, or printed something else than the page shows."""


@dataclass(frozen=True)
class Block:
    """A block of code of a page: its place, and what the comment before it says."""

    start: int
    end: int
    kind: str
    body: str
    mark: str


def blocks(text: str) -> list[Block]:
    """The blocks of a page, in order."""
    return [
        Block(found.start("body"), found.end("body"), found["kind"], found["body"], found["mark"] or "")
        for found in BLOCK.finditer(text)
    ]


class Page:
    """A page that runs in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[str, Any] = {"__name__": "__page__"}
        self.port = _free_port()
        self.background: list[subprocess.Popen[bytes]] = []
        self.environment = _environment(folder, self.port)

    def new_text(self, text: str) -> str:
        """The page with the output of this run; output that is the same but for rounding stays."""
        changes: list[tuple[Block, str]] = []
        found = blocks(text)
        for position, block in enumerate(found):
            if block.mark.startswith("file: "):
                (self.folder / block.mark.removeprefix("file: ")).write_text(block.body, encoding="utf-8")
            elif block.mark == "not run":
                continue
            elif block.kind == "console":
                changes.append((block, self._console(block.body)))
            elif block.kind == "python":
                printed = self._python(block.body)
                after = found[position + 1] if position + 1 < len(found) else None
                if after and after.kind == "text" and not text[block.end + 4 : after.start - 8].strip():
                    changes.append((after, after.body if same_output(after.body, printed) else printed))
                elif printed.strip():
                    raise PageError(f"this output has no text block to show it:\n{printed}")
        for block, body in reversed(changes):
            text = text[: block.start] + body + text[block.end :]
        return text

    def close(self) -> None:
        """End the commands in the background."""
        for process in self.background:
            process.terminate()
            process.wait(timeout=30)

    def _python(self, code: str) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(code.replace(PORT, self.port), "page", "exec"), self.names)
        return printed.getvalue().replace(self.port, PORT)

    def _console(self, body: str) -> str:
        lines: list[str] = []
        for command, shown in _commands(body):
            lines.append(f"$ {command}\n")
            printed = shown if NOT_RUN.match(command) else self._command(command)
            lines.append(shown if same_output(shown, printed) else printed)
        return "".join(lines)

    def _command(self, command: str) -> str:
        words = ["bash", "-c", command.removesuffix("&").replace(PORT, self.port)]
        if command.endswith("&"):
            words[2] = f"exec {words[2]}"
            ready = self.folder / "background.log"
            with ready.open("wb") as log:
                process = subprocess.Popen(
                    words, cwd=self.folder, env=self.environment, stdout=log, stderr=log
                )
            self.background.append(process)
            return ""
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            raise PageError(f"{command}: status {done.returncode}\n{done.stdout}")
        printed = PROGRESS.sub("", done.stdout.replace(self.port, PORT))
        return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())


def _commands(body: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with the output that is shown; a backslash continues a line."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, *rest = part.splitlines(keepends=True)
        while command.endswith("\\\n"):
            command += rest.pop(0)
        yield command.rstrip("\n"), "".join(rest)


def _free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return str(free.getsockname()[1])


def _environment(folder: Path, port: str) -> dict[str, str]:
    """The environment of commands: this tree, lines of 88 columns, no colours, no network."""
    programs = folder / ".programs"
    programs.mkdir()
    (programs / "tercet").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tercet "$@"\n')
    (programs / "tercet").chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "COLUMNS": "88",
        "NO_COLOR": "1",
        "HF_HUB_OFFLINE": "1",
        "TERCET_SERVE_PORT": port,
    }


def run(page: Path) -> str:
    """The text of a page with the output of this run."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        running = Page(Path(folder))
        try:
            return running.new_text(text)
        finally:
            running.close()


def main(arguments: list[str]) -> int:
    """Run each page; the exit status is the number of pages that differ."""
    write, names = "--write" in arguments, [name for name in arguments if name != "--write"]
    different = 0
    if "--list" in names:
        sys.stdout.write("".join(f"docs/{name}.md\n" for name in PAGES))
        return 0
    for page in [Path(name).resolve() for name in names]:
        shown, new = page.read_text(encoding="utf-8"), run(page)
        if new != shown and write:
            page.write_text(new, encoding="utf-8")
        elif new != shown:
            different += 1
            sys.stdout.writelines(
                difflib.unified_diff(shown.splitlines(True), new.splitlines(True), str(page), "printed")
            )
    return different


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    sys.exit(main(sys.argv[1:]))
