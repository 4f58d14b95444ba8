"""Optimisers and schedules of the papers, by name."""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import nn, optim
from torch.optim.lr_scheduler import LambdaLR
from transformers import (
    get_constant_schedule_with_warmup,
    get_inverse_sqrt_schedule,
    get_linear_schedule_with_warmup,
)

from tercet.training.settings import Optimiser, TrainSettings

PLATEAU_FACTOR = 0.4

CLASSES: dict[Optimiser, Callable[..., optim.Optimizer]] = {
    "adam": optim.Adam,
    "adamw": optim.AdamW,
    "adamax": optim.Adamax,
}


def make_optimiser(module: nn.Module, settings: TrainSettings) -> optim.Optimizer:
    """The optimiser of all weights that are to be moved; biases and norms, being vectors, do not decay."""
    moved = [weight for weight in module.parameters() if weight.requires_grad]
    groups = [
        {"params": [weight for weight in moved if weight.dim() > 1], "weight_decay": settings.weight_decay},
        {"params": [weight for weight in moved if weight.dim() <= 1], "weight_decay": 0.0},
    ]
    fused = {"fused": True} if settings.optimiser != "adamax" else {}  # one kernel for all weights
    return CLASSES[settings.optimiser](groups, lr=settings.learning_rate, betas=settings.betas, **fused)


def make_schedule(optimiser: optim.Optimizer, settings: TrainSettings, *, steps: int) -> LambdaLR:
    """How the learning rate moves over ``steps`` steps."""
    warmup = round(settings.warmup * steps) if settings.warmup < 1 else round(settings.warmup)
    if settings.schedule == "linear":
        linear: LambdaLR = get_linear_schedule_with_warmup(optimiser, warmup, steps)
        return linear
    if settings.schedule == "constant":
        constant: LambdaLR = get_constant_schedule_with_warmup(optimiser, warmup)
        return constant
    if settings.schedule == "inverse_sqrt":
        falling: LambdaLR = get_inverse_sqrt_schedule(optimiser, max(warmup, 1))
        return falling
    return WarmPlateau(optimiser, warmup=warmup)


class WarmPlateau(LambdaLR):
    """A linear warm-up, then a rate that falls by a factor at every look without improvement.

    It is stepped after each batch, and told the loss after each look.
    """

    def __init__(self, optimiser: optim.Optimizer, *, warmup: int) -> None:
        self.warmup = warmup
        self.best = float("inf")
        self.factor = 1.0
        super().__init__(optimiser, self._share)

    def look(self, loss: float) -> None:
        """Tell the loss on the dev data."""
        if loss < self.best:
            self.best = loss
        else:
            self.factor *= PLATEAU_FACTOR
            for group, rate in zip(self.optimizer.param_groups, self.base_lrs, strict=True):
                group["lr"] = rate * self._share(self.last_epoch)

    def _share(self, step: int) -> float:
        return self.factor * min(1.0, (step + 1) / max(self.warmup, 1))


def rescale_last_layer(module: nn.Module, *, std: float) -> None:
    """Multiply each matrix of the last transformer layer so that its numbers have the standard deviation.

    Humeau et al. (2020) do so with weights pre-trained on Reddit, whose last layer is unlike BERT's.
    """
    matrices = [(_layer_of(name), weight) for name, weight in module.named_parameters() if weight.dim() > 1]
    last = max((layer for layer, _ in matrices if layer is not None), default=None)
    with torch.no_grad():
        for layer, weight in matrices:
            if last is not None and layer == last and float(weight.std()) > 0:
                weight.mul_(std / weight.std())


def freeze(module: nn.Module, *, embeddings: bool, layers: int) -> int:
    """Leave word embeddings or the lowest layers as they are; gives the number of weights left alone."""
    frozen = 0
    for name, weight in module.named_parameters():
        if (embeddings and _is_word_embedding(name)) or (layers and _layer_of(name) in range(layers)):
            weight.requires_grad_(False)
            frozen += weight.numel()
    return frozen


def set_dropout(module: nn.Module, share: float) -> None:
    """Leave out this share of states in training, wherever the module leaves out some."""
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = share


def _is_word_embedding(name: str) -> bool:
    return any(part in name.split(".") for part in ("word_embeddings", "tok_embeddings"))


def _layer_of(name: str) -> int | None:
    """The place of the transformer layer that a weight belongs to; None for one outside them."""
    parts = name.split(".")
    places = [
        int(after) for before, after in pairwise(parts) if before in ("layer", "layers") and after.isdigit()
    ]
    return places[0] if places else None
