"""Settings and losses of cross-encoders."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from losses import MASKED, cosent, kl_divergence
from model import DEVICE, Packed
from numpy.typing import NDArray
from pairs import DIALOGUES, STEP, Draw, PairSets
from poly_teacher import PolyTeacher
from scorer_models import Cross
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True, kw_only=True)
class CrossSettings:
    name: str = "cross_a"
    seed: int = 0
    seconds: float = 335.0
    max_steps: int = 10**9
    lr: float = 2e-4
    warmup: float = 0.05
    start: str = "bi"
    """File of the weights to start from."""
    dialogue: int = 64
    """This and the next four are numbers of lists, or pairs for STS, in a batch."""
    answers: int = 16
    similar: int = 16
    korean: int = 24
    sts: int = 32
    dialogue_candidates: int = 16
    """Candidates in a list; one of them is right."""
    other_candidates: int = 8
    dialogue_hard: int = 0
    """Mined negatives in a list; the others are random."""
    other_hard: int = 3
    scale: float = 20.0
    dialogue_kl: float = 1.0
    """This and the next three weigh the divergence from the poly-encoder's ranking of a list."""
    answers_kl: float = 1.0
    similar_kl: float = 1.0
    korean_kl: float = 1.0
    sts_weight: float = 0.15
    cross_text_weight: float = 0.3
    shares: tuple[float, ...] = (1.0,)
    max_tokens: int = 112
    """Of each text in training."""
    max_queries: int = 60
    """Questions of each set that are evaluated with all answers."""


class Lists(NamedTuple):
    """Lists of pairs; the first candidate of a list is right."""

    draw: Draw
    pairs: NDArray[np.int32]  # [B, C, 2, 2]: list, candidate, side, span
    keep_end: NDArray[np.bool_]  # [B, C, 2]
    negatives: NDArray[np.int64]  # [B, C - 1]: rows of the set
    masked: NDArray[np.bool_]  # [B, C - 1]: negatives that are missing or right too


class CrossTraining:
    """Losses of cross-encoders."""

    def __init__(
        self,
        model: Cross,
        data: PairSets,
        teacher: PolyTeacher,
        mined: dict[str, NDArray],
        settings: CrossSettings,
    ) -> None:
        self.model, self.data, self.teacher, self.mined = model, data, teacher, mined
        self.settings = settings

    def losses(self, rng: np.random.Generator) -> dict[str, Tensor]:
        """The losses of one batch; all of its pairs are encoded at once."""
        settings = self.settings
        drawn = [self.lists(rng, self.data.draw(rng, group, getattr(settings, group))) for group in STEP]
        sts = self.data.draw_sts(rng, settings.sts)
        sts_pairs = np.stack([sts.left, sts.right], axis=1)
        spans = np.concatenate([*(lists.pairs.reshape(-1, 2) for lists in drawn), sts_pairs.reshape(-1, 2)])
        no_end = np.zeros(2 * settings.sts, bool)
        keep_end = np.concatenate([*(lists.keep_end.ravel() for lists in drawn), no_end])
        sequences = self.data.file.sequences(spans, settings.max_tokens, keep_end)
        scores = self.model(Packed(*sequences, group=2))
        *parts, sts_scores = scores.split([*(lists.pairs[..., 0, 0].size for lists in drawn), settings.sts])
        losses: dict[str, Tensor] = {}
        for lists, part in zip(drawn, parts, strict=True):
            group, loss = lists.draw.group, self.list_loss(lists, part.view(lists.pairs.shape[:2]))
            losses[group] = losses[group] + loss if group in losses else loss
        losses["sts"] = settings.sts_weight * cosent(2 * sts_scores, sts.scores)
        return losses

    def lists(self, rng: np.random.Generator, draw: Draw) -> Lists:
        """The right text of each example with negatives of its set."""
        kind = "dialogue" if draw.group == "dialogue" else "other"
        size = getattr(self.settings, f"{kind}_candidates")
        data, name, chosen = self.data, draw.name, draw.chosen
        negatives, masked = self.negatives(rng, draw, size - 1, getattr(self.settings, f"{kind}_hard"))
        right = data.right[name]
        candidates = np.concatenate([right[chosen][:, None], right[np.maximum(negatives, 0)]], axis=1)
        if name in data.wrong:  # a wrong text of the example itself takes the last place
            wrong = data.wrong[name][chosen]
            present = wrong[:, 0] >= 0
            candidates[present, -1] = wrong[present]
            masked[present, -1] = False
        contexts = np.repeat(data.left[name][chosen][:, None], size, axis=1)
        pairs = np.stack([contexts, candidates], axis=2)
        keep_end = np.zeros(pairs.shape[:3], bool)
        keep_end[..., 0] = name in DIALOGUES
        if draw.swap:
            pairs, keep_end = pairs[:, :, ::-1], keep_end[:, :, ::-1]
        return Lists(draw, pairs, keep_end, negatives, masked)

    def negatives(
        self, rng: np.random.Generator, draw: Draw, count: int, hard: int
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Rows ``[B, count]``: mined ones first, then random ones, and which of them to mask."""
        random = rng.integers(0, len(self.data.left[draw.name]), (len(draw.chosen), 3 * (count + 1)))
        mined = self.mined[draw.name][draw.chosen]
        shuffled = np.take_along_axis(mined, rng.random(mined.shape).argsort(axis=1), axis=1)
        rows = np.concatenate([shuffled[:, :hard], random], axis=1)
        own = np.broadcast_to(draw.chosen[:, None], rows.shape)
        masked = (rows < 0) | self.data.same(draw.name, own, np.maximum(rows, 0)) | (own == rows)
        order = np.argsort(masked, axis=1, kind="stable")[:, :count]
        return np.take_along_axis(rows, order, axis=1), np.take_along_axis(masked, order, axis=1)

    def list_loss(self, lists: Lists, scores: Tensor) -> Tensor:
        """Cross-entropy of the right candidate, and the divergence from the teacher's ranking."""
        draw, settings = lists.draw, self.settings
        masked = functional.pad(torch.from_numpy(lists.masked).to(DEVICE), (1, 0))
        logits = scores.masked_fill(masked, MASKED)
        target = torch.zeros(len(logits), dtype=torch.long, device=DEVICE)
        loss = functional.cross_entropy(logits, target)
        weight = getattr(settings, f"{draw.group}_kl")
        if not weight or draw.name in self.data.wrong:  # the teacher has no vectors of wrong texts
            return loss
        rows = np.concatenate([draw.chosen[:, None], np.maximum(lists.negatives, 0)], axis=1)
        teacher_logits = settings.scale * self.teacher.scores(draw.name, draw.chosen, rows)
        return loss + weight * kl_divergence(logits, teacher_logits.masked_fill(masked, MASKED))
