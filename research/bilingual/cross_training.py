"""Settings and losses of cross-encoders."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from losses import MASKED, cosent, kl_divergence
from model import DEVICE, Packed, to_device
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
    dialogue: int = 128
    """This and the next four are numbers of lists, or pairs for STS, in a batch."""
    answers: int = 16
    similar: int = 16
    korean: int = 24
    sts: int = 32
    pool: int = 64
    """Random candidates of a dialogue, from which its list is drawn."""
    hard: int = 6
    """Candidates of the pool with the highest scores of the teacher, all in the list."""
    easy: int = 3
    """Candidates drawn from the rest of the pool. Each counts for its share of the rest in the softmax."""
    candidates: int = 8
    """Candidates in a list of the other groups; one of them is right."""
    mined: int = 3
    """Mined negatives in such a list; the others are random."""
    scale: float = 20.0
    dialogue_kl: float = 1.0
    """This and the next three weigh the divergence from the poly-encoder's ranking of a list."""
    answers_kl: float = 1.0
    similar_kl: float = 1.0
    korean_kl: float = 1.0
    last_kl: float = 0.2
    """Share of these weights at the end of the training; it falls linearly."""
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
    offsets: NDArray[np.float32]  # [B, C], added to the logits: log of what a candidate counts for
    teacher: NDArray[np.float32] | None  # [B, C]


class CrossBatch(NamedTuple):
    """What a step needs, in the memory of the host."""

    lists: list[Lists]
    ids: NDArray[np.int32]
    lengths: NDArray[np.int64]
    sts_scores: NDArray[np.float32]


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

    def prepare(self, rng: np.random.Generator) -> CrossBatch:
        """Draw a batch; all of its pairs are encoded at once."""
        settings = self.settings
        drawn = [self.lists(rng, self.data.draw(rng, group, getattr(settings, group))) for group in STEP]
        sts = self.data.draw_sts(rng, settings.sts)
        sts_pairs = np.stack([sts.left, sts.right], axis=1)
        spans = np.concatenate([*(lists.pairs.reshape(-1, 2) for lists in drawn), sts_pairs.reshape(-1, 2)])
        no_end = np.zeros(2 * settings.sts, bool)
        keep_end = np.concatenate([*(lists.keep_end.ravel() for lists in drawn), no_end])
        ids, lengths = self.data.file.sequences(spans, settings.max_tokens, keep_end)
        return CrossBatch(drawn, ids, lengths, sts.scores)

    def losses(self, batch: CrossBatch, done: float) -> dict[str, Tensor]:
        """The losses of a batch, after a share of the training."""
        scores = self.model(Packed(batch.ids, batch.lengths, group=2))
        sizes = [lists.offsets.size for lists in batch.lists]
        *parts, sts_scores = scores.split([*sizes, len(batch.sts_scores)])
        losses: dict[str, Tensor] = {}
        for lists, part in zip(batch.lists, parts, strict=True):
            loss = self.list_loss(lists, part.view(lists.offsets.shape), done)
            group = lists.draw.group
            losses[group] = losses[group] + loss if group in losses else loss
        losses["sts"] = self.settings.sts_weight * cosent(2 * sts_scores, to_device(batch.sts_scores))
        return losses

    def lists(self, rng: np.random.Generator, draw: Draw) -> Lists:
        """The right text of each example with negatives of its set."""
        data, name, chosen = self.data, draw.name, draw.chosen
        rows, offsets = self.pooled(rng, draw) if draw.group == "dialogue" else self.mixed(rng, draw)
        candidates = data.right[name][np.maximum(rows, 0)]
        teacher = None
        if name in data.wrong:  # a wrong text of the example itself takes the last place
            wrong = data.wrong[name][chosen]
            present = wrong[:, 0] >= 0
            candidates[present, -1] = wrong[present]
            offsets[present, -1] = 0.0
        else:  # the teacher has no vectors of wrong texts
            teacher = self.teacher.scores(name, chosen, np.maximum(rows, 0))
        contexts = np.repeat(data.left[name][chosen][:, None], rows.shape[1], axis=1)
        pairs = np.stack([contexts, candidates], axis=2)
        keep_end = np.zeros(pairs.shape[:3], bool)
        keep_end[..., 0] = name in DIALOGUES
        if draw.swap:
            pairs, keep_end = pairs[:, :, ::-1], keep_end[:, :, ::-1]
        return Lists(draw, pairs, keep_end, offsets, teacher)

    def pooled(self, rng: np.random.Generator, draw: Draw) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Rows ``[B, C]`` and offsets: the right one, the hardest of a random pool, and some of the others.

        The softmax over such a list estimates the softmax over the whole pool.
        """
        settings, chosen = self.settings, draw.chosen
        pool = rng.integers(0, len(self.data.left[draw.name]), (len(chosen), settings.pool))
        masked = self.right_too(draw, pool)
        scores = np.where(masked, -np.inf, self.teacher.scores(draw.name, chosen, pool))
        order = np.argsort(-scores, axis=1, kind="stable")
        drawn = rng.random((len(chosen), settings.pool - settings.hard)).argsort(axis=1)[:, : settings.easy]
        places = np.concatenate(
            [order[:, : settings.hard], np.take_along_axis(order, drawn + settings.hard, 1)], 1
        )
        offsets = np.zeros((len(chosen), 1 + settings.hard + settings.easy), np.float32)
        offsets[:, 1 + settings.hard :] = np.log((settings.pool - settings.hard) / settings.easy)
        offsets[:, 1:][np.take_along_axis(masked, places, axis=1)] = MASKED
        rows = np.take_along_axis(pool, places, axis=1)
        return np.concatenate([chosen[:, None], rows], axis=1), offsets

    def mixed(self, rng: np.random.Generator, draw: Draw) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Rows ``[B, C]`` and offsets: the right one, mined ones, then random ones."""
        count = self.settings.candidates - 1
        random = rng.integers(0, len(self.data.left[draw.name]), (len(draw.chosen), 3 * (count + 1)))
        mined = self.mined[draw.name][draw.chosen]
        shuffled = np.take_along_axis(mined, rng.random(mined.shape).argsort(axis=1), axis=1)
        rows = np.concatenate([shuffled[:, : self.settings.mined], random], axis=1)
        masked = (rows < 0) | self.right_too(draw, np.maximum(rows, 0))
        order = np.argsort(masked, axis=1, kind="stable")[:, :count]
        offsets = np.zeros((len(draw.chosen), count + 1), np.float32)
        offsets[:, 1:][np.take_along_axis(masked, order, axis=1)] = MASKED
        rows = np.take_along_axis(rows, order, axis=1)
        return np.concatenate([draw.chosen[:, None], rows], axis=1), offsets

    def right_too(self, draw: Draw, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """``[B, C]``: whether a row is the example itself or has a right text for it."""
        own = np.broadcast_to(draw.chosen[:, None], rows.shape)
        return self.data.same(draw.name, own, rows) | (own == rows)

    def list_loss(self, lists: Lists, scores: Tensor, done: float) -> Tensor:
        """Cross-entropy of the right candidate, and the divergence from the teacher's ranking."""
        settings, offsets = self.settings, to_device(lists.offsets)
        logits = scores + offsets
        target = torch.zeros(len(logits), dtype=torch.long, device=DEVICE)
        loss = functional.cross_entropy(logits, target)
        weight = getattr(settings, f"{lists.draw.group}_kl") * (1 - (1 - settings.last_kl) * done)
        if lists.teacher is None or not weight:
            return loss
        teacher_logits = settings.scale * to_device(lists.teacher) + offsets
        return loss + weight * kl_divergence(logits, teacher_logits)
