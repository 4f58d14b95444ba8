"""A full disk while a command writes: one line, status 1, and no half file under the final name."""

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from pathlib import Path

import pytest
from tests.augment.conftest import AUGMENT, CROSS, STUDENT
from tests.cli.command import SOURCE, tercet
from tests.training.small_recipes import tables, write_rows, write_toml

from tercet.cli.main import COMMANDS
from tercet.data.sample import pairs
from tercet.errors import OutputError
from tercet.retrieve import Retriever

ROOT = Path(__file__).parents[2]

WRITING: dict[str, tuple[str, ...]] = {
    "encode": ("encode", "texts.txt", "-m", "MODEL", "-o", "OUT/a.npy"),
    "pairs": ("pairs", "texts.txt", "-m", "MODEL", "-o", "OUT/a.jsonl"),
    "cluster": ("cluster", "texts.txt", "-m", "MODEL", "--threshold", "-1", "-o", "OUT/a.jsonl"),
    "cluster --map html": ("cluster", "texts.txt", "-m", "MODEL", "--threshold", "-1", "--map", "OUT/a.html"),
    "cluster --map png": ("cluster", "texts.txt", "-m", "MODEL", "--threshold", "-1", "--map", "OUT/a.png"),
    "explain": ("explain", "-m", "MODEL", "one", "two", "-o", "OUT/a.html"),
    "evaluate": ("evaluate", "MODEL", "similarity:pairs.jsonl", "-o", "OUT/report"),
    "new-recipe": ("new-recipe", "bi", "--data", "pairs.jsonl", "-o", "OUT/a.toml"),
    "data negatives": ("data", "negatives", "answers.jsonl", "-m", "MODEL", "-o", "OUT/a.jsonl"),
    "new bi": ("new", "bi", "OUT/bi", "-b", "MODEL"),
    "new poly": ("new", "poly", "OUT/poly", "-b", "MODEL", "--codes", "4"),
    "new cross": ("new", "cross", "OUT/cross", "-b", "MODEL"),
    "calibrate": ("calibrate", "MODEL", "--data", "pairs.jsonl", "--match-from", "3", "-o", "OUT/model"),
    "train": ("train", "recipe.toml", "-o", "OUT/run", "--device", "cpu"),
    "distill": (
        *("distill", "MODEL", "sample:parallel.en-ko", "--column", "source=en", "--column", "target=ko"),
        *("--pieces", "0", "-o", "OUT/run"),
    ),
    "cross-validate": ("cross-validate", "pairs.toml", "--folds", "2", "-o", "OUT/run", "--device", "cpu"),
    "pretrain": ("pretrain", "pretrain.toml", "-o", "OUT/run", "--device", "cpu"),
    "export": ("export", "MODEL", "--calibrate", "texts.txt", "-o", "OUT/model"),
    "augment": ("augment", "augment.toml", "-o", "OUT/run", "--device", "cpu"),
}
"""A command for each way of writing; ``bench`` takes too long, and writes as ``evaluate`` does."""

FINISHED = ("a.npy", "a.jsonl", "a.html", "a.png", "a.toml", "report", "bi", "poly", "cross", "model")
"""Names that only complete results have."""


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file can grow beyond this size: writing fails with ``EFBIG``, as it does on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))  # Python ignores SIGXFSZ
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory, tiny_folder: Callable[[str], Path]) -> Path:
    """A folder with the files that the commands read."""
    folder, backbone = tmp_path_factory.mktemp("inputs"), tiny_folder("bert")
    (folder / "texts.txt").write_text("".join(f"{pair.context}\n" for pair in pairs("en")))
    rows = [
        {"context": each.context, "candidate": each.candidate, "score": each.score} for each in pairs("en")
    ]
    write_rows(folder / "pairs.jsonl", rows)
    write_rows(folder / "answers.jsonl", [{"context": a["context"], "answer": a["candidate"]} for a in rows])
    write_toml(folder / "recipe.toml", tables(backbone, training={"epochs": 1, "evals_per_epoch": 1}))
    (folder / "pretrain.toml").write_text((ROOT / "recipes" / "pretrain-sample.toml").read_text())
    data = {"train": {"files": str(folder / "pairs.jsonl"), "reader": "pairs"}}
    objective = {"kind": "cosine", "max_score": 5}
    write_toml(folder / "pairs.toml", tables(backbone, data=data, objective=objective))
    for number, name in enumerate(("gold", "dev", "test")):
        write_rows(folder / f"{name}.jsonl", rows[number::3])
    (folder / "cross.toml").write_text(CROSS.format(backbone=backbone))
    student = STUDENT.format(backbone=backbone, kind="bi", objective='kind = "cosine"\nmax_score = 5')
    (folder / "student.toml").write_text(student)
    augment = AUGMENT.format(labeller='labeller = "cross.toml"', tables='[sampling]\nsamplers = ["bm25"]')
    (folder / "augment.toml").write_text(augment)
    done = tercet(
        "index", "build", str(folder / "texts.txt"), "-m", str(backbone), "-o", str(folder / "index")
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("size", [0, 150])
@pytest.mark.parametrize("name", WRITING)
def test_a_full_disk_is_one_line_and_leaves_no_half_file(
    name: str,
    size: int,
    inputs: Path,
    tiny_folder: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(inputs)
    names = {"MODEL": str(tiny_folder("bert"))}
    words = [names.get(word, word).replace("OUT", str(tmp_path)) for word in WRITING[name]]
    with full_disk(size):
        done = tercet(*words)
    assert done.returncode == 1, done.stdout
    assert "no space left on the device: free some" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    left = [path for path in tmp_path.rglob("*") if path.name in FINISHED or path.suffix == ".partial"]
    assert not left


def test_an_export_of_an_index_leaves_no_half_file(
    tiny_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    retriever = Retriever(tiny_folder("bert"), path=tmp_path / "index")
    retriever.add([f"text {number}" for number in range(100)])
    for vectors in (None, tmp_path / "a.npy"):
        with full_disk(150), pytest.raises(OutputError, match="no space left on the device: free some"):
            retriever.export(tmp_path / "a.jsonl", vectors=vectors)
        assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_every_command_that_writes_is_tried() -> None:
    tried = {words[0] for words in WRITING.values()}
    writing = {command.__name__.replace("_", "-") for command in COMMANDS if writes(command)}
    assert writing - tried == {"bench"}


def writes(command: Callable[..., None]) -> bool:
    """Whether a command has an option for a path to write to."""
    return bool({"out", "html", "map"} & set(signature(command).parameters))


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [("recipes",), ("--help",)])
def test_a_full_disk_behind_standard_output_is_one_line(words: tuple[str, ...], unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from tercet.cli import main; main()", *words],
            env=os.environ | {"PYTHONPATH": str(SOURCE), "PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == (
        "error: cannot write the output: no space left on the device: free some, or write elsewhere\n"
    )
