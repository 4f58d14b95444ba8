"""The command line as users meet it, in this process, which has loaded torch already."""

import io
import os
import re
import subprocess
import sys
import warnings
from unittest.mock import patch

from tercet.cli.main import main

Result = subprocess.CompletedProcess[str]
SHOWN = {"COLUMNS": "100", "NO_COLOR": "1"}


def tercet(*words: str, stdin: str | bytes = "") -> Result:
    """What a command prints and its status."""
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
    """The same in a process of its own, which takes some seconds."""
    done = subprocess.run(
        [sys.executable, "-m", "tercet", *words],
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        check=False,
        env=os.environ | SHOWN | (environment or {}),
        timeout=120,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def words_of(page: str) -> str:
    """A page without its pictures, whose letters may spell anything."""
    return re.sub(r"data:image/png;base64,[\w+/=]+", "PICTURE", page)


def assert_fails(result: Result, message: str) -> None:
    """One line on standard error, nothing on standard output."""
    assert result.returncode == 1
    assert result.stdout == ""
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
