"""Lists what a wheel and an sdist contain, and refuses what does not belong: ``python contents.py dist``."""

import re
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path
from zipfile import ZipFile

NEEDED = {
    ".whl": (
        "tercet/__init__.py",
        "tercet/py.typed",
        "tercet/recipes/bi-sample.toml",
        "tercet/tasks/stsb.toml",
    ),
    ".gz": (
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "Makefile",
        "docs/conf.py",
        "tests/conftest.py",
    ),
}
STRANGE = re.compile(
    r"(^|/)(\.env|\.venv|\.git|\.DS_Store|__pycache__|node_modules|build|dist|runs)(/|$)|\.(pyc|pkl|pt|bin|so|log)$"
)
"""Caches, results, secrets, and files that can contain code."""
MAX_BYTES = 100_000_000


def problems(archive: Path) -> list[str]:
    """What is missing in an archive, and what should not be there."""
    names = contents(archive)
    needed = NEEDED[archive.suffix] if archive.name.startswith("tercet-") else ()
    missing = [f"{name} is missing" for name in needed if name not in names]
    strange = [f"{name} does not belong there" for name in names if STRANGE.search(name)]
    size = archive.stat().st_size
    too_large = [f"{size:,} bytes, and at most {MAX_BYTES:,} are allowed"] if size > MAX_BYTES else []
    return missing + strange + too_large


def contents(archive: Path) -> list[str]:
    """The names of the files; those of an sdist without its first folder."""
    if archive.suffix == ".whl":
        with ZipFile(archive) as wheel:
            return wheel.namelist()
    with tarfile.open(archive) as sdist:
        return [member.name.partition("/")[2] for member in sdist.getmembers() if member.isfile()]


def summary(names: Iterable[str]) -> str:
    """The number of files in each folder."""
    counts: dict[str, int] = {}
    for name in names:
        folder = "/".join(name.split("/")[:-1][:2]) or "."
        counts[folder] = counts.get(folder, 0) + 1
    return "\n".join(f"  {folder}: {count}" for folder, count in sorted(counts.items()))


def main(folder: Path) -> int:
    """Show the archives of a folder; the exit status is 1 if one has a problem."""
    archives = [*folder.glob("*.whl"), *folder.glob("*.tar.gz")]
    found = {archive: problems(archive) for archive in archives}
    for archive, wrong in found.items():
        lines = [f"{archive.name}, {archive.stat().st_size:,} bytes", summary(contents(archive)), *wrong]
        sys.stdout.write("\n".join(lines) + "\n")
    return int(not archives or any(found.values()))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
