"""The wheel: its size, and an installation of it."""

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]
MAX_BYTES = 40_000_000

RANK = """
import socket
def refuse(*_, **__): raise AssertionError("a network connection was attempted")
socket.socket.connect = socket.getaddrinfo = refuse
import tercet
for name in ("bi", "bi-ko", "poly", "cross"):
    scorer = tercet.load(name)
    best = scorer.rank("When can I borrow books?", ["Water it.", "The library opens at nine."])[0]
    print(name, best.position, tercet.__file__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return next(folder.glob("*.whl"))


def test_the_wheel_is_below_40_megabytes(wheel: Path) -> None:
    assert wheel.stat().st_size < MAX_BYTES


def test_the_models_of_an_installed_wheel_rank_without_a_network(wheel: Path, tmp_path: Path) -> None:
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
    assert ran.stdout.splitlines() == [f"{name} 1 {here}" for name in ("bi", "bi-ko", "poly", "cross")]


def test_recipes_and_tasks_of_the_repository_are_in_the_wheel(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for kind in ("recipes", "tasks"):
        wanted = {f"tercet/{kind}/{file.name}" for file in (ROOT / kind).glob("*.toml")}
        assert wanted
        assert wanted <= names
    assert not [name for name in names if name.startswith("tercet/recipes") and name.endswith(".py")]
