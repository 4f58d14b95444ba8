"""Settings and losses of bi- and poly-encoders."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from losses import MASKED, cosent, cosine_distance, in_batch_softmax, kl_divergence
from model import DEVICE, Packed, Weights, to_device
from numpy.typing import NDArray
from pairs import DIALOGUES, STEP, Draw, PairSets
from scorer_models import Bi, Poly
from texts import Spans
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True, kw_only=True)
class DualSettings:
    name: str = "bi_a"
    seed: int = 0
    seconds: float = 95.0
    max_steps: int = 10**9
    lr: float = 1e-4
    codes_lr: float = 1e-3
    warmup: float = 0.05
    start: str = "backbone"
    """File of the weights to start from."""
    dialogue: int = 320
    """This and the next four are numbers of pairs in a batch."""
    answers: int = 224
    similar: int = 128
    korean: int = 192
    sts: int = 64
    scale: float = 20.0
    answers_softmax: float = 1.0
    """Weight of the in-batch softmax of answers; the other groups have 1."""
    dialogue_kl: float = 0.0
    """This and the next three weigh the divergence from the backbone's ranking of the batch."""
    answers_kl: float = 1.0
    similar_kl: float = 0.5
    korean_kl: float = 0.5
    lists: int = 128
    """Contexts of a batch whose candidates a cross-encoder has scored."""
    lists_weight: float = 1.0
    """Weight of the divergence from the cross-encoder's ranking of these lists; 0 uses none."""
    vector_weight: float = 0.0
    """Weight of the distance to the backbone's vectors, for bi-encoders."""
    sts_weight: float = 0.15
    codes: int = 64
    code_scale: float = 10.0
    candidate_scale: float = 10.0
    shares: tuple[float, ...] = (0.5, 0.75, 1.0)
    left_tokens: int = 126
    right_tokens: int = 112


class ListDraw(NamedTuple):
    left: Spans
    right: NDArray[np.int32]  # [B, C, 2]
    scores: NDArray[np.float16]  # [B, C]


class DualBatch(NamedTuple):
    """What a step needs, in the memory of the host."""

    draws: list[Draw]
    left: tuple[NDArray[np.int32], NDArray[np.int64]]
    right: tuple[NDArray[np.int32], NDArray[np.int64]]
    sizes: list[tuple[int, int]]
    """Numbers of left and right texts of each draw, of STS and of the lists."""
    sts_scores: NDArray[np.float32]
    list_scores: NDArray[np.float16]


class DualTraining:
    """Losses of bi- and poly-encoders."""

    def __init__(
        self,
        model: Bi | Poly,
        data: PairSets,
        teacher: Weights,
        lists: dict[str, NDArray],
        settings: DualSettings,
    ) -> None:
        self.model, self.data, self.teacher, self.settings = model, data, teacher, settings
        self.cross_lists = lists if settings.lists_weight else {}

    def prepare(self, rng: np.random.Generator) -> DualBatch:
        """Draw a batch; all of its texts are encoded at once."""
        settings, file = self.settings, self.data.file
        draws = [self.data.draw(rng, group, getattr(settings, group)) for group in STEP]
        sts = self.data.draw_sts(rng, settings.sts)
        listed = self.lists(rng, draws[0].name)
        sides = [*map(self.spans, draws), (sts.left, sts.right), (listed.left, listed.right.reshape(-1, 2))]
        lefts, rights = zip(*sides, strict=True)
        dialogues = [*(draw.name in DIALOGUES for draw in draws), False, draws[0].name in DIALOGUES]
        keep_end = np.repeat(dialogues, [len(left) for left in lefts])
        return DualBatch(
            draws=draws,
            left=file.sequences(np.concatenate(lefts), settings.left_tokens, keep_end),
            right=file.sequences(np.concatenate(rights), settings.right_tokens),
            sizes=[(len(left), len(right)) for left, right in sides],
            sts_scores=sts.scores,
            list_scores=listed.scores,
        )

    def losses(self, batch: DualBatch, done: float) -> dict[str, Tensor]:
        """The losses of a batch, after a share of the training, which does not matter here."""
        settings = self.settings
        left_codes, right_vectors = self.model(Packed(*batch.left), Packed(*batch.right))
        lefts, rights = zip(*batch.sizes, strict=True)
        *codes, sts_codes, list_codes = left_codes.split(lefts)
        *vectors, sts_vectors, list_vectors = right_vectors.split(rights)
        losses: dict[str, Tensor] = {}
        for draw, contexts, candidates in zip(batch.draws, codes, vectors, strict=True):
            loss = self.draw_loss(draw, contexts, candidates)
            losses[draw.group] = losses[draw.group] + loss if draw.group in losses else loss
        cosines = self.model.match(sts_codes, sts_vectors.unsqueeze(1))[:, 0]
        losses["sts"] = settings.sts_weight * cosent(settings.scale * cosines, to_device(batch.sts_scores))
        if len(list_codes):
            vectors_by_list = list_vectors.view(len(list_codes), -1, list_vectors.shape[-1])
            logits = settings.scale * self.model.match(list_codes, vectors_by_list)
            divergence = kl_divergence(logits, to_device(batch.list_scores).float())
            losses["lists"] = settings.lists_weight * divergence
        return losses

    def lists(self, rng: np.random.Generator, name: str) -> ListDraw:
        """Contexts of a set of dialogues with candidates that the cross-encoder has scored."""
        if f"{name}/rows" not in self.cross_lists:
            empty = np.zeros((0, 2), np.int32)
            return ListDraw(empty, empty.reshape(0, 1, 2), np.zeros((0, 1), np.float16))
        rows, scores = self.cross_lists[f"{name}/rows"], self.cross_lists[f"{name}/scores"]
        chosen = rng.choice(len(rows), min(self.settings.lists, len(rows)), replace=False)
        left, right = self.data.left[name], self.data.right[name]
        return ListDraw(left[rows[chosen, 0]], right[rows[chosen]], scores[chosen])

    def spans(self, draw: Draw) -> tuple[Spans, Spans]:
        """Left spans, and right spans with the wrong ones behind them."""
        left, right = self.data.left[draw.name][draw.chosen], self.data.right[draw.name][draw.chosen]
        if draw.swap:
            left, right = right, left
        if draw.name not in self.data.wrong:
            return left, right
        wrong = self.data.wrong[draw.name][draw.chosen]
        return left, np.concatenate([right, wrong[wrong[:, 0] >= 0]])

    def draw_loss(self, draw: Draw, contexts: Tensor, candidates: Tensor) -> Tensor:
        """In-batch softmax, and the divergence from the teacher's ranking of the batch."""
        settings, count = self.settings, len(draw.chosen)
        rows = np.broadcast_to(draw.chosen[:, None], (count, count))
        same = torch.from_numpy(self.data.same(draw.name, rows, rows.T)).to(DEVICE).fill_diagonal_(False)
        logits = settings.scale * self.model.match(contexts, candidates)
        loss = in_batch_softmax(logits, same) * (settings.answers_softmax if draw.group == "answers" else 1)
        if weight := getattr(settings, f"{draw.group}_kl"):
            chosen = torch.from_numpy(draw.chosen).to(DEVICE)
            left, right = (self.teacher[f"{draw.name}/{side}"][chosen].float() for side in ("left", "right"))
            if draw.swap:
                left, right = right, left
            target = (settings.scale * left @ right.T).masked_fill(same, MASKED)
            masked = logits.masked_fill(functional.pad(same, (0, logits.shape[1] - count)), MASKED)
            loss = loss + weight * kl_divergence(masked[:, :count], target)
            if settings.vector_weight and isinstance(self.model, Bi):
                distance = cosine_distance(contexts, left) + cosine_distance(candidates[:count], right)
                loss = loss + settings.vector_weight * distance
        return loss
