"""Small augment recipes: gold pairs of short sentences, scored by the number of words they share."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import WORDS

FolderOf = Callable[[str], Path]
WriteRecipe = Callable[..., Path]

CROSS = """
[model]
kind = "cross"
source = "{backbone}"
activation = "sigmoid"

[data.train]
files = "unused.jsonl"

[objective]
kind = "bce"
max_score = 5

[batches]
batch_size = 8

[training]
epochs = 1
learning_rate = 1e-3
metric_for_best_model = "spearman"
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
batch_size = 8

[training]
epochs = 1
learning_rate = 1e-3
"""
AUGMENT = """
about = "A small recipe."
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


def make_pairs(count: int, *, seed: int) -> list[dict[str, object]]:
    """Random pairs of sentences of five words; the score is the number of shared words."""
    rng = random.Random(seed)
    rows: list[dict[str, object]] = []
    for _ in range(count):
        left = rng.sample(WORDS, 5)
        kept = rng.randrange(6)
        right = [*left[:kept], *rng.sample([word for word in WORDS if word not in left], 5 - kept)]
        rng.shuffle(right)
        rows.append({"context": " ".join(left), "candidate": " ".join(right), "score": float(kept)})
    return rows


def write_rows(file: Path, rows: list[dict[str, object]]) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


@pytest.fixture
def write_recipe(tmp_path: Path, tiny_folder: FolderOf) -> WriteRecipe:
    """Writes gold data, the recipes of labeller and student, and an augment recipe with the given tables."""

    def write(
        tables: str,
        *,
        labelled: bool = True,
        kind: str = "bi",
        objective: str = 'kind = "cosine"\nmax_score = 5',
        rows: dict[str, list[dict[str, object]]] | None = None,
    ) -> Path:
        sets = {"gold": make_pairs(24, seed=0), "dev": make_pairs(12, seed=1), "test": make_pairs(30, seed=2)}
        for name, content in (sets | (rows or {})).items():
            write_rows(tmp_path / f"{name}.jsonl", content)
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
