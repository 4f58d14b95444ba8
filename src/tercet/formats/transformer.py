"""Hugging Face transformers in folders: safetensors only, and no code from the folder is run."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from transformers import CONFIG_MAPPING, AutoConfig, AutoModel, PreTrainedModel
from transformers.utils import logging

from tercet.encoders.encoder import Encoder
from tercet.errors import ModelError
from tercet.files.structured import read_json
from tercet.formats.config_numbers import check_config_numbers
from tercet.formats.extension import extend
from tercet.formats.manifest import EXTENDS, PARTIAL, read_manifest, reading
from tercet.formats.sizes import check_size
from tercet.formats.sources import stored_model
from tercet.formats.tensors import read_tensors

PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")

EXTENSION = "extension.safetensors"
"""The weights of a folder that extends another model."""

INDEX = "*.safetensors.index.json"
"""Names the files of a model whose weights are in several."""

PEFT_ADAPTER = "adapter_config.json"
"""Makes transformers change the weights, if ``peft`` is installed."""

LAYER = re.compile(r"(?<=\.)\d+(?=\.)")
"""The number of a layer in the name of a weight."""


class LoadReport(NamedTuple):
    """Weights that a folder lacks, and weights that the model does not have."""

    missing: Collection[str]
    extra: Collection[str]


def read_encoder(folder: Path, *, strict: bool = False) -> Encoder:
    """The encoder in a Hugging Face folder.

    Args:
        strict: whether weights that the encoder does not have are an error, as in our own folders.
    """
    transformer, report = read_transformer(folder, AutoModel)
    if any(name.startswith("pooler.") for name in report.missing):
        transformer.register_module("pooler", None)  # was never stored, and is not needed
    check_tensors(
        folder,
        missing=[name for name in report.missing if not name.startswith("pooler.")],
        extra=report.extra if strict else (),
    )
    check_finite(transformer, folder)
    return Encoder(transformer)


def read_transformer(
    folder: Path, auto_class: Any, *, new_labels: int | None = None
) -> tuple[PreTrainedModel, LoadReport]:
    """The model that one of transformers' Auto classes reads, and which weights were missing.

    Args:
        new_labels: the number of outputs of a new classifier, whatever the folder has.
    """
    manifest = read_manifest(folder) or {}
    if EXTENDS in manifest:
        return _read_extended(folder, manifest[EXTENDS], auto_class, new_labels)
    labels = {} if new_labels is None else {"num_labels": new_labels}
    _check_safe(folder)
    try:
        with silence_transformers():
            config = AutoConfig.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False, **labels
            )
            check_size(folder, lambda: auto_class.from_config(deepcopy(config)))
            transformer, report = auto_class.from_pretrained(
                folder,
                config=config,
                ignore_mismatched_sizes=True,  # reported below, with both shapes
                dtype=torch.float32,
                local_files_only=True,
                output_loading_info=True,
                trust_remote_code=False,
                use_safetensors=True,
            )
    except ModelError:
        raise
    except Exception as error:  # a broken folder fails here in many ways
        raise ModelError(f"cannot read the model in {folder}: {error}") from error
    prefix = "" if new_labels is None else f"{transformer.base_model_prefix}."  # a new head may differ
    _check_shapes(folder, [each for each in report["mismatched_keys"] if each[0].startswith(prefix)])
    _check_layers(folder, transformer, report["unexpected_keys"])
    _check_padding(folder, transformer)
    for weight in transformer.parameters():
        # memory-mapped weights are unaligned, and other kernels would change the last bit of a score
        weight.data = weight.data.clone()
    return transformer.eval(), LoadReport(report["missing_keys"], report["unexpected_keys"])


def _read_extended(
    folder: Path, base: object, auto_class: Any, new_labels: int | None
) -> tuple[PreTrainedModel, LoadReport]:
    """The base model, which must be on this machine, with the extension in ``folder``."""
    base_folder = stored_model(base, stored_in=folder)
    if EXTENDS in (read_manifest(base_folder) or {}):
        raise ModelError(f"{folder} extends {base}, which is an extension itself: name its base instead")
    transformer, report = read_transformer(base_folder, auto_class, new_labels=new_labels)
    extend(cast("PreTrainedModel", transformer.base_model), read_tensors(folder / EXTENSION), folder)
    return transformer, report._replace(extra=())  # the base may have a head, which nobody asked for


def _check_padding(folder: Path, transformer: PreTrainedModel) -> None:
    """Raise if the token that fills up batches is not in the vocabulary."""
    embedding = transformer.get_input_embeddings()
    token, words = transformer.config.pad_token_id, len(cast("Tensor", embedding.weight))
    if token is not None and not (isinstance(token, int) and 0 <= token < words):
        raise ModelError(
            f"pad_token_id in {folder / 'config.json'} must be between 0 and {words - 1}, got {token!r}: "
            "copy the model again"
        )


def _check_shapes(folder: Path, mismatched: Iterable[tuple[str, Sequence[int], Sequence[int]]]) -> None:
    """Raise if weights have other shapes than the config requires: names, stored and required shapes."""
    found = [
        f"{name} has the shape {list(stored)} instead of {list(required)}"
        for name, stored, required in sorted(mismatched)
    ]
    if found:
        raise ModelError(
            f"the weights in {folder} contradict its config.json: {_some(found)}; copy both files of the "
            "same model"
        )


def _check_layers(folder: Path, transformer: PreTrainedModel, unused: Iterable[str]) -> None:
    """Raise if unused weights belong to layers that the config does not have."""
    prefix = f"{transformer.base_model_prefix}."  # which the names have in some folders

    def in_first_layer(name: str) -> str:
        return LAYER.sub("0", name).removeprefix(prefix)

    known = {in_first_layer(name) for name in transformer.state_dict()}
    beyond = [name for name in sorted(unused) if LAYER.search(name) and in_first_layer(name) in known]
    if beyond:
        raise ModelError(
            f"{folder} has weights of layers that its config.json does not have: {_some(beyond)}; correct "
            f"the number of layers there (now {transformer.config.num_hidden_layers}), or copy the model "
            "again"
        )


def write_encoder(encoder: Encoder, folder: Path) -> None:
    """Write the transformer to a Hugging Face folder."""
    with silence_transformers():
        encoder.transformer.save_pretrained(folder)


@contextmanager
def silence_transformers() -> Iterator[None]:
    """Suppress the progress bars and reports of transformers; tercet raises its own errors."""
    shown, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if shown:
            logging.enable_progress_bar()


def check_tensors(folder: Path, *, missing: Iterable[str], extra: Iterable[str] = ()) -> None:
    """Raise if weights are missing or unknown to the model, naming them."""
    absent, unknown = sorted(missing), sorted(extra)
    if absent:
        raise ModelError(f"{folder} lacks weights: {_some(absent)}; copy or save the model again")
    if unknown:
        raise ModelError(
            f"{folder} has weights that this model does not: {_some(unknown)}; it belongs to another "
            "architecture"
        )


def check_finite(module: nn.Module, folder: Path) -> None:
    """Raise if a weight is NaN or infinite."""
    broken = [name for name, weight in module.named_parameters() if not bool(torch.isfinite(weight).all())]
    if broken:
        raise ModelError(
            f"{folder} has weights that are NaN or infinite: {_some(broken)}; copy or train it again"
        )


def _check_safe(folder: Path) -> None:
    if (folder / "context" / "config.json").is_file():
        raise ModelError(f"{folder} is a poly-encoder: use {folder / 'context'} as an encoder")
    for key, name in PARTIAL.items():
        if key in (read_manifest(folder) or {}):
            raise ModelError(
                f"{folder} contains {name}, which cannot serve as a backbone: name the model it was trained "
                "from, or continue training it as it is"
            )
    if not (folder / "config.json").is_file():
        raise ModelError(f"{folder} has no config.json: it is not a model folder, or is incomplete")
    _check_config(folder)
    _check_inside(folder)
    if any(folder.glob("*.safetensors")):
        return
    pickled = sorted(file.name for pattern in PICKLED for file in folder.glob(pattern))
    if pickled:
        raise ModelError(
            f"{folder} has pickled weights ({', '.join(pickled)}), which can run code when they are loaded: "
            "save the model as safetensors"
        )
    raise ModelError(f"{folder} has no *.safetensors: it is not a model folder, or is incomplete")


def _check_config(folder: Path) -> None:
    """Raise if ``config.json`` is unreadable, needs foreign code or files, or asks for too much."""
    with reading(folder):
        config = read_json(folder / "config.json")
        model_type = config.get("model_type")
        custom = "auto_map" in config and model_type not in CONFIG_MAPPING
        check_config_numbers(folder, config)
        _check_name(folder / "config.json", config.get("transformers_weights", "model.safetensors"))
    if custom:
        raise ModelError(
            f"{folder} needs its own Python code (auto_map in config.json), which tercet does not run: use "
            f"an architecture that transformers contains, not {model_type!r}"
        )


def _check_inside(folder: Path) -> None:
    """Raise if the folder's files name weights elsewhere; links are allowed, which the hub's cache uses."""
    if (folder / PEFT_ADAPTER).exists():
        raise ModelError(
            f"{folder} has a PEFT adapter beside its weights ({PEFT_ADAPTER}): merge it into the model, or "
            "remove it"
        )
    for file in folder.glob(INDEX):
        with reading(folder):
            for name in read_json(file)["weight_map"].values():
                _check_name(file, name)


def _check_name(file: Path, name: object) -> None:
    """Raise unless ``name``, which ``file`` contains, is that of a weights file beside it."""
    is_plain = isinstance(name, str) and not re.search(r"[/\\\0]", name)
    if not is_plain or not str(name).endswith((".safetensors", ".safetensors.index.json")):
        raise ModelError(
            f"{file} must name *.safetensors files in its own folder, got {name!r}: copy the model again"
        )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
