"""Kinds of targets (answers, scores, labels, what a teacher says) and their checks. Errors name the row."""

from collections.abc import Sequence
from enum import Enum

from tercet.data.overlap import comparison_key
from tercet.errors import DataError
from tercet.inputs import SHOWN_CHARACTERS, shortened
from tercet.records import Example

MIN_SOURCES = 0.1
"""The least share of different sources among rows of parallel text."""


class Targets(Enum):
    """What an objective learns from."""

    ANSWERS = "answers"
    """No targets: the first candidate is right."""
    SCORES = "scores"
    """One score for a pair."""
    LABELS = "labels"
    """One label for a pair."""
    TEACHER = "teacher"
    """A teacher's score for each candidate."""
    VECTORS = "vectors"
    """A teacher's vector of the only candidate."""


def check_answers(examples: Sequence[Example], *, min_candidates: int = 1) -> None:
    """Raise unless the examples are answers, with enough candidates each."""
    for example in examples:
        if example.targets:
            raise DataError(
                f"{example.location}: the objective learns from answers, and this row has a score or label: "
                "choose another objective or reader"
            )
        if len(example.candidates) < min_candidates:
            raise DataError(f"{example.location}: the objective needs a negative: add one to the row")


def check_scores(examples: Sequence[Example], *, min_score: float, max_score: float) -> None:
    """Raise unless every example has one score within the range."""
    for example in examples:
        score = _single(example)
        if not min_score <= score <= max_score:
            raise DataError(
                f"{example.location}: the score must be from {min_score:g} to {max_score:g}, got "
                f"{score:g}: set min_score and max_score of the objective to the range of the data"
            )


def check_labels(examples: Sequence[Example], *, num_labels: int) -> None:
    """Raise unless every example has one label below ``num_labels``."""
    for example in examples:
        label = _single(example)
        if label not in range(num_labels):
            raise DataError(
                f"{example.location}: the label must be a whole number from 0 to {num_labels - 1}, got "
                f"{label:g}"
            )


def check_teacher_scores(examples: Sequence[Example]) -> None:
    """Raise unless every example has a teacher's score for each of at least two candidates."""
    for example in examples:
        if len(example.targets) != len(example.candidates) or len(example.candidates) < 2:
            raise DataError(
                f"{example.location}: distillation needs at least two candidates with a teacher's score "
                f"each, got {len(example.targets)} scores for {len(example.candidates)} candidates"
            )


def check_translations(examples: Sequence[Example]) -> None:
    """Raise unless every example is a text with its translation, and most of the two differ."""
    for example in examples:
        if example.targets or len(example.candidates) != 1 or not isinstance(example.context, str):
            raise DataError(
                f"{example.location}: the objective learns from a text and its translation: set reader = "
                '"translations"'
            )
    equal = [
        example
        for example in examples
        if comparison_key(example.context) == comparison_key(example.candidates[0])
    ]
    if 2 * len(equal) > len(examples):
        raise DataError(
            f"{len(equal)} of {len(examples)} rows have the same text as source and as target, the first at "
            f"{equal[0].location}: name the columns of two languages"
        )
    sources = {example.candidates[0] for example in examples}
    if len(sources) < MIN_SOURCES * len(examples):
        raise DataError(
            f"{len(examples)} rows have only {len(sources)} different sources, such as "
            f"{shortened(min(sources), SHOWN_CHARACTERS)!r}: name the column with the texts in the teacher's "
            "language"
        )


def check_variety(examples: Sequence[Example], targets: Targets, *, split: str) -> None:
    """Raise if all examples have the same score or label."""
    if targets not in NAMES:
        return
    values = {example.targets for example in examples}
    if len(values) == 1:
        ((value,),) = values
        raise DataError(
            f"all rows of the {split} data have the {NAMES[targets]} {value:g}: there is nothing to learn"
        )


NAMES = {Targets.SCORES: "score", Targets.LABELS: "label"}


def _single(example: Example) -> float:
    if len(example.targets) != 1:
        raise DataError(
            f"{example.location}: the objective needs one score or label, and the row has "
            f"{len(example.targets) or 'none'}: choose another objective or reader"
        )
    return example.targets[0]
