"""Small recipes for tests: tables, TOML files and data files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import tercet
from tercet.settings.recipe import make_recipe
from tercet.training.run import run_recipe

FolderOf = Callable[[str], Path]

ROOT = Path(__file__).parent.parent.parent
RECIPES = ROOT / "recipes"

PAIR_ROWS = [{"context": f"the cat {n}", "candidate": f"a dog {n}", "score": n % 2} for n in range(40)]
COSINE = {"kind": "cosine"}


def tables(backbone: Path, **parts: Any) -> dict[str, Any]:
    """The tables of a small recipe: a tiny bi-encoder on the sample questions."""
    defaults = {
        "model": {"kind": "bi", "source": str(backbone)},
        "data": {"train": {"files": "sample:faq.en", "reader": "answers"}},
        "objective": {"kind": "in_batch", "score_scale": 20},
        "batches": {"batch_size": 16},
        "training": {"epochs": 2, "learning_rate": 1e-3},
    }
    return {**defaults, **parts}


def run(table: dict[str, Any], folder: Path, **options: Any) -> dict[str, Any]:
    """The result of a run on the CPU."""
    return run_recipe(make_recipe(table, name="test"), folder, device="cpu", **options)


def write_rows(path: Path, content: list[dict[str, Any]]) -> str:
    """The name of a JSON Lines file with these rows."""
    path.write_text("".join(json.dumps(row) + "\n" for row in content))
    return str(path)


def write_toml(path: Path, table: dict[str, Any]) -> Path:
    """A TOML file with these tables."""
    lines: list[str] = []

    def put(name: str, content: dict[str, Any]) -> None:
        lines.extend([f"[{name}]"] if name else [])
        inner = {key: value for key, value in content.items() if isinstance(value, dict)}
        lines.extend(f"{key} = {json.dumps(value)}" for key, value in content.items() if key not in inner)
        for key, value in inner.items():
            put(f"{name}.{key}".lstrip("."), value)

    put("", table)
    path.write_text("\n".join(lines))
    return path


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return dict(tercet.load(folder, device="cpu").named_parameters())


def assert_same_model(left: Path, right: Path) -> None:
    ours, theirs = weights(left), weights(right)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
