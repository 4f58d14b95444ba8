"""Metrics of a scorer on dev and test data during training."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np

from tercet.evaluate.metrics import accuracy, mean_reciprocal_rank, ranks, recall_at, spearman
from tercet.evaluate.tasks.scoring import given_scores
from tercet.records import Example, Ints
from tercet.scorers.bi import BiEncoder
from tercet.scorers.cross import CrossEncoder
from tercet.scorers.dual import DualEncoder
from tercet.scorers.kinds import AnyScorer
from tercet.scorers.poly import PolyEncoder
from tercet.training.negatives import draw_negatives

SAMPLED_CANDIDATES = 10
"""Candidates per example of a cross-encoder, if the data has only answers."""

ENTROPY_EXAMPLES = 64
"""Examples on which attention entropies are measured."""


class Measured(NamedTuple):
    """Metrics by name, and for rankings the rank of each right candidate, 1 for the first."""

    metrics: dict[str, float]
    ranks: "Ints | None" = None


Measure: TypeAlias = Callable[[AnyScorer, Sequence[Example]], Measured]


def correlation(scorer: AnyScorer, examples: Sequence[Example]) -> Measured:
    """Spearman's ρ of scores and targets."""
    scores = scorer.score_pairs(*_pairs(examples))
    return Measured({"spearman": spearman(scores, [example.targets[0] for example in examples])})


def label_accuracy(scorer: AnyScorer, examples: Sequence[Example]) -> Measured:
    """The accuracy of the classes; nothing for a scorer without a classifier."""
    if not isinstance(scorer, CrossEncoder) and not (isinstance(scorer, BiEncoder) and scorer.classifier):
        return Measured({})
    outputs = scorer.classify(*_pairs(examples))
    labels = [example.targets[0] for example in examples]
    return Measured({"accuracy": accuracy(outputs.argmax(axis=1), labels)})


def ranking(scorer: AnyScorer, examples: Sequence[Example]) -> Measured:
    """R@1 and MRR of the right candidate among the given ones, or else among the answers of all examples.

    The latter are too many pairs for a cross-encoder: it ranks each answer among ``SAMPLED_CANDIDATES``, the
    others drawn from the answers of other examples. Nothing is measured if all answers are the same.
    """
    if all(len(example.candidates) > 1 for example in examples):
        found = _ranks_among_given(scorer, examples)
    elif isinstance(scorer, DualEncoder):
        found = _ranks_among_all(scorer, examples)
    elif len({example.candidates[0] for example in examples}) > 1:
        found = _ranks_among_given(scorer, with_sampled_candidates(examples))
    else:
        return Measured({})
    return Measured({"recall_at_1": recall_at(found, 1), "mrr": mean_reciprocal_rank(found)}, found)


def attention_entropies(scorer: AnyScorer, examples: Sequence[Example]) -> dict[str, float]:
    """The entropies of a poly-encoder's attentions, which reveal a collapse early."""
    if not isinstance(scorer, PolyEncoder):
        return {}
    return scorer.attention_entropies(*_pairs(examples[:ENTROPY_EXAMPLES]))


def with_sampled_candidates(examples: Sequence[Example]) -> list[Example]:
    """The examples with answers of others added up to ``SAMPLED_CANDIDATES``, the same ones in every call."""
    answers = list(dict.fromkeys(example.candidates[0] for example in examples))
    sampled = []
    for position, example in enumerate(examples):
        wanted = max(0, min(SAMPLED_CANDIDATES - len(example.candidates), len(answers) - 1))
        others = draw_negatives(answers, example.candidates, wanted, random.Random(position))
        sampled.append(replace(example, candidates=(*example.candidates, *others)))
    return sampled


def _ranks_among_given(scorer: AnyScorer, examples: Sequence[Example]) -> Ints:
    return ranks(given_scores(scorer, examples), np.zeros(len(examples), dtype=np.int64))


def _pairs(examples: Sequence[Example]) -> tuple[list[str | Sequence[str]], list[str]]:
    return [example.context for example in examples], [example.candidates[0] for example in examples]


def _ranks_among_all(scorer: DualEncoder, examples: Sequence[Example]) -> Ints:
    contexts, answers = _pairs(examples)
    position = {text: number for number, text in enumerate(dict.fromkeys(answers))}
    scores = scorer.score_many(contexts, list(position))
    return ranks(scores, [position[text] for text in answers])
