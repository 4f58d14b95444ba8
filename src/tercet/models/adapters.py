"""Low-rank adapters: learnt through ``peft``, kept as a few megabytes, merged into the weights on loading.

A folder of adapters holds ``tercet.json``, which says how the model began, and ``adapter.safetensors``: two
thin matrices for each linear layer that was adapted, and what is not part of a transformer, such as codes or
a head.
"""

from dataclasses import asdict
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from tercet.calibration import read_calibration, write_calibration
from tercet.config import AdapterConfig, Precision
from tercet.errors import InputError, ModelError
from tercet.extras import require
from tercet.files import new_folder
from tercet.inputs import with_tuples
from tercet.models.encoder import Encoder, check_tensors
from tercet.models.load import AnyScorer
from tercet.models.manifest import ADAPTER, read_manifest, reading_settings, write_manifest
from tercet.models.start import Start, make_scorer, outside_transformers, read_start, written_start
from tercet.runtime.linear import forget_layouts

WEIGHTS = "adapter.safetensors"
LEFT, RIGHT = "lora_B", "lora_A"
"""Of the product ``B A`` that is added to a layer's weights: ``[out, rank]`` and ``[rank, in]``."""

ACTIVE = "default"
"""What peft calls the only adapter."""


class Adapters:
    """Adapters in a scorer's transformers, from when they are put in until they are merged."""

    def __init__(self, scorer: AnyScorer, config: AdapterConfig, start: Start) -> None:
        peft = require("peft", extra="train", purpose="training adapters")
        self.scorer = scorer
        self.config = config
        self.start = start
        self.start_fingerprint = scorer.fingerprint
        layers = list(config.layers) or "all-linear"
        wanted = peft.LoraConfig(
            r=config.rank, lora_alpha=config.alpha, lora_dropout=config.dropout, target_modules=layers
        )
        try:
            self._tuners = [
                peft.LoraModel(encoder.transformer, wanted, ACTIVE) for encoder in _encoders(scorer)
            ]
        except ValueError as error:
            raise InputError(f"layers to adapt must be linear layers of the transformer: {error}") from None
        scorer.eval()  # new layers begin in training mode

    def weights(self) -> dict[str, Tensor]:
        """What was learnt: the thin matrices, and all that is not part of a transformer."""
        return {
            name.replace(f".{ACTIVE}.", "."): weight.detach().cpu().contiguous().clone()
            for name, weight in self.scorer.named_parameters()
            if weight.requires_grad
        }

    def merge(self) -> None:
        """Add what was learnt to the transformers' weights; the scorer is a plain one again."""
        for tuner in self._tuners:
            tuner.merge_and_unload()
        forget_layouts(self.scorer)  # peft changes weights through their data
        for weight in self.scorer.parameters():
            weight.requires_grad_(True)

    def save(self, path: Path) -> Path:
        """Write what was learnt to a folder that ``tercet.load`` reads; then they are merged."""
        weights = self.weights()
        self.merge()
        with new_folder(path) as folder:
            save_file(weights, folder / WEIGHTS)
            settings = {
                ADAPTER: asdict(self.config),
                "start": written_start(self.start),
                "start_fingerprint": self.start_fingerprint,
            }
            write_manifest(
                folder, kind=self.scorer.kind, fingerprint=self.scorer.fingerprint, settings=settings
            )
            write_calibration(self.scorer.calibration, folder)
        return path


def load_adapted(folder: Path, *, precision: Precision = "fp32", device: str | None = None) -> AnyScorer:
    """The scorer that a folder of adapters makes of the model it began with."""
    manifest = read_manifest(folder) or {}
    with reading_settings(folder):
        config = AdapterConfig(**with_tuples(manifest[ADAPTER]))
        wanted = manifest["start_fingerprint"]
    start = read_start(folder, manifest)
    scorer = make_scorer(start, device=device)
    if scorer.fingerprint != wanted:
        raise ModelError(
            f"the adapters in {folder} were learnt on model {wanted}, and {start.source} is now "
            f"{scorer.fingerprint}: use that model, or train again"
        )
    try:
        learnt = load_file(folder / WEIGHTS)
    except Exception as error:  # a broken file fails here in many ways
        raise ModelError(f"{folder / WEIGHTS} cannot be read: {error}") from error
    merge_weights(scorer, learnt, scale=config.alpha / config.rank, folder=folder)
    scorer.calibration = read_calibration(folder)
    scorer.set_precision(precision)
    return scorer


@torch.no_grad()
def merge_weights(scorer: nn.Module, learnt: dict[str, Tensor], *, scale: float, folder: Path) -> None:
    """``W + scale · B A`` for every adapted layer, and what else was learnt in its place."""
    here = dict(scorer.named_parameters())
    adapted = {name.removesuffix(f".{RIGHT}.weight") for name in learnt if name.endswith(f".{RIGHT}.weight")}
    plain = {name for name in learnt if f".{RIGHT}." not in name and f".{LEFT}." not in name}
    strange = plain - here.keys() | {name for name in adapted if f"{name}.weight" not in here}
    check_tensors(folder, missing=outside_transformers(here) - plain, extra=strange)
    try:
        for name in adapted:
            weight = here[f"{name}.weight"]
            product = learnt[f"{name}.{LEFT}.weight"] @ learnt[f"{name}.{RIGHT}.weight"]
            weight.add_((scale * product).to(weight.device))
        for name in plain:
            here[name].copy_(learnt[name])
    except (KeyError, RuntimeError) as error:
        raise ModelError(f"the adapters in {folder} do not fit their model: {error}") from error


def _encoders(scorer: nn.Module) -> list[Encoder]:
    return [module for module in scorer.modules() if isinstance(module, Encoder)]
