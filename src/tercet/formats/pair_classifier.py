"""``classifier.json`` and ``classifier.safetensors`` in the folder of a bi-encoder."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from tercet.errors import ModelError
from tercet.files.structured import read_json, write_json
from tercet.formats.tensors import read_tensors
from tercet.inputs import check_choice
from tercet.records import Floats
from tercet.scorers.bi import BiEncoder
from tercet.scorers.kinds import AnyScorer
from tercet.scorers.pair_classifier import PairClassifier
from tercet.settings.limits import current_limits, exceeds
from tercet.settings.training import CONCATENATION_PARTS, ConcatenationPart

SETTINGS, WEIGHTS = "classifier.json", "classifier.safetensors"
WEIGHT = "weight"


def read_classifier(folder: Path, *, width: int) -> PairClassifier | None:
    """The classifier saved in a model folder, or None.

    Args:
        width: D, the dimension of the model's vectors.
    """
    if not (folder / SETTINGS).is_file():
        return None
    content: dict[str, Any] = read_json(folder / SETTINGS)
    for part in content["concatenation"]:
        check_choice("concatenation", part, CONCATENATION_PARTS)
    concatenation: tuple[ConcatenationPart, ...] = tuple(content["concatenation"])
    weights = read_tensors(folder / WEIGHTS).get(WEIGHT, torch.empty(0)).to(torch.float32).numpy()
    _check_weights(weights, len(concatenation) * width, folder / WEIGHTS)
    return PairClassifier(weights, concatenation, tuple(map(str, content["labels"])))


def write_classifier(classifier: PairClassifier | None, folder: Path) -> None:
    """Write what ``read_classifier`` reads, if there is a classifier."""
    if classifier is None:
        return
    settings = {"concatenation": list(classifier.concatenation), "labels": list(classifier.labels)}
    write_json(folder / SETTINGS, settings)
    save_file({WEIGHT: torch.from_numpy(classifier.weights).contiguous()}, folder / WEIGHTS)


def classifier_of(scorer: AnyScorer) -> PairClassifier | None:
    """The classifier of a bi-encoder; None for other scorers."""
    return scorer.classifier if isinstance(scorer, BiEncoder) else None


def restore_classifier(scorer: AnyScorer, folder: Path) -> None:
    """Give a bi-encoder the classifier in a folder, or none."""
    if isinstance(scorer, BiEncoder):
        scorer.classifier = read_classifier(folder, width=scorer.width)


def _check_weights(weights: Floats, features: int, file: Path) -> None:
    if weights.ndim != 2 or weights.shape[1] != features or not len(weights):
        raise ModelError(
            f"{WEIGHT} in {file} has the shape {list(weights.shape)}, and the model's vectors require "
            f"[classes, {features}]"
        )
    if len(weights) > current_limits().max_labels:
        raise ModelError(f"the number of classes in {file} is {exceeds('max_labels', len(weights))}")
    if not np.isfinite(weights).all():
        raise ModelError(f"{file} contains NaN or infinity: the file is damaged, or training failed")
