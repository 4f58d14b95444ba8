"""Translations learn the vectors that a teacher has for their sources (Reimers & Gurevych, 2020)."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from tercet.errors import InputError
from tercet.records import Example
from tercet.scorers.dual import DualEncoder
from tercet.scorers.overflow import normalize
from tercet.settings.training import BatchConfig, ObjectiveConfig
from tercet.training import dev_metrics, losses
from tercet.training.distributed import gather, row_offset
from tercet.training.objectives.base import Batch, BiObjective
from tercet.training.targets import Targets

NEAR_COPY = 0.95
"""Sources whose vectors have a higher cosine say nearly the same, so they are not negatives of each other."""


class Translation(BiObjective):
    """Draws a translation to the teacher's vector of its source, and keeps the source at its own vector.

    The context is the translation, the candidate its source, and the targets are the teacher's unit vector of
    the source. The sources of all other rows, in all processes, are negatives of the translation.
    """

    targets = Targets.VECTORS
    measure = staticmethod(dev_metrics.ranking)

    def __init__(
        self, config: ObjectiveConfig, scorer: DualEncoder, *, mini_batch_tokens: int | None = None
    ) -> None:
        super().__init__(config, scorer, mini_batch_tokens=mini_batch_tokens)
        check_one_space(scorer, "translation trains")

    def forward(self, scorer: DualEncoder, batch: Batch) -> Tensor:
        """The loss of a batch."""
        config = self.config
        translations, sources = self.vectors(scorer, batch)  # [B, D] each
        wanted = _vectors_of(batch, like=sources)
        loss = config.cosine_weight * losses.cosine_distance(translations, wanted)
        loss = loss + config.source_weight * losses.cosine_distance(sources, wanted)
        every = gather(wanted)  # [C, D]
        if config.softmax_weight and len(every) > 1:
            rows = row_offset(len(batch), every.device) + torch.arange(len(batch), device=every.device)
            scores = self.score_scale * normalize(translations) @ every.T  # [B, C]
            loss = loss + config.softmax_weight * losses.listwise(scores, rows, _copies(every, rows))
        return loss

    def check_batches(self, examples: Sequence[Example], batches: BatchConfig) -> None:
        """Raise if a translation would have no negative."""
        super().check_batches(examples, batches)
        if batches.batch_size == 1 and self.config.softmax_weight:
            raise InputError(
                "the negatives of a translation are the other rows of its batch, and a batch of 1 has none: "
                "set batch_size to at least 2, or softmax_weight to 0"
            )


def check_one_space(scorer: DualEncoder, what: str) -> None:
    """Raise unless contexts and candidates have the same vectors, and are compared by their cosine."""
    if not (scorer.is_siamese and scorer.uses_cosine):
        raise InputError(
            f"{what} a bi-encoder with one tower, the same prompt on both sides and cosine similarity, and "
            "this model has others"
        )


def _vectors_of(batch: Batch, like: Tensor) -> Tensor:
    """``[B, D]``: the teacher's vectors, on the device of ``like``."""
    vectors = torch.from_numpy(np.array([example.targets for example in batch], dtype=np.float32))
    return vectors.to(like.device)


def _copies(vectors: Tensor, rows: Tensor) -> Tensor:
    """``[B, C]``: true where a source is nearly the same as that of the row, but not the row's own."""
    near = vectors[rows] @ vectors.T > NEAR_COPY
    return near & (rows.unsqueeze(1) != torch.arange(len(vectors), device=vectors.device))
