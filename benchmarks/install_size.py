"""Size of a new installation and time to its first answer, beside other libraries.

python benchmarks/install_size.py

Each library gets a virtual environment in a temporary folder, which is removed afterwards. torch and
tercet have the versions of constraints.txt; torch is installed first. The question is the same: which of 120
questions is closest to "My card was declined", by the files of the packaged MiniLM. fastembed and model2vec
download a model of their own for that, so only their imports are timed.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import machine

ROOT = Path(__file__).parents[1]
MEGABYTE = 1_000_000
TOOLS = ("pip", "setuptools", "pkg_resources", "_distutils_hack")
"""Packages of an empty virtual environment."""

OURS = ("-m", "tercet", "rank", "My card was declined", "-c", "{faq}", "-k", "1")
THEIRS = """
from sentence_transformers import SentenceTransformer
model = SentenceTransformer({model!r}, device="cpu")
texts = open({faq!r}).read().splitlines()
scores = model.similarity(model.encode(["My card was declined"]), model.encode(texts))
print(texts[int(scores.argmax())])
"""

CASES: dict[str, tuple[tuple[str, ...], ...]] = {
    "tercet": ((str(ROOT),),),
    "tercet[torch]": (("torch",), (f"{ROOT}[torch]",)),
    "sentence-transformers": (("torch",), ("sentence-transformers",)),
    "fastembed": (("fastembed",),),
    "model2vec": (("model2vec",),),
}
"""The packages of each environment, in the order of their installation."""

MODULES = {"fastembed": "fastembed", "model2vec": "model2vec"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(
        f"{machine()}; {options.rounds} rounds; 1 MB = 1,000,000 bytes on disk, without pip and setuptools\n"
    )
    print("| installation | MB | largest packages, MB | first answer, seconds (spread) |")
    print("|---|---:|---|---:|")
    for name in options.only:
        with tempfile.TemporaryDirectory(prefix="install-size-") as folder:
            print(row(name, Path(folder), options.rounds), flush=True)


def row(name: str, folder: Path, rounds: int) -> str:
    """The line of a library."""
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    for packages in CASES[name]:
        pins = [] if name in MODULES else ["-c", ROOT / "constraints.txt"]
        install = [python, "-m", "pip", "install", "--quiet", *pins, *packages]
        subprocess.run(install, check=True, cwd=folder, stderr=subprocess.DEVNULL)
    sizes = package_sizes(folder / "venv")
    largest = sorted(sizes, key=lambda package: -sizes[package])[:6]
    listed = ", ".join(f"{package} {sizes[package] / MEGABYTE:.0f}" for package in largest)
    times = [first_answer(name, python, folder) for _ in range(rounds + 1)][1:]  # the first fills the cache
    spread = f"{statistics.median(times):.2f} ({min(times):.2f}-{max(times):.2f})"
    note = " (import only)" if name in MODULES else ""
    return f"| {name} | {sum(sizes.values()) / MEGABYTE:.0f} | {listed} | {spread}{note} |"


def package_sizes(venv: Path) -> dict[str, int]:
    """The bytes on disk of each top-level entry of site-packages, libraries beside a package included."""
    (site,) = (venv / "lib").glob("python*/site-packages")
    sizes: dict[str, int] = {}
    for entry in site.iterdir():
        name = entry.name.partition("-")[0].partition(".")[0].lower()
        if name not in TOOLS:
            sizes[name] = sizes.get(name, 0) + disk_bytes(entry)
    return sizes


def disk_bytes(path: Path) -> int:
    """As ``du`` counts: whole blocks."""
    files = [path, *path.rglob("*")] if path.is_dir() else [path]
    return sum(file.lstat().st_blocks * 512 for file in files)


def first_answer(name: str, python: Path, folder: Path) -> float:
    """Seconds from the start of a process to its answer; for some libraries only of their import."""
    faq = folder / "faq.txt"
    if not faq.exists():
        rows = (ROOT / "src/tercet/data/sample/faq.en.jsonl").read_text(encoding="utf-8").splitlines()
        faq.write_text("\n".join(json.loads(line)["question"] for line in rows), encoding="utf-8")
    if name in MODULES:
        command = ["-c", f"import {MODULES[name]}"]
    elif name.startswith("tercet"):
        command = [part.format(faq=faq) for part in OURS]
    else:
        command = ["-c", THEIRS.format(model=str(model_folder()), faq=str(faq))]
    began = time.perf_counter()
    subprocess.run([python, *command], check=True, cwd=folder, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def model_folder() -> Path:
    """The files of MiniLM, in the environment of this script."""
    from tercet.formats.backbone import backbone_folder

    return backbone_folder()


if __name__ == "__main__":
    main()
