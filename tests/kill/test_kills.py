"""A few kills of each kind; ``make kills`` runs more."""

import subprocess
import sys
from pathlib import Path


def test_killed_and_failing_processes_lose_nothing() -> None:
    script = Path(__file__).parent / "run.py"
    counts = ["--writing", "10", "--training", "4", "--encoding", "10", "--serving", "3", "--full", "6"]
    done = subprocess.run(
        [sys.executable, str(script), *counts], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("nothing lost, nothing half") == 5
