"""Optimizers, learning-rate schedules, and what is frozen."""

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

from tercet.errors import InputError
from tercet.settings.training import OptimizerKind, TrainingConfig
from tercet.training.grown_embedding import GrownEmbedding

PLATEAU_FACTOR = 0.4

EMBEDDINGS = ("embeddings", "embeddings_project", "embedding_hidden_mapping_in")
"""Modules below the first layer: the tables with their norm, and the projections of ELECTRA and ALBERT."""

OPTIMIZERS: dict[OptimizerKind, Callable[..., optim.Optimizer]] = {
    "adam": optim.Adam,
    "adamw": optim.AdamW,
    "adamax": optim.Adamax,
}


def make_optimizer(module: nn.Module, settings: TrainingConfig) -> optim.Optimizer:
    """The optimizer of all trainable weights; biases, norms and new word vectors have no weight decay."""
    new = [
        part.new for part in module.modules() if isinstance(part, GrownEmbedding) and part.new.requires_grad
    ]
    trainable = [
        weight
        for weight in module.parameters()
        if weight.requires_grad and not any(weight is each for each in new)
    ]
    groups = [
        {
            "params": [weight for weight in trainable if weight.dim() > 1],
            "weight_decay": settings.weight_decay,
        },
        {"params": [weight for weight in trainable if weight.dim() <= 1], "weight_decay": 0.0},
    ]
    if new:
        groups.append({"params": new, "weight_decay": 0.0, "lr": settings.vocabulary_learning_rate})
    fused = {"fused": True} if settings.optimizer != "adamax" else {}  # one kernel for all weights
    return OPTIMIZERS[settings.optimizer](groups, lr=settings.learning_rate, betas=settings.betas, **fused)


def make_schedule(optimizer: optim.Optimizer, settings: TrainingConfig, *, steps: int) -> LambdaLR:
    """The learning-rate schedule over ``steps`` steps."""
    warmup = round(settings.warmup * steps) if settings.warmup < 1 else round(settings.warmup)
    if settings.schedule == "linear":
        linear: LambdaLR = get_linear_schedule_with_warmup(optimizer, warmup, steps)
        return linear
    if settings.schedule == "constant":
        constant: LambdaLR = get_constant_schedule_with_warmup(optimizer, warmup)
        return constant
    if settings.schedule == "inverse_sqrt":
        falling: LambdaLR = get_inverse_sqrt_schedule(optimizer, max(warmup, 1))
        return falling
    return WarmPlateau(optimizer, warmup=warmup)


class WarmPlateau(LambdaLR):
    """A linear warm-up, then a rate that falls by a factor at every evaluation without improvement.

    ``step`` follows each batch, ``step_on_loss`` each evaluation.
    """

    def __init__(self, optimizer: optim.Optimizer, *, warmup: int) -> None:
        self.warmup = warmup
        self.best = float("inf")
        self.factor = 1.0
        super().__init__(optimizer, self._share)

    def step_on_loss(self, loss: float) -> None:
        """Lower the rate unless the dev loss has improved."""
        if loss < self.best:
            self.best = loss
        else:
            self.factor *= PLATEAU_FACTOR
            for group, rate in zip(self.optimizer.param_groups, self.base_lrs, strict=True):
                group["lr"] = rate * self._share(self.last_epoch)

    def _share(self, step: int) -> float:
        return self.factor * min(1.0, (step + 1) / max(self.warmup, 1))


def rescale_last_layer(module: nn.Module, *, std: float) -> None:
    """Rescale each matrix of the last transformer layer to a standard deviation.

    Humeau et al. (2020) do this with weights pre-trained on Reddit, whose last layer differs from BERT's.
    """
    matrices = [(_layer_of(name), weight) for name, weight in module.named_parameters() if weight.dim() > 1]
    last = max((layer for layer, _ in matrices if layer is not None), default=None)
    with torch.no_grad():
        for layer, weight in matrices:
            if last is not None and layer == last and float(weight.std()) > 0:
                weight.mul_(std / weight.std())


def freeze(module: nn.Module, *, embeddings: bool, layers: int) -> int:
    """Freeze the embeddings, or the lowest layers with the embeddings below; return the number of weights.

    Humeau et al. (2020), table 4, "all but embeddings", "top 4 layers" and "top layer": embeddings are those
    of words, positions and token types, with their norm.
    """
    lowest = range(layers)
    if layers and not any(_layer_of(name) in lowest for name, _ in module.named_parameters()):
        raise InputError("freeze_layers matches no layer of this architecture: set it to 0")
    frozen = 0
    for name, weight in module.named_parameters():
        if _layer_of(name) in lowest or ((embeddings or layers) and _is_embedding(name)):
            weight.requires_grad_(False)
            frozen += weight.numel()
    return frozen


def set_dropout(module: nn.Module, share: float) -> None:
    """Set the dropout of all dropout layers."""
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = share


def _is_embedding(name: str) -> bool:
    return any(part in EMBEDDINGS for part in name.split("."))


def _layer_of(name: str) -> int | None:
    """The number of the transformer layer that a weight belongs to, or None."""
    parts = name.split(".")
    positions = [
        int(after) for before, after in pairwise(parts) if before in ("layer", "layers") and after.isdigit()
    ]
    return positions[0] if positions else None
