"""Training objectives. A new one is a class here, an entry in ``OBJECTIVES`` and a name in the settings."""

from typing import Any

from tercet.errors import InputError
from tercet.scorers.kinds import AnyScorer
from tercet.settings.training import ObjectiveConfig, ObjectiveKind
from tercet.training.objectives.base import Objective
from tercet.training.objectives.bi import CoSent, Cosine, Softmax, Triplet
from tercet.training.objectives.cross import Bce, CrossEntropy, Listwise, Mse
from tercet.training.objectives.distillation import KlDivergence, MarginMse
from tercet.training.objectives.in_batch import InBatch
from tercet.training.objectives.translation import Translation
from tercet.training.targets import Targets

OBJECTIVES: dict[ObjectiveKind, type[Objective[Any]]] = {
    "softmax": Softmax,
    "cosine": Cosine,
    "cosent": CoSent,
    "triplet": Triplet,
    "in_batch": InBatch,
    "margin_mse": MarginMse,
    "kl_divergence": KlDivergence,
    "translation": Translation,
    "bce": Bce,
    "mse": Mse,
    "cross_entropy": CrossEntropy,
    "listwise": Listwise,
}


def make_objective(
    config: ObjectiveConfig, scorer: AnyScorer, *, mini_batch_tokens: int | None = None
) -> Objective[Any]:
    """The configured objective, if it can train this scorer."""
    kind = OBJECTIVES[config.kind]
    if scorer.kind not in kind.trains:
        fitting = ", ".join(name for name, each in OBJECTIVES.items() if scorer.kind in each.trains)
        raise InputError(f"{config.kind} cannot train a {scorer.kind}-encoder: choose one of {fitting}")
    objective = kind(config, scorer, mini_batch_tokens=mini_batch_tokens)
    if scorer.kind == "cross" and kind.targets is not Targets.LABELS and scorer.config.num_labels != 1:
        raise InputError(f"{config.kind} needs a cross-encoder with 1 output, got {scorer.config.num_labels}")
    return objective


__all__ = ["OBJECTIVES", "Objective", "make_objective"]
