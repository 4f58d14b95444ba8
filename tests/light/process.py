"""Processes of tercet, most of which cannot import torch, transformers and tantivy: the base installation."""

import os
import subprocess
import sys
from pathlib import Path

BLOCKER = Path(__file__).parent / "without_torch"


def environment(**variables: str) -> dict[str, str]:
    """The environment of such a process."""
    path = os.pathsep.join([str(BLOCKER), os.environ["PYTHONPATH"]])
    return {**os.environ, "PYTHONPATH": path, "NO_COLOR": "1", "COLUMNS": "200", **variables}


def run(code: str, *, folder: Path) -> subprocess.CompletedProcess[str]:
    """Python code in a process of its own, in which nothing is missing."""
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, check=False, capture_output=True, text=True
    )


def python(*arguments: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Python to its end, in a folder."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment(**variables),
        check=False,
        capture_output=True,
        text=True,
    )


def tercet(*arguments: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command of tercet to its end, in a folder."""
    return python("-m", "tercet", *arguments, folder=folder, **variables)
