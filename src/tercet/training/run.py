"""One training run, from recipe to model: prepare, train, finish.

The run's folder is described in ``run_folder``. With adapters, ``adapter`` contains the model in a few
megabytes; so does ``extension``, if ``[vocabulary]`` asks for it. If the recipe has ``after``, the run of
that recipe is in ``before``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from tercet.errors import InputError
from tercet.formats.adapters import Adapters
from tercet.formats.extended import save_extension
from tercet.formats.from_spec import make_scorer
from tercet.formats.sources import resolve_model
from tercet.records import Example
from tercet.scorers.bi import BiEncoder
from tercet.scorers.kinds import AnyScorer
from tercet.settings.models import ModelSpec
from tercet.settings.recipe import Recipe
from tercet.settings.training import BatchConfig
from tercet.training.checkpoints import Checkpoints
from tercet.training.dev_metrics import Measured, attention_entropies
from tercet.training.distributed import cpu_threads, is_first_process, local_device
from tercet.training.grown_embedding import merge
from tercet.training.new_language import (
    check_translation,
    learns_vectors,
    wants_extension,
    with_new_pieces,
)
from tercet.training.objectives import Objective, make_objective
from tercet.training.reporter import Reporter
from tercet.training.run_folder import RunFolder
from tercet.training.splits import DataSplits, read_splits
from tercet.training.targets import Targets, check_variety
from tercet.training.teacher import with_teacher_scores
from tercet.training.teacher_vectors import TeacherVectors
from tercet.training.tokenized import TokenizedExample, tokenize
from tercet.training.trainer import train
from tercet.training.truncation import truncated_shares


@dataclass(frozen=True)
class Job:
    """Everything that training needs."""

    recipe: Recipe
    splits: DataSplits
    batches: BatchConfig
    scorer: AnyScorer
    objective: Objective[Any]
    adapters: Adapters | None
    vectors: TeacherVectors | None
    base: str
    """The model that training started from."""


def run_recipe(
    recipe: Recipe,
    path: Path,
    *,
    root: Path | None = None,
    resume: bool = False,
    device: str | None = None,
    reporter: Reporter | None = None,
    later_test: Sequence[Example] = (),
) -> dict[str, Any]:
    """Train the model of a recipe and return the contents of ``result.json``.

    Args:
        path: a new folder, or with ``resume`` one of an interrupted run.
        root: the folder of the data sets.
        resume: continue from the last checkpoint, or from the start if there is none.
        later_test: test data of a later recipe, which must not be trained on.
    """
    reporter = reporter or Reporter()
    device = device or local_device()
    folder = RunFolder(path)
    with folder.open(recipe.resolved(), resume=resume):
        if folder.is_finished:
            return folder.result()
        job = _prepare(recipe, folder, root=root, device=device, reporter=reporter, later_test=later_test)
        result = _train(job, folder, resume=resume, reporter=reporter)
        return _finish(job, folder, result)


def _prepare(
    recipe: Recipe,
    folder: RunFolder,
    *,
    root: Path | None,
    device: str | None,
    reporter: Reporter,
    later_test: Sequence[Example],
) -> Job:
    """Read the data, train the recipe of ``after``, compute the teachers' scores, and create the model."""
    check_translation(recipe)
    reporter.report("reading data")
    splits = read_splits(recipe, root, later_test=later_test)
    for source in (*recipe.teachers, *([recipe.model.source] if recipe.after is None else [])):
        resolve_model(source)  # a missing model is an error now, not after hours
    spec = recipe.model
    if recipe.after is not None:
        spec = _train_before(
            recipe,
            folder,
            root=root,
            device=device,
            reporter=reporter,
            later_test=(*later_test, *splits.test),
        )
    batches = recipe.batches
    if recipe.teachers and not learns_vectors(recipe):
        reporter.report(f"scoring with the teacher {', '.join(recipe.teachers)}")
        splits = with_teacher_scores(splits, recipe, device=device)
        batches = replace(batches, negatives=0)  # the teacher's data contains them
    torch.cuda.empty_cache()  # teachers and earlier runs leave gigabytes of cached GPU memory
    scorer = make_scorer(spec, device=device)
    scorer.calibration = None  # was fitted to scores that training changes
    torch.manual_seed(recipe.training.seed)  # some objectives have weights of their own
    objective = make_objective(recipe.objective, scorer, mini_batch_tokens=batches.mini_batch_tokens)
    _check(recipe, splits, batches, scorer, objective)
    if recipe.vocabulary is not None:
        reporter.report("learning word pieces")
        scorer = with_new_pieces(scorer, splits.train, recipe.vocabulary, seed=spec.seed)
    shares = {name: truncated_shares(scorer, part) for name, part in splits.by_name().items()}
    folder.record_data(splits.by_name(), shares, threads=cpu_threads(scorer.device))
    adapters = None if recipe.adapter is None else Adapters(scorer, recipe.adapter, spec)
    vectors = None
    if learns_vectors(recipe) and isinstance(scorer, BiEncoder):
        reporter.report(f"encoding with the teacher {recipe.teachers[0]}")
        vectors = TeacherVectors(recipe.teachers[0], (*splits.train, *splits.dev), student=scorer)
    return Job(recipe, splits, batches, scorer, objective, adapters, vectors, base=spec.source)


def _train_before(
    recipe: Recipe,
    folder: RunFolder,
    *,
    root: Path | None,
    device: str | None,
    reporter: Reporter,
    later_test: Sequence[Example],
) -> ModelSpec:
    """Train the recipe of ``after``, and return the spec of the model that this recipe then trains."""
    if recipe.after is None:
        return recipe.model
    run_recipe(
        recipe.after,
        folder.before,
        root=root,
        resume=folder.before.exists(),
        device=device,
        reporter=reporter,
        later_test=later_test,
    )
    return replace(recipe.model, source=str(folder.before / folder.model.name))


def _check(
    recipe: Recipe,
    splits: DataSplits,
    batches: BatchConfig,
    scorer: AnyScorer,
    objective: Objective[Any],
) -> None:
    for name, part in splits.by_name().items():
        if name == "test" and objective.targets is Targets.TEACHER:
            continue  # is ranked, not trained on: needs no teacher's scores
        objective.check_examples(part, scorer)
        if name != "dev" or recipe.dev is not None:  # held-out data may be small
            check_variety(part, objective.targets, split=name)
    objective.check_batches(splits.train, batches)


def _train(job: Job, folder: RunFolder, *, resume: bool, reporter: Reporter) -> dict[str, Any]:
    """Train the job's scorer and return the results."""
    scorer, splits, config = job.scorer, job.splits, job.recipe.training
    untrained = _dev_metrics(job)
    names = ("loss", *_measure(job, splits.dev).metrics)
    if config.metric_for_best_model not in names:
        raise InputError(
            f"metric_for_best_model must be one of {', '.join(names)}, got {config.metric_for_best_model!r}"
        )
    reporter.report(f"training a {scorer.kind}-encoder on {len(splits.train):,} examples")
    timed = () if Checkpoints(folder.checkpoints).all() else ("train_runtime",)  # else only a part
    log = train(
        scorer,
        job.objective,
        config,
        job.batches,
        train=_tokenized(job, splits.train),
        dev=_tokenized(job, splits.dev),
        folder=folder.checkpoints,
        resume=resume,
        measure=lambda: _dev_metrics(job),
        callbacks=folder.callbacks(reporter),
    )
    result: dict[str, Any] = {
        "train": {
            "examples": len(splits.train),
            **{name: log[-1][name] for name in (*timed, "step", "epoch") if name in log[-1]},
        },
        "untrained": untrained,
        "dev": {"examples": len(splits.dev), **_dev_metrics(job)},
    }
    return result | _test_results(job)


def _tokenized(job: Job, examples: Sequence[Example]) -> list[TokenizedExample]:
    tokens = tokenize(job.scorer, examples)
    return tokens if job.vectors is None else job.vectors.as_targets(examples, tokens)


def _measure(job: Job, examples: Sequence[Example]) -> Measured:
    """The metrics of the scorer, which has the classifier that the objective has learnt so far."""
    if isinstance(job.scorer, BiEncoder):
        job.scorer.classifier = job.objective.pair_classifier(job.recipe.train.labels)
    return job.objective.measure(job.scorer, examples)


def _dev_metrics(job: Job) -> dict[str, float]:
    measured = _measure(job, job.splits.dev)
    return measured.metrics | attention_entropies(job.scorer, job.splits.dev)


def _test_results(job: Job) -> dict[str, Any]:
    """The metrics on test data, and the ranks of right candidates, by which runs are compared."""
    test = job.splits.test
    if not test:
        return {}
    measured = _measure(job, test)
    ranks = {} if measured.ranks is None else {"ranks": measured.ranks.tolist()}
    return {**ranks, "test": {"examples": len(test), **measured.metrics}}


def _finish(job: Job, folder: RunFolder, result: dict[str, Any]) -> dict[str, Any]:
    """Save the adapters or the extension, the model and the results."""
    merge(job.scorer.backbone.transformer)
    if is_first_process():
        if job.adapters is not None:
            folder.remove_model(folder.adapter)
            job.adapters.save(folder.adapter)
        if isinstance(job.scorer, BiEncoder) and wants_extension(job.recipe):
            folder.remove_model(folder.extension)
            save_extension(job.scorer, job.base, folder.extension)
    return folder.finish(result | {"fingerprint": job.scorer.fingerprint}, job.scorer.save)
