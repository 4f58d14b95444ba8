"""The package as it is installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_BYTES = 15_000_000

RANK = """
import socket
def refuse(*_, **__): raise AssertionError("the network was asked")
socket.socket.connect = socket.getaddrinfo = refuse
import tercet
for name in ("bi", "poly", "cross"):
    scorer = tercet.load(name, device="cpu")
    found = scorer.rank("When can I borrow books?", ["Water it.", "The library opens at nine."])
    print(name, found[0].position, tercet.__file__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return next(folder.glob("*.whl"))


def test_the_wheel_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size < MOST_BYTES


def test_an_installed_wheel_ranks_with_all_three_without_a_network(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, "--target", str(site), str(wheel)], check=True)
    ran = subprocess.run(
        [sys.executable, "-c", RANK],
        env={**os.environ, "PYTHONPATH": str(site), "HF_HUB_OFFLINE": "0"},
        cwd=tmp_path,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    here = (site / "tercet" / "__init__.py").resolve()
    assert ran.stdout.splitlines() == [f"{name} 1 {here}" for name in ("bi", "poly", "cross")]
