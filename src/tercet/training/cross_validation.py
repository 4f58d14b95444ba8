"""Cross-validation of a recipe: train on all folds but one and evaluate on that one, in turn.

Folds are random, or the values of a column such as topics: then every topic is evaluated by a model that has
not seen it, as Sentence-BERT does with arguments.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tercet.data.readers import read_examples
from tercet.errors import InputError
from tercet.evaluate.run import Row, Table
from tercet.evaluate.tasks.load import group_numbers
from tercet.evaluate.tasks.pairs import MatchTask, Pairs, SimilarityTask
from tercet.files.atomic import new_file, writing
from tercet.files.digest import rows_digest
from tercet.files.structured import json_text, read_json, write_json
from tercet.formats.from_spec import make_scorer
from tercet.formats.load import load
from tercet.records import Bools, Context, Example, Ints
from tercet.settings.data import DataConfig
from tercet.settings.recipe import Recipe
from tercet.training.reporter import Reporter
from tercet.training.run import run_recipe


def cross_validate(
    recipe: Recipe,
    path: Path,
    *,
    group: str = "",
    folds: int = 0,
    root: Path | None = None,
    device: str | None = None,
    reporter: Reporter | None = None,
) -> Table:
    """The untrained and the trained model on every pair, each trained without the pair's fold.

    Args:
        path: a folder for the runs; finished runs in it are not repeated.
        group: the column whose values are the folds. Otherwise there are ``folds`` random folds.
    """
    if recipe.train.reader != "pairs":
        raise InputError(f"cross-validation needs the reader pairs, and the recipe has {recipe.train.reader}")
    reporter = reporter or Reporter()
    examples = read_examples(recipe.train, root=root)
    numbers = group_numbers(
        recipe.train, len(examples), group=group, folds=folds, seed=recipe.training.seed, root=root
    )
    count = int(numbers.max()) + 1
    if count < 2:
        raise InputError("cross-validation needs at least two folds, got one")
    _check_same(
        path,
        {"group": group, "folds": folds, "pairs": rows_digest([numbers.tolist(), *map(_line, examples)])},
    )
    scores = np.empty(len(examples), dtype=np.float32)
    for fold in range(count):
        reporter.report(f"fold {fold + 1} of {count}")
        folder = path / f"fold-{fold + 1}"
        run = folder / "run"
        split = _split(recipe, examples, numbers == fold, folder)
        run_recipe(split, run, root=root, resume=run.exists(), device=device, reporter=reporter)
        held_out = np.flatnonzero(numbers == fold)
        scores[held_out] = load(run / "model", device=device, runtime="torch").score_pairs(
            *_sides(examples, held_out)
        )
    return _table(recipe, path.name, Pairs.of(examples, numbers), scores, device=device)


def _table(recipe: Recipe, name: str, pairs: Pairs, scores: Any, *, device: str | None) -> Table:
    is_binary = set(np.unique(pairs.targets)) == {0.0, 1.0}
    task = MatchTask(name, pairs) if is_binary else SimilarityTask(name, pairs)
    untrained = task.run(make_scorer(recipe.model, device=device), "untrained")
    trained = task.of_scores(scores, "trained")
    return Table(name, (Row("untrained", (untrained,)), Row("trained", (trained,))))


def _check_same(path: Path, settings: dict[str, Any]) -> None:
    """Raise if the folder contains runs on other folds, whose models may have seen their test pairs."""
    file = path / "folds.json"
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
    if not file.is_file():
        write_json(file, settings)
    elif read_json(file) != settings:
        raise InputError(f"{path} contains runs on other folds or pairs: choose another folder (--out)")


def _split(recipe: Recipe, examples: Sequence[Example], held_out: Bools, folder: Path) -> Recipe:
    """The recipe with the fold as test data and all other pairs as training data."""
    files = {"train": folder / "train.jsonl", "test": folder / "test.jsonl"}
    if not all(file.is_file() for file in files.values()):
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        for name, file in files.items():
            chosen = held_out if name == "test" else ~held_out
            rows = [examples[position] for position in np.flatnonzero(chosen).tolist()]
            with new_file(file, overwrite=True) as partial:
                partial.write_text("".join(map(_line, rows)), encoding="utf-8")
    train = DataConfig(
        files=(str(files["train"].resolve()),),
        drop_overlap=True,
        both_directions=recipe.train.both_directions,
    )
    return replace(recipe, train=train, dev=None, test=DataConfig(files=(str(files["test"].resolve()),)))


def _sides(examples: Sequence[Example], positions: Ints) -> tuple[list[Context], list[str]]:
    chosen = [examples[position] for position in positions]
    return [example.context for example in chosen], [example.candidates[0] for example in chosen]


def _line(example: Example) -> str:
    row = {"context": example.context, "candidate": example.candidates[0], "score": example.targets[0]}
    return json_text(row) + "\n"
