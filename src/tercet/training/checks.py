"""What lessons must have so that an objective can be learnt from them; every error names a row."""

from collections.abc import Sequence

from tercet.errors import DataError, InputError
from tercet.models.cross import CrossEncoder
from tercet.models.load import AnyScorer
from tercet.records import Lesson
from tercet.training.settings import BatchSettings, ObjectiveConfig

CLASSES = ("softmax", "classes")
SCORES = ("cosine", "order", "regression")
TEACHERS = ("margin_mse", "distribution")


def check_lessons(lessons: Sequence[Lesson], objective: ObjectiveConfig, scorer: AnyScorer) -> None:
    """Raise unless every lesson has what the objective asks for."""
    if objective.kind in CLASSES:
        count = scorer.config.outputs if isinstance(scorer, CrossEncoder) else objective.classes
        _check_labels(lessons, count)
    elif objective.kind in SCORES:
        _check_scores(lessons, objective.lowest, objective.highest)
    elif objective.kind in TEACHERS:
        _check_teacher(lessons)
    else:
        for lesson in lessons:
            if lesson.targets:
                raise DataError(
                    f"{lesson.where}: {objective.kind} learns from answers, and this row has a score or "
                    "label: choose another objective or reader"
                )
            if objective.kind == "triplet" and len(lesson.candidates) < 2:
                raise DataError(f"{lesson.where}: a triplet needs a negative")


def check_variety(lessons: Sequence[Lesson], objective: ObjectiveConfig, *, name: str) -> None:
    """Raise if every lesson of a set says the same."""
    values = {lesson.targets for lesson in lessons}
    if objective.kind in (*CLASSES, *SCORES) and len(values) == 1:
        ((value,),) = values
        what = "label" if objective.kind in CLASSES else "score"
        raise DataError(
            f"every row of the {name} data has the {what} {value:g}: there is nothing to tell apart"
        )


def check_batches(lessons: Sequence[Lesson], objective: ObjectiveConfig, batching: BatchSettings) -> None:
    """Raise if an answer would have no other candidate beside it."""
    if batching.negatives and objective.kind not in ("in_batch", "ranking"):
        raise InputError(
            f"{objective.kind} cannot use negatives that are drawn, which have no score or label: "
            "set negatives to 0, or choose in_batch or ranking"
        )
    alone = batching.negatives == 0 and min(len(lesson.candidates) for lesson in lessons) == 1
    if objective.kind == "in_batch" and batching.examples == 1 and alone:
        raise InputError(
            "in-batch negatives are the answers of the other rows, and a batch of 1 has none: "
            "set examples to 2 or more"
        )
    if objective.kind == "ranking" and alone:
        raise InputError(
            "a ranking needs wrong candidates, and some rows have none: draw some of other rows, "
            "with negatives = 15 for example"
        )


def _check_labels(lessons: Sequence[Lesson], count: int) -> None:
    for lesson in lessons:
        (label,) = _single(lesson)
        if label not in range(count):
            raise DataError(
                f"{lesson.where}: a label must be a whole number from 0 to {count - 1}, got {label:g}"
            )


def _check_scores(lessons: Sequence[Lesson], lowest: float, highest: float) -> None:
    for lesson in lessons:
        (score,) = _single(lesson)
        if not lowest <= score <= highest:
            raise DataError(
                f"{lesson.where}: a score must be from {lowest:g} to {highest:g}, got {score:g}: "
                "set lowest and highest of the objective to the range of the data"
            )


def _check_teacher(lessons: Sequence[Lesson]) -> None:
    for lesson in lessons:
        if len(lesson.targets) != len(lesson.candidates) or len(lesson.candidates) < 2:
            raise DataError(
                f"{lesson.where}: a teacher gives a score to each of two candidates or more, got "
                f"{len(lesson.targets)} scores for {len(lesson.candidates)} candidates"
            )


def _single(lesson: Lesson) -> tuple[float, ...]:
    if len(lesson.targets) != 1:
        raise DataError(
            f"{lesson.where}: a score or a label is wanted here, and the row has "
            f"{len(lesson.targets) or 'none'}: choose another objective or reader"
        )
    return lesson.targets
