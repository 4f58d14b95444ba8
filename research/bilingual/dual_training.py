"""Settings and losses of bi- and poly-encoders."""

from dataclasses import dataclass

import numpy as np
import torch
from losses import MASKED, cosent, cosine_distance, in_batch_softmax, kl_divergence
from model import DEVICE, Packed, Weights
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
    dialogue_kl: float = 0.0
    """This and the next three weigh the divergence from the backbone's ranking of the batch."""
    answers_kl: float = 1.0
    similar_kl: float = 0.5
    korean_kl: float = 0.5
    vector_weight: float = 0.0
    """Weight of the distance to the backbone's vectors, for bi-encoders."""
    sts_weight: float = 0.15
    codes: int = 64
    code_scale: float = 10.0
    candidate_scale: float = 10.0
    shares: tuple[float, ...] = (0.5, 0.75, 1.0)
    left_tokens: int = 126
    right_tokens: int = 112


class DualTraining:
    """Losses of bi- and poly-encoders."""

    def __init__(self, model: Bi | Poly, data: PairSets, teacher: Weights, settings: DualSettings) -> None:
        self.model, self.data, self.teacher, self.settings = model, data, teacher, settings

    def losses(self, rng: np.random.Generator) -> dict[str, Tensor]:
        """The losses of one batch; all of its texts are encoded at once."""
        settings = self.settings
        draws = [self.data.draw(rng, group, getattr(settings, group)) for group in STEP]
        sts = self.data.draw_sts(rng, settings.sts)
        sides = [self.spans(draw) for draw in draws]
        lefts, rights = [*(left for left, _ in sides), sts.left], [*(right for _, right in sides), sts.right]
        flags = [np.full(len(left), draw.name in DIALOGUES) for draw, left in zip(draws, lefts, strict=False)]
        keep_end = np.concatenate([*flags, np.zeros(settings.sts, bool)])
        file = self.data.file
        left_codes, right_vectors = self.model(
            Packed(*file.sequences(np.concatenate(lefts), settings.left_tokens, keep_end)),
            Packed(*file.sequences(np.concatenate(rights), settings.right_tokens)),
        )
        *codes, sts_codes = left_codes.split([len(left) for left in lefts])
        *vectors, sts_vectors = right_vectors.split([len(right) for right in rights])
        losses: dict[str, Tensor] = {}
        for draw, contexts, candidates in zip(draws, codes, vectors, strict=True):
            loss = self.draw_loss(draw, contexts, candidates)
            losses[draw.group] = losses[draw.group] + loss if draw.group in losses else loss
        cosines = self.model.match(sts_codes, sts_vectors.unsqueeze(1))[:, 0]
        losses["sts"] = settings.sts_weight * cosent(settings.scale * cosines, sts.scores)
        return losses

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
        loss = in_batch_softmax(logits, same)
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
