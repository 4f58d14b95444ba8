"""Sentence-BERT's protocols for arguments: train on all parts but one and measure on that one, in turn.

The parts are folds drawn by chance, or the values of a column, such as topics: then every topic is measured
by a model that has not seen it.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.data.readers import DataConfig, all_lessons
from tercet.errors import InputError
from tercet.evaluate.run import Row, Table
from tercet.evaluate.tasks.load import group_numbers
from tercet.evaluate.tasks.pairs import MatchTask, Pairs, SimilarityTask
from tercet.files import new_file, read_json, write_json, writing
from tercet.models.load import load
from tercet.models.start import make_scorer
from tercet.records import Context, Counts, Lesson
from tercet.training.recipe import Recipe
from tercet.training.run import run_recipe
from tercet.training.run_folder import Teller


def run_protocol(
    recipe: Recipe,
    path: Path,
    *,
    group: str = "",
    folds: int = 0,
    root: Path | None = None,
    device: str | None = None,
    teller: Teller | None = None,
) -> Table:
    """The untrained and the trained model on every pair, each trained without the pair's part.

    Args:
        path: a folder for the runs; finished ones in it are not done again.
        group: the column that parts the pairs; or else ``folds`` parts are drawn.
    """
    if recipe.train.reader != "pairs":
        raise InputError(f"a protocol parts pairs, and the recipe reads {recipe.train.reader}")
    lessons = all_lessons(recipe.train, root=root)
    numbers = group_numbers(
        recipe.train, len(lessons), group=group, folds=folds, seed=recipe.training.seed, root=root
    )
    parts = int(numbers.max()) + 1
    if parts < 2:
        raise InputError("there is one part only: nothing would be left to train on")
    _check_same(path, {"group": group, "folds": folds, "pairs": _digest(lessons, numbers)})
    scores = np.empty(len(lessons), dtype=np.float32)
    for part in range(parts):
        (teller or Teller()).say(f"part {part + 1} of {parts}")
        folder = path / f"part-{part + 1}"
        split = _split(recipe, lessons, numbers == part, folder)
        run = folder / "run"
        run_recipe(split, run, root=root, resume=run.exists(), device=device, teller=teller)
        mine = np.flatnonzero(numbers == part)
        scores[mine] = load(run / "model", device=device).score_pairs(*_sides(lessons, mine))
    pairs = Pairs.of(lessons, numbers)
    matching = set(np.unique(pairs.targets)) == {0.0, 1.0}
    task = MatchTask(path.name, pairs) if matching else SimilarityTask(path.name, pairs)
    untrained = task.run(make_scorer(recipe.model, device=device), "untrained")
    return Table(
        path.name, (Row("untrained", (untrained,)), Row("trained", (task.of_scores(scores, "trained"),)))
    )


def _check_same(path: Path, settings: dict[str, Any]) -> None:
    """Raise if the folder holds runs on other parts: their models may have seen what they are measured on."""
    file = path / "parts.json"
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
    if not file.is_file():
        write_json(file, settings)
    elif read_json(file) != settings:
        raise InputError(f"{path} holds runs on other parts or other pairs: choose another folder (--out)")


def _digest(lessons: Sequence[Lesson], numbers: "Counts") -> str:
    digest = sha256(numbers.astype("<i8").tobytes())
    for lesson in lessons:
        digest.update(_line(lesson).encode())
    return digest.hexdigest()


def _split(recipe: Recipe, lessons: Sequence[Lesson], held_out: NDArray[np.bool_], folder: Path) -> Recipe:
    """The recipe on files without and with the part that is left out."""
    files = {"train": folder / "train.jsonl", "test": folder / "test.jsonl"}
    if not all(file.is_file() for file in files.values()):
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        for name, file in files.items():
            wanted = held_out if name == "test" else ~held_out
            chosen = [lessons[place] for place in np.flatnonzero(wanted).tolist()]
            with new_file(file, overwrite=True) as partial:
                partial.write_text("".join(map(_line, chosen)), encoding="utf-8")
    train = DataConfig(
        files=(str(files["train"].resolve()),), drop_overlap=True, both_ways=recipe.train.both_ways
    )
    return replace(recipe, train=train, dev=None, test=DataConfig(files=(str(files["test"].resolve()),)))


def _sides(lessons: Sequence[Lesson], places: "Counts") -> tuple[list[Context], list[str]]:
    chosen = [lessons[place] for place in places]
    return [lesson.context for lesson in chosen], [lesson.candidates[0] for lesson in chosen]


def _line(lesson: Lesson) -> str:
    row = {"context": lesson.context, "candidate": lesson.candidates[0], "score": lesson.targets[0]}
    return json.dumps(row, ensure_ascii=False) + "\n"
