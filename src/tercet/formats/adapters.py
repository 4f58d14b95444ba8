"""Low-rank adapters (LoRA): trained with ``peft``, stored in a few megabytes, merged on loading.

The folder contains ``tercet.json``, which names the base model, and ``adapter.safetensors``: two low-rank
matrices for each adapted layer, and all weights that do not belong to a transformer, such as codes or a head.
"""

from dataclasses import asdict
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from tercet.encoders.encoder import Encoder
from tercet.encoders.linear import forget_layouts
from tercet.errors import InputError, ModelError
from tercet.extras import require
from tercet.files.atomic import new_folder
from tercet.formats.calibration import read_calibration, write_calibration
from tercet.formats.from_spec import (
    make_base,
    outside_transformers,
    spec_from_manifest,
    spec_to_json,
)
from tercet.formats.hand_over import partial_folder, write_card
from tercet.formats.load_torch import loads_partial
from tercet.formats.manifest import ADAPTER, BASE, PARTIAL, read_manifest, reading, write_manifest
from tercet.formats.pair_classifier import classifier_of, restore_classifier, write_classifier
from tercet.formats.tensors import read_tensors
from tercet.formats.transformer import check_tensors
from tercet.scorers.kinds import AnyScorer
from tercet.settings.models import AdapterConfig, ModelSpec, Precision
from tercet.settings.tables import lists_to_tuples

WEIGHTS = "adapter.safetensors"
BASE_FINGERPRINT = "base_fingerprint"
LEFT, RIGHT = "lora_B", "lora_A"
"""The factors of the update ``B A`` of a layer: ``[out, rank]`` and ``[rank, in]``."""

ACTIVE = "default"
"""peft's name for the only adapter."""


class Adapters:
    """Adapters in a scorer's transformers, from insertion until they are merged."""

    def __init__(self, scorer: AnyScorer, config: AdapterConfig, base: ModelSpec) -> None:
        peft = require("peft", extra="train", purpose="training adapters")
        self.scorer = scorer
        self.config = config
        self.base = base
        self.base_fingerprint = scorer.fingerprint
        layers = list(config.layers) or "all-linear"
        lora = peft.LoraConfig(
            r=config.rank, lora_alpha=config.alpha, lora_dropout=config.dropout, target_modules=layers
        )
        try:
            self._tuners = [
                peft.LoraModel(encoder.transformer, lora, ACTIVE) for encoder in _encoders(scorer)
            ]
        except ValueError as error:
            raise InputError(f"layers must name linear layers of the transformer: {error}") from None
        scorer.eval()  # new layers start in training mode

    def weights(self) -> dict[str, Tensor]:
        """The trained weights: the low-rank matrices, and all that do not belong to a transformer."""
        return {
            name.replace(f".{ACTIVE}.", "."): weight.detach().cpu().contiguous().clone()
            for name, weight in self.scorer.named_parameters()
            if weight.requires_grad
        }

    def merge(self) -> None:
        """Add the updates to the transformers' weights; the scorer is a plain one afterwards."""
        for tuner in self._tuners:
            tuner.merge_and_unload()
        forget_layouts(self.scorer)  # peft changes weights through .data
        for weight in self.scorer.parameters():
            weight.requires_grad_(True)

    def save(self, path: Path) -> Path:
        """Write the adapters to a folder that ``tercet.load`` reads, and merge them."""
        weights = self.weights()
        self.merge()
        with new_folder(path) as folder:
            save_file(weights, folder / WEIGHTS)
            settings = {
                ADAPTER: asdict(self.config),
                BASE: spec_to_json(self.base),
                BASE_FINGERPRINT: self.base_fingerprint,
            }
            write_manifest(
                folder, kind=self.scorer.kind, fingerprint=self.scorer.fingerprint, settings=settings
            )
            write_calibration(self.scorer.calibration, folder)
            write_classifier(classifier_of(self.scorer), folder)
            write_card(folder, self.scorer.kind, partial_folder(PARTIAL[ADAPTER]))
        return path


@loads_partial(ADAPTER)
def load_adapters(folder: Path, *, precision: Precision = "fp32", device: str | None = None) -> AnyScorer:
    """The base model with the adapters in a folder merged."""
    manifest = read_manifest(folder) or {}
    with reading(folder):
        config = AdapterConfig(**lists_to_tuples(manifest[ADAPTER]))
        wanted = manifest[BASE_FINGERPRINT]
    base = spec_from_manifest(folder, manifest)
    scorer = make_base(base, folder, device=device)
    if scorer.fingerprint != wanted:
        raise ModelError(
            f"the adapters in {folder} were trained on model {wanted}, and {base.source} is now "
            f"{scorer.fingerprint}: restore that model, or train again"
        )
    merge_weights(scorer, read_tensors(folder / WEIGHTS), scale=config.alpha / config.rank, folder=folder)
    scorer.calibration = read_calibration(folder)
    restore_classifier(scorer, folder)
    scorer.set_precision(precision)
    return scorer


@torch.no_grad()
def merge_weights(scorer: nn.Module, trained: dict[str, Tensor], *, scale: float, folder: Path) -> None:
    """Add ``scale · B A`` to every adapted layer, and replace the weights outside transformers."""
    weights = dict(scorer.named_parameters())
    adapted = {name.removesuffix(f".{RIGHT}.weight") for name in trained if name.endswith(f".{RIGHT}.weight")}
    plain = {name for name in trained if f".{RIGHT}." not in name and f".{LEFT}." not in name}
    unknown = plain - weights.keys() | {name for name in adapted if f"{name}.weight" not in weights}
    check_tensors(folder, missing=outside_transformers(weights) - plain, extra=unknown)
    try:
        for name in adapted:
            weight = weights[f"{name}.weight"]
            product = trained[f"{name}.{LEFT}.weight"] @ trained[f"{name}.{RIGHT}.weight"]
            weight.add_((scale * product).to(weight.device))
        for name in plain:
            weights[name].copy_(trained[name])
    except (KeyError, RuntimeError) as error:
        raise ModelError(f"the adapters in {folder} do not fit their base model: {error}") from error


def _encoders(scorer: nn.Module) -> list[Encoder]:
    return [module for module in scorer.modules() if isinstance(module, Encoder)]
