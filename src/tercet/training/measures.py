"""What a scorer is measured by while it learns, by the kind of lessons there are."""

from collections.abc import Sequence

import numpy as np

from tercet.evaluate.metrics import accuracy, mean_reciprocal_rank, places, recall_at, spearman
from tercet.evaluate.tasks.scoring import given_scores
from tercet.models.cross import CrossEncoder
from tercet.models.dual import DualEncoder
from tercet.models.load import AnyScorer
from tercet.models.poly import PolyEncoder
from tercet.records import Counts, Lesson
from tercet.training.checks import CLASSES, SCORES
from tercet.training.settings import ObjectiveConfig

WATCHED = 64
"""How many lessons show how even attentions are."""


def watch(scorer: AnyScorer, lessons: Sequence[Lesson]) -> dict[str, float]:
    """What is not better when it is higher, but shows early that something goes wrong."""
    if not isinstance(scorer, PolyEncoder):
        return {}
    few = lessons[:WATCHED]
    return scorer.attention_entropies(
        [lesson.context for lesson in few], [lesson.candidates[0] for lesson in few]
    )


def measure(scorer: AnyScorer, lessons: Sequence[Lesson], objective: ObjectiveConfig) -> dict[str, float]:
    """Spearman's ρ of scored pairs, accuracy of classes, R@1 and MRR of choices and of answers.

    Answers without other candidates are ranked among all answers, by scorers that can: for a cross-encoder
    those are too many pairs.
    """
    return measure_cases(scorer, lessons, objective)[0]


def measure_cases(
    scorer: AnyScorer, lessons: Sequence[Lesson], objective: ObjectiveConfig
) -> "tuple[dict[str, float], Counts | None]":
    """The same, and where candidates are ranked, the place of each right one, 1 the best."""
    if objective.kind in SCORES:
        return _of_scores(scorer, lessons), None
    if objective.kind in CLASSES:
        return _of_classes(scorer, lessons) if isinstance(scorer, CrossEncoder) else {}, None
    if all(len(lesson.candidates) > 1 for lesson in lessons):
        found = places(given_scores(scorer, lessons), np.zeros(len(lessons), dtype=np.int64))
    elif isinstance(scorer, CrossEncoder):
        return {}, None
    else:
        found = _among_all(scorer, lessons)
    return {"recall_at_1": recall_at(found, 1), "mrr": mean_reciprocal_rank(found)}, found


def _of_scores(scorer: AnyScorer, lessons: Sequence[Lesson]) -> dict[str, float]:
    scores = scorer.score_pairs(
        [lesson.context for lesson in lessons], [lesson.candidates[0] for lesson in lessons]
    )
    return {"spearman": spearman(scores, [lesson.targets[0] for lesson in lessons])}


def _of_classes(scorer: CrossEncoder, lessons: Sequence[Lesson]) -> dict[str, float]:
    outputs = scorer.classify(
        [lesson.context for lesson in lessons], [lesson.candidates[0] for lesson in lessons]
    )
    return {"accuracy": accuracy(outputs.argmax(axis=1), [lesson.targets[0] for lesson in lessons])}


def _among_all(scorer: DualEncoder, lessons: Sequence[Lesson]) -> Counts:
    answers = [lesson.candidates[0] for lesson in lessons]
    different = {text: place for place, text in enumerate(dict.fromkeys(answers))}
    scores = scorer.score_many([lesson.context for lesson in lessons], list(different))
    return places(scores, [different[text] for text in answers])
