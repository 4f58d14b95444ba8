"""Every example runs, prints something, and is short."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs_and_prints_something(example: Path) -> None:
    done = subprocess.run([sys.executable, str(example)], capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.strip()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_is_below_40_lines(example: Path) -> None:
    assert len(example.read_text(encoding="utf-8").splitlines()) < 40
