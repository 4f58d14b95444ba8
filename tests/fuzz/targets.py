"""What is fuzzed: valid small files, how they are damaged, and the code that reads them."""

import gzip
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.fuzz.mutations import damaged, damaged_gzip, damaged_json, damaged_rows, damaged_toml

from tercet.data.columns import contexts, texts
from tercet.data.guess import guess_data
from tercet.data.qrels import read_qrels
from tercet.data.readers import read_examples
from tercet.data.row_counts import quick_count
from tercet.data.rows import read_rows
from tercet.errors import TercetError
from tercet.settings.augment import read_augment_recipe
from tercet.settings.data import DataConfig
from tercet.settings.files import FileConfig
from tercet.settings.pretrain import read_pretrain_recipe
from tercet.settings.recipe import read_recipe
from tercet.settings.tasks import read_task

ROOT = Path(__file__).parents[2]

ROWS = [
    {
        "context": ["Hi!", "How are you?"],
        "candidate": "Fine, 고마워.",
        "score": 1,
        "extra": {"a": [1, 2.5, None]},
    },
    {"context": "One\nturn", "candidate": 'A "quoted" answer; really', "score": 0.5, "extra": None},
]
JSONL = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS).encode()
CSV = b'context,candidate,score\n"[""Hi!"", ""you""]","one, two",1\n"a\nb",c,0\n'
TSV = b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\n"


@dataclass(frozen=True)
class Target:
    """A file, how it is damaged, and a function that reads it."""

    name: str
    content: bytes
    damage: Callable[[bytes, Random], bytes]
    read: Callable[[Path], object]


def check(read: Callable[[Path], object], path: Path) -> None:
    """Read a file. Any error but a ``TercetError`` is a finding."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            read(path)
        except TercetError as error:
            str(error).encode()  # a message that cannot be printed would be an error in the command


def each(*readers: Callable[[Path], object]) -> Callable[[Path], None]:
    """All of the readers, one after the other; an error of one does not keep the others from reading."""

    def read(path: Path) -> None:
        for reader in readers:
            check(reader, path)

    return read


def rows(path: Path) -> None:
    """The rows, their texts and contexts, their number, and examples of a guessed reader."""
    each(
        lambda path: [dict(row.columns) for row in read_rows(path)],
        lambda path: list(texts(read_rows(path))),
        lambda path: list(contexts(read_rows(path), "context")),
        lambda path: quick_count(str(path)),
        lambda path: guess_data(list(read_rows(path)), name=str(path)),
        lambda path: read_examples(DataConfig(files=(str(path),), reader="pairs")),
        lambda path: list(read_rows(path, FileConfig(encoding="cp949"))),
    )(path)


def readers() -> list[Target]:
    """The readers of data files, recipes and tasks."""
    found = [
        Target("rows.csv", CSV, damaged, rows),
        Target("rows.tsv", TSV, damaged, each(rows, lambda path: list(read_qrels(path, FileConfig())))),
        Target("rows.jsonl", JSONL, damaged_rows, rows),
        Target("rows.json", json.dumps(ROWS).encode(), damaged_json, rows),
        Target("rows.txt", "one\n둘\n\nthree\r\n".encode(), damaged, rows),
        Target("wide.txt", "one\n둘\n\nthree\r\n".encode("utf-16"), damaged, rows),
        Target("rows.csv.gz", gzip.compress(CSV), damaged_gzip, rows),
        Target("rows.jsonl.gz", gzip.compress(JSONL), damaged_gzip, rows),
    ]
    found += [
        _toml("recipes", "bi-sample", read_recipe),
        _toml("recipes", "cross-ubuntu", read_recipe),
        _toml("recipes", "pretrain-sample", read_pretrain_recipe),
        _toml("recipes", "augment-sample", read_augment_recipe),
    ]
    found += [
        _toml("tasks", path.stem, lambda path: read_task(str(path)))
        for path in sorted((ROOT / "tasks").glob("*.toml"))[:3]
    ]
    return found


def _toml(folder: str, name: str, read: Callable[[Path], object]) -> Target:
    content = (ROOT / folder / f"{name}.toml").read_bytes()
    return Target(f"{name}.toml", content, damaged_toml, read)
