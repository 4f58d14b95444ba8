"""One training from recipe to model, in a folder that says all about it.

``config.json`` (every setting), ``data.json`` (what was learnt from), ``environment.json`` (versions,
machine), ``metrics.jsonl`` (every number that was logged), ``curves.png``, ``checkpoints``, and at the end
``result.json`` and ``model``, the best one. With adapters, ``adapter`` is the model in a few megabytes. A
recipe that begins with another's model has that run in ``before``.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from tercet.data.summary import summarise
from tercet.errors import InputError, OutputError
from tercet.extras import require
from tercet.files import read_json, read_json_if_there, write_json
from tercet.models.adapters import Adapters
from tercet.models.load import AnyScorer
from tercet.models.start import Start, make_scorer
from tercet.training.callbacks import MetricsFile, Progress, StopOnInterrupt
from tercet.training.checks import check_batches, check_lessons, check_variety
from tercet.training.curves import draw_curves
from tercet.training.cuts import cut_shares
from tercet.training.environment import environment
from tercet.training.examples import tokenise
from tercet.training.gather import is_first_process, local_device, wait_for_all
from tercet.training.lesson_sets import LessonSets, read_sets
from tercet.training.measures import measure
from tercet.training.objectives import CrossObjective, DualObjective, make_objective
from tercet.training.recipe import Recipe
from tercet.training.teacher import taught
from tercet.training.trainer import train

if TYPE_CHECKING:
    from transformers import TrainerCallback

MODEL = "model"
CONFIG = "config.json"
RESULT = "result.json"
METRICS = "metrics.jsonl"


@dataclass(frozen=True)
class Teller:
    """How a run speaks to whoever started it; says nothing by default."""

    say: Callable[[str], None] = lambda _: None
    """A sentence about what is done next."""
    progress: Callable[[int, int, dict[str, float]], None] = lambda *_: None
    """Steps done, steps in all, and the newest numbers."""
    stoppable: bool = False
    """Whether Ctrl-C should end the training with a checkpoint."""


def run_recipe(
    recipe: Recipe,
    folder: Path,
    *,
    root: Path | None = None,
    resume: bool = False,
    device: str | None = None,
    teller: Teller | None = None,
) -> dict[str, Any]:
    """Train what a recipe says; gives what ``result.json`` holds.

    Args:
        folder: a new one, or with ``resume`` one that was begun.
        root: the folder that data sets lie under.
        resume: go on after the last checkpoint; without one, from the beginning.
    """
    teller = teller or Teller()
    if is_first_process():
        open_run(folder, recipe.resolved(), resume=resume)
    if (folder / MODEL).is_dir():
        return read_json(folder / RESULT)
    start = recipe.model
    if recipe.after is not None:
        before = folder / "before"
        run_recipe(recipe.after, before, root=root, resume=before.exists(), device=device, teller=teller)
        start = replace(start, source=str(before / MODEL))
    teller.say("reading data")
    lessons = read_sets(recipe, root)
    if recipe.teacher is not None:
        teller.say(f"asking {recipe.teacher} for its scores")
        lessons = taught(lessons, recipe.teacher, recipe.objective, device=device or local_device())
    scorer = make_scorer(start, device=device or local_device())
    torch.manual_seed(recipe.training.seed)  # some objectives have weights of their own
    objective = make_objective(recipe.objective, scorer, chunk_tokens=recipe.batches.chunk_tokens)
    for part in (lessons.train, lessons.dev, lessons.test):
        check_lessons(part, recipe.objective, scorer)
    check_variety(lessons.train, recipe.objective)
    if is_first_process():
        write_json(folder / "data.json", _summaries(lessons, scorer))
    check_batches(lessons.train, recipe.objective, recipe.batches)
    result = _train(recipe, scorer, objective, start, lessons, folder=folder, resume=resume, teller=teller)
    if is_first_process():
        draw_curves(folder / METRICS, folder / "curves.png")
        write_json(folder / "environment.json", environment())
        write_json(folder / RESULT, result)
        scorer.save(folder / MODEL)
    wait_for_all()
    return result


def open_run(folder: Path, config: dict[str, Any], *, resume: bool) -> None:
    """Make a run's folder, or make sure that the one that is there is of the same run."""
    for module in ("accelerate", "matplotlib"):
        require(module, extra="train", purpose="training")  # asked now, not when hours have passed
    if folder.exists() and not resume:
        raise OutputError(f"{folder} exists: choose another folder, or go on with it (resume=True, --resume)")
    if not folder.exists():
        if not folder.parent.is_dir():
            raise OutputError(f"{folder.parent} is not a folder: make it first, or choose another path")
        folder.mkdir()
    elif not folder.is_dir():
        raise OutputError(f"{folder} is a file: a run is a folder")
    begun = read_json_if_there(folder / CONFIG)
    if not begun:
        write_json(folder / CONFIG, config)
        return
    changed = sorted(_changed(begun, json.loads(json.dumps(config))))
    if changed:
        raise InputError(
            f"{folder} was begun with other settings ({', '.join(changed[:3])}): "
            "start a new folder, or go on with the old ones"
        )


def _train(
    recipe: Recipe,
    scorer: AnyScorer,
    objective: DualObjective | CrossObjective,
    start: Start,
    lessons: LessonSets,
    *,
    folder: Path,
    resume: bool,
    teller: Teller,
) -> dict[str, Any]:
    untrained = measure(scorer, lessons.dev, recipe.objective)
    adapters = None if recipe.adapter is None else Adapters(scorer, recipe.adapter, start)
    teller.say(f"training a {scorer.kind}-encoder on {len(lessons.train):,} lessons")
    callbacks: list[TrainerCallback] = [MetricsFile(folder / METRICS), Progress(teller.progress)]
    if teller.stoppable:
        callbacks.append(StopOnInterrupt(lambda: teller.say("stopping after this step, with a checkpoint")))
    log = train(
        scorer,
        objective,
        recipe.training,
        recipe.batches,
        train=tokenise(scorer, lessons.train),
        dev=tokenise(scorer, lessons.dev),
        folder=folder / "checkpoints",
        resume=resume,
        measure=partial(measure, scorer, lessons.dev, recipe.objective),
        callbacks=callbacks,
    )
    if adapters is not None and is_first_process():
        shutil.rmtree(folder / "adapter", ignore_errors=True)  # of a run that was killed just here
        adapters.save(folder / "adapter")
    last = log[-1]
    return {
        "train": {"lessons": len(lessons.train), **_numbers(last, ("train_runtime", "step", "epoch"))},
        "untrained": untrained,
        "dev": {"lessons": len(lessons.dev), **measure(scorer, lessons.dev, recipe.objective)},
        "test": {"lessons": len(lessons.test), **measure(scorer, lessons.test, recipe.objective)}
        if lessons.test
        else None,
        "fingerprint": scorer.fingerprint,
    }


def _summaries(lessons: LessonSets, scorer: AnyScorer) -> dict[str, Any]:
    sets = {"train": lessons.train, "dev": lessons.dev, "test": lessons.test}
    return {
        name: summarise(part) | {"cut by the model": cut_shares(scorer, part)}
        for name, part in sets.items()
        if part
    }


def _changed(left: Any, right: Any, name: str = "") -> set[str]:
    """The settings in which two configs differ."""
    if not isinstance(left, dict) or not isinstance(right, dict):
        return set() if left == right else {name}
    return {
        each
        for key in left.keys() | right.keys()
        for each in _changed(left.get(key), right.get(key), f"{name}.{key}".lstrip("."))
    }


def _numbers(row: dict[str, float], names: tuple[str, ...]) -> dict[str, float]:
    return {name: row[name] for name in names if name in row}


def with_seed(recipe: Recipe, seed: int) -> Recipe:
    """The same recipe with all its chances drawn anew."""
    return replace(
        recipe,
        model=replace(recipe.model, seed=seed),
        batches=replace(recipe.batches, seed=seed),
        training=replace(recipe.training, seed=seed),
        after=None if recipe.after is None else with_seed(recipe.after, seed),
    )
