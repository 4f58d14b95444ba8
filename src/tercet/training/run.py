"""One training, from recipe to model.

The run's folder is that of ``run_folder``. With adapters, ``adapter`` is the model in a few megabytes. A
recipe that begins with another's model has that run in ``before``.
"""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from tercet.errors import InputError
from tercet.models.adapters import Adapters
from tercet.models.load import AnyScorer
from tercet.models.sources import find_folder
from tercet.models.start import make_scorer
from tercet.records import Lesson
from tercet.training.checks import TEACHERS, check_batches, check_lessons, check_variety
from tercet.training.cuts import cut_shares
from tercet.training.examples import tokenise
from tercet.training.gather import is_first_process, local_device
from tercet.training.lesson_sets import LessonSets, read_sets
from tercet.training.measures import measure, measure_cases, watch
from tercet.training.objectives import CrossObjective, DualObjective, make_objective
from tercet.training.recipe import Recipe
from tercet.training.run_folder import RunFolder, Teller
from tercet.training.teacher import taught
from tercet.training.trainer import last_checkpoint, train


def run_recipe(
    recipe: Recipe,
    path: Path,
    *,
    root: Path | None = None,
    resume: bool = False,
    device: str | None = None,
    teller: Teller | None = None,
    sealed: Sequence[Lesson] = (),
) -> dict[str, Any]:
    """Train what a recipe says; gives what ``result.json`` holds.

    Args:
        path: a new folder, or with ``resume`` one that was begun.
        root: the folder that data sets lie under.
        resume: go on after the last checkpoint; without one, from the beginning.
        sealed: test data of a later recipe, which must not be learnt from.
    """
    teller = teller or Teller()
    device = device or local_device()
    folder = RunFolder(path)
    with folder.open(recipe.resolved(), resume=resume):
        if folder.is_finished:
            return folder.result()
        teller.say("reading data")
        lessons = read_sets(recipe, root, sealed=sealed)
        start = recipe.model
        for needed in (*recipe.teachers, *([start.source] if recipe.after is None else [])):
            find_folder(needed)  # or say at once that there is none
        if recipe.after is not None:
            begun = folder.before.exists()
            kept = (*sealed, *lessons.test)
            run_recipe(
                recipe.after,
                folder.before,
                root=root,
                resume=begun,
                device=device,
                teller=teller,
                sealed=kept,
            )
            start = replace(start, source=str(folder.before / folder.model.name))
        if recipe.teachers:
            teller.say(f"asking {', '.join(recipe.teachers)} for scores")
            lessons = taught(
                lessons,
                recipe.teachers,
                recipe.objective,
                words=recipe.teacher_words,
                both_ways=recipe.train.both_ways,
                negatives=recipe.batches.negatives,
                seed=recipe.training.seed,
                device=device,
            )
            recipe = replace(recipe, batches=replace(recipe.batches, negatives=0))  # they are drawn
        torch.cuda.empty_cache()  # what teachers and earlier runs took of a GPU: tens of gigabytes
        scorer = make_scorer(start, device=device)
        torch.manual_seed(recipe.training.seed)  # some objectives have weights of their own
        objective = make_objective(recipe.objective, scorer, chunk_tokens=recipe.batches.chunk_tokens)
        _check(recipe, lessons, scorer)
        folder.remember(
            lessons.named(), {name: cut_shares(scorer, part) for name, part in lessons.named().items()}
        )
        adapters = None if recipe.adapter is None else Adapters(scorer, recipe.adapter, start)
        result = _train(recipe, scorer, objective, lessons, folder=folder, resume=resume, teller=teller)
        if adapters is not None and is_first_process():
            shutil.rmtree(folder.adapter, ignore_errors=True)  # of a run that was killed just here
            adapters.save(folder.adapter)
        return folder.finish(result | {"fingerprint": scorer.fingerprint}, scorer.save)


def _check(recipe: Recipe, lessons: LessonSets, scorer: AnyScorer) -> None:
    for name, part in lessons.named().items():
        if name == "test" and recipe.objective.kind in TEACHERS:
            continue  # is ranked, not learnt from: no teacher has to score it
        check_lessons(part, recipe.objective, scorer)
        if name != "dev" or recipe.dev is not None:  # what was held out may be small
            check_variety(part, recipe.objective, name=name)
    check_batches(lessons.train, recipe.objective, recipe.batches)


def _train(
    recipe: Recipe,
    scorer: AnyScorer,
    objective: DualObjective | CrossObjective,
    lessons: LessonSets,
    *,
    folder: RunFolder,
    resume: bool,
    teller: Teller,
) -> dict[str, Any]:
    measured = partial(measure, scorer, lessons.dev, recipe.objective)
    watched = partial(watch, scorer, lessons.dev)
    untrained = measured()
    names = ("loss", *untrained)
    if recipe.training.best_by not in names:
        raise InputError(
            f"best_by is {recipe.training.best_by!r}, but what is measured here is {', '.join(names)}"
        )
    untrained |= watched()
    teller.say(f"training a {scorer.kind}-encoder on {len(lessons.train):,} lessons")
    timed = ("train_runtime",) if last_checkpoint(folder.checkpoints) is None else ()  # or of a part only
    log = train(
        scorer,
        objective,
        recipe.training,
        recipe.batches,
        train=tokenise(scorer, lessons.train),
        dev=tokenise(scorer, lessons.dev),
        folder=folder.checkpoints,
        resume=resume,
        measure=lambda: measured() | watched(),
        callbacks=folder.callbacks(teller),
    )
    last = log[-1]
    result: dict[str, Any] = {
        "train": {
            "lessons": len(lessons.train),
            **{name: last[name] for name in (*timed, "step", "epoch") if name in last},
        },
        "untrained": untrained,
    }
    result["dev"] = {"lessons": len(lessons.dev), **measured(), **watched()}
    if not lessons.test:
        return result
    found, places = measure_cases(scorer, lessons.test, recipe.objective)
    if places is not None:
        result["places"] = places.tolist()  # by which runs are compared case by case
    return result | {"test": {"lessons": len(lessons.test), **found}}


def with_seed(recipe: Recipe, seed: int) -> Recipe:
    """The same recipe with all its chances drawn anew."""
    return replace(
        recipe,
        model=replace(recipe.model, seed=seed),
        batches=replace(recipe.batches, seed=seed),
        training=replace(recipe.training, seed=seed),
        after=None if recipe.after is None else with_seed(recipe.after, seed),
    )
