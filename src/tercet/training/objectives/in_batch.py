"""In-batch negatives, for bi- and poly-encoders (Humeau et al., 2020; Henderson et al., 2017)."""

from collections.abc import Sequence
from math import log

import torch
from torch import Tensor

from tercet.errors import InputError
from tercet.records import Example
from tercet.scorers.codes import CodeTensors
from tercet.scorers.dual import DualEncoder, padded_codes
from tercet.settings.training import BatchConfig
from tercet.training import dev_metrics, losses
from tercet.training.distributed import gather, process_count, row_offset, several_processes
from tercet.training.objectives.base import Batch, DualObjective, contexts_of
from tercet.training.targets import Targets
from tercet.training.tokenized import Ids


class InBatch(DualObjective):
    """Ranks the answer above the answers of all other rows, in all processes, and above all negatives."""

    targets = Targets.ANSWERS
    uses_negatives = True
    distinct_answers = True
    measure = staticmethod(dev_metrics.ranking)

    def forward(self, scorer: DualEncoder, batch: Batch) -> Tensor:
        """The loss of a batch."""
        answers = [example.candidates[0] for example in batch]
        negatives = [ids for example in batch for ids in example.candidates[1:]]
        candidates = answers + negatives
        codes, vectors = self.encode(scorer, contexts_of(batch), candidates)
        scores = scorer.match_tensors(codes, _gather(vectors, len(batch)))
        if scorer.is_symmetric:
            back, own = self.encode(scorer, candidates, contexts_of(batch))
            scores = (scores + scorer.match_tensors(_gather_codes(scorer, back, len(batch)), own).T) / 2
        rows = row_offset(len(batch), scores.device) + torch.arange(len(batch), device=scores.device)
        hashes = _gather(_hashes(candidates, like=scores), len(batch))
        return losses.listwise(self.score_scale * scores, rows, _copies(hashes, rows))

    def chance_loss(self, scorer: DualEncoder, batch: Batch) -> float:
        """log C, with C the candidates of all rows in all processes."""
        return log(process_count() * sum(len(example.candidates) for example in batch))

    def check_batches(self, examples: Sequence[Example], batches: BatchConfig) -> None:
        """Raise if an answer would have no negative."""
        super().check_batches(examples, batches)
        alone = batches.negatives == 0 and min(len(example.candidates) for example in examples) == 1
        if batches.batch_size == 1 and alone:
            raise InputError(
                "in-batch negatives are the answers of the other rows, and a batch of 1 has none: set "
                "batch_size to at least 2"
            )


def _gather(rows: Tensor, answers: int) -> Tensor:
    """The answers of all processes, then the negatives of all; ``rows`` are ours, answers first."""
    return torch.cat([gather(rows[:answers]), gather(rows[answers:])])


def _gather_codes(scorer: DualEncoder, codes: CodeTensors, answers: int) -> CodeTensors:
    """As ``_gather``, for codes, whose number differs between processes."""
    most = scorer.max_codes if several_processes() else codes.mask.shape[1]
    vectors, mask = (
        _gather(padded_codes(part, most), answers) for part in (codes.vectors, codes.mask.float())
    )
    return CodeTensors(vectors, mask.bool())


def _hashes(ids: Sequence[Ids], like: Tensor) -> Tensor:
    """``[C]``: a number for each text, equal for equal texts in every process."""
    return torch.tensor([hash(tuple(text)) for text in ids], dtype=torch.int64, device=like.device)


def _copies(hashes: Tensor, rows: Tensor) -> Tensor:
    """``[B, C]``: true where a candidate is a copy of the row's answer, but not the answer itself."""
    same = hashes[rows].unsqueeze(1) == hashes.unsqueeze(0)
    return same & (rows.unsqueeze(1) != torch.arange(len(hashes), device=hashes.device))
