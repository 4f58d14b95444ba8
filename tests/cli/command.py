"""Runs the command line, in this process (where torch is loaded already) or in a new one."""

import io
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from unittest.mock import patch

from tercet.cli.main import main

SOURCE = Path(__file__).parents[2] / "src"
Result = subprocess.CompletedProcess[str]
SHOWN = {"COLUMNS": "100", "NO_COLOR": "1"}


def tercet(*words: str, stdin: str | bytes = "") -> Result:
    """The output and the exit status of a command."""
    given, out, errors = (
        io.TextIOWrapper(io.BytesIO(content), encoding="utf-8")
        for content in (stdin.encode() if isinstance(stdin, str) else stdin, b"", b"")
    )
    status: object = 0
    with (
        patch.object(sys, "argv", ["tercet", *words]),
        patch.multiple(sys, stdin=given, stdout=out, stderr=errors),
        patch.dict(os.environ, SHOWN),
        patch.object(warnings, "showwarning", warnings.showwarning),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")
        try:
            main()
        except SystemExit as end:
            status = end.code
        out.flush()
        errors.flush()
    printed = [stream.buffer.getvalue().decode() for stream in (out, errors)]
    return subprocess.CompletedProcess(["tercet", *words], int(str(status or 0)), *printed)


def tercet_process(*words: str, stdin: str | bytes = "", environment: dict[str, str] | None = None) -> Result:
    """The same in a new process, which takes some seconds and imports the tree."""
    done = subprocess.run(
        [sys.executable, "-m", "tercet", *words],
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        check=False,
        env=os.environ | SHOWN | _with_tree(environment or {}),
        timeout=120,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def _with_tree(environment: dict[str, str]) -> dict[str, str]:
    """The environment in which Python imports this tree, not an installed copy."""
    paths = [environment.get("PYTHONPATH", ""), str(SOURCE)]
    return environment | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def text_of(page: str) -> str:
    """A page without its pictures, whose base64 may contain any word."""
    return re.sub(r"data:image/png;base64,[\w+/=]+", "PICTURE", page)


def assert_refused(result: Result, message: str) -> None:
    """A wrong option: status 2, and the usage with the message on standard error."""
    assert result.returncode == 2
    assert result.stdout == ""
    assert message in " ".join(result.stderr.replace("│", " ").split())


def assert_fails(result: Result, message: str) -> None:
    """One line on standard error, nothing on standard output."""
    assert result.returncode == 1
    assert result.stdout == ""
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
