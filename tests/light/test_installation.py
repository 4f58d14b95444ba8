"""Installations from a checkout, in new virtual environments. They need the package index or pip's cache."""

import os
import subprocess
import sys
import tarfile
from email.parser import Parser
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

if TYPE_CHECKING:
    from email.message import Message

ROOT = Path(__file__).parents[2]
UNWANTED = {"torch", "transformers", "sentence-transformers", "scipy", "pandas"}


def run(*command: str, folder: Path, **variables: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=folder, env={**environment, **variables}, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def requirements(metadata: str) -> list[str]:
    parsed: Message = Parser().parsestr(metadata)
    return [line for line in parsed.get_all("Requires-Dist") or [] if line.startswith("tercet-minilm")]


def metadata_of_wheel(wheel: Path) -> str:
    with ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return archive.read(name).decode()


@pytest.mark.slow
def test_a_wheel_of_a_checkout_asks_for_the_weights_in_it(tmp_path: Path) -> None:
    build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path))
    run(*build, folder=ROOT)
    local = (ROOT / "packages" / "minilm").as_uri()
    assert requirements(metadata_of_wheel(next(tmp_path.glob("*.whl")))) == [f"tercet-minilm @ {local}"]


@pytest.mark.slow
def test_a_release_names_no_folder_of_this_machine(tmp_path: Path) -> None:
    build = (sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path))
    run(*build, folder=ROOT, TERCET_RELEASE="1")
    source = next(tmp_path.glob("*.tar.gz"))
    with tarfile.open(source) as archive:
        names = archive.getnames()
        member = archive.extractfile(next(name for name in names if name.endswith("/PKG-INFO")))
        assert member is not None
        assert requirements(member.read().decode()) == ["tercet-minilm<0.2,>=0.1"]
    assert requirements(metadata_of_wheel(next(tmp_path.glob("*.whl")))) == ["tercet-minilm<0.2,>=0.1"]
    assert not [name for name in names if "/packages/" in name]
    assert [name for name in names if name.endswith("/hatch_build.py")]


@pytest.mark.slow
def test_a_checkout_installs_in_one_step_and_ranks_without_torch(tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", "venv", folder=tmp_path)
    pip = (str(tmp_path / "venv" / "bin" / "python"), "-m", "pip")
    run(*pip, "install", "--quiet", "-c", "constraints.txt", ".", folder=ROOT)
    frozen = run(*pip, "list", "--format=freeze", folder=tmp_path)
    installed = {line.partition("==")[0].lower() for line in frozen.split()}
    assert not installed & UNWANTED
    tercet = str(tmp_path / "venv" / "bin" / "tercet")
    for model in ("bi", "bi-ko", "poly", "cross"):
        found = run(
            tercet,
            "rank",
            "My card was declined",
            "-c",
            "sample:faq.en",
            "--column",
            "question",
            "-k",
            "1",
            "--model",
            model,
            folder=tmp_path,
            HF_HUB_OFFLINE="0",
        )
        assert "Why was my card payment refused?" in found
    run(
        tercet, "index", "build", "sample:faq.en", "--column", "question", "-o", "faq.tercet", folder=tmp_path
    )
    assert "refused" in run(
        tercet, "search", "faq.tercet", "My card was declined", "-k", "1", folder=tmp_path
    )
