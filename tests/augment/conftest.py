"""A small world: sentences of a few words, and gold that says how many words two of them share."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import WORDS

FolderOf = Callable[[str], Path]
Recipe = Callable[..., Path]

CROSS = """
[model]
kind = "cross"
source = "{backbone}"
activation = "sigmoid"

[data.train]
files = "unused.jsonl"

[objective]
kind = "regression"
highest = 5

[batches]
examples = 8

[training]
epochs = 1
learning_rate = 1e-3
best_by = "spearman"
"""
STUDENT = """
[model]
kind = "{kind}"
source = "{backbone}"

[data.train]
files = "unused.jsonl"

[objective]
{objective}

[batches]
examples = 8

[training]
epochs = 1
learning_rate = 1e-3
"""
AUGMENT = """
about = "A small world."
{labeller}
student = "student.toml"

[data.train]
files = "gold.jsonl"
[data.dev]
files = "dev.jsonl"
[data.test]
files = "test.jsonl"

{tables}
"""


def some_pairs(count: int, *, seed: int) -> list[dict[str, object]]:
    """Pairs of sentences, and five times the share of words they have in common."""
    chance = random.Random(seed)
    rows: list[dict[str, object]] = []
    for _ in range(count):
        left = chance.sample(WORDS, 5)
        kept = chance.randrange(6)
        right = [*left[:kept], *chance.sample([word for word in WORDS if word not in left], 5 - kept)]
        chance.shuffle(right)
        rows.append({"context": " ".join(left), "candidate": " ".join(right), "score": float(kept)})
    return rows


def write_rows(file: Path, rows: list[dict[str, object]]) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


@pytest.fixture
def world(tmp_path: Path, tiny_folder: FolderOf) -> Recipe:
    """Writes gold and recipes; what is given comes into the tables of the recipe."""

    def write(
        tables: str,
        *,
        labelled: bool = True,
        kind: str = "bi",
        objective: str = 'kind = "cosine"\nhighest = 5',
        rows: dict[str, list[dict[str, object]]] | None = None,
    ) -> Path:
        sets = {"gold": some_pairs(24, seed=0), "dev": some_pairs(12, seed=1), "test": some_pairs(30, seed=2)}
        for name, each in (sets | (rows or {})).items():
            write_rows(tmp_path / f"{name}.jsonl", each)
        backbone = tiny_folder("bert")
        (tmp_path / "cross.toml").write_text(CROSS.format(backbone=backbone))
        (tmp_path / "student.toml").write_text(
            STUDENT.format(backbone=backbone, kind=kind, objective=objective)
        )
        recipe = tmp_path / "augment.toml"
        labeller = 'labeller = "cross.toml"' if labelled else ""
        recipe.write_text(AUGMENT.format(labeller=labeller, tables=tables))
        return recipe

    return write
