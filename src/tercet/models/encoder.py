"""Token ids to one state per token, with any Hugging Face text encoder."""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import CONFIG_MAPPING, AutoConfig, AutoModel, PreTrainedModel
from transformers.utils import logging

from tercet.errors import ModelError
from tercet.files import read_json
from tercet.models.fingerprint import transformer_facts
from tercet.models.manifest import ADAPTER, DIFFERENCES, read_manifest
from tercet.runtime.packing import (
    IMPLEMENTATION,
    Aside,
    bias_of,
    filler_rows,
    has_varying_attention,
    lengths_alone,
    moved,
    packing_of,
    positions_of,
)

PACKABLE = frozenset({"bert", "camembert", "distilbert", "electra", "modernbert", "roberta", "xlm-roberta"})
"""Architectures whose packed states are tested to equal the padded ones; others are padded."""

ASIDE = PACKABLE - {"modernbert"}
"""Those that can read texts aside: a window that slides over a pair would join its texts' ends."""

KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]

PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


class TokenStates(NamedTuple):
    """``states [B, T, D]`` and ``mask [B, T]``, false where a text has ended."""

    states: Tensor
    mask: Tensor


class LoadReport(NamedTuple):
    """Weights that a model folder lacks, and those the model has no place for."""

    missing: Collection[str]
    extra: Collection[str]


class Encoder(nn.Module):
    """A transformer that reads texts of any length side by side."""

    def __init__(self, transformer: PreTrainedModel) -> None:
        super().__init__()
        self.transformer = transformer
        self.packable = transformer.config.model_type in PACKABLE
        self._first_position = _first_position(transformer)
        self._padding = int(transformer.config.pad_token_id or 0)
        if self.packable:
            transformer.set_attn_implementation(IMPLEMENTATION)

    @property
    def architecture(self) -> str:
        """Which kind of transformer it is."""
        return str(self.transformer.config.model_type)

    @property
    def width(self) -> int:
        """D, the length of a state."""
        return int(self.transformer.config.hidden_size)

    @property
    def vocabulary(self) -> int:
        """How many tokens it knows."""
        return int(self.transformer.config.vocab_size)

    @property
    def segments(self) -> int:
        """How many kinds of text it tells apart in one row; a pair needs 2."""
        return int(getattr(self.transformer.config, "type_vocab_size", 0) or 0)

    @property
    def max_tokens(self) -> int | None:
        """The longest text it has positions for, or None if it has no such limit."""
        positions = getattr(self.transformer.config, "max_position_embeddings", None)
        return None if not positions or positions < 0 else positions - self._first_position

    def facts(self) -> dict[str, Any]:
        """What decides its states beside the weights."""
        return {"transformer": transformer_facts(self.transformer.config)}

    def forward(
        self,
        ids: Sequence[Sequence[int]],
        segments: Sequence[Sequence[int]] | None = None,
        aside: Aside | None = None,
    ) -> TokenStates:
        """States of the tokens of each text; quickest if equal lengths lie side by side.

        Args:
            ids: the tokens of each text.
            segments: of each token, whether it belongs to the first (0) or the second (1) of a pair.
            aside: of pairs that are to be read so, by one of ``ASIDE``.
        """
        lengths = torch.tensor([len(text) for text in ids])
        mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)  # [B, T]
        read = self._packed if self._can_pack(aside) else self._padded
        return read(ids, segments, aside, mask)

    def _can_pack(self, aside: Aside | None) -> bool:
        """On a CPU always; on a GPU the kernel computes in half precision, and cannot leave out states."""
        device, config = self.transformer.device, self.transformer.config
        if device.type == "cpu" or not self.packable:
            return self.packable
        if aside is not None:
            return False
        half = torch.is_autocast_enabled("cuda") or any(w.dtype == torch.bfloat16 for w in self.parameters())
        drops = self.training and any(part.p for part in self.modules() if isinstance(part, nn.Dropout))
        fits = self.width // config.num_attention_heads % 8 == 0 and not getattr(
            config, "sliding_window", None
        )
        return half and not drops and fits and has_varying_attention(device)

    def _packed(
        self,
        ids: Sequence[Sequence[int]],
        segments: Sequence[Sequence[int]] | None,
        aside: Aside | None,
        mask: Tensor,
    ) -> TokenStates:
        device = self.transformer.device
        filler = filler_rows(sum(map(len, ids))) if device.type == "cpu" else 0
        lengths = [*(len(text) for text in ids), *[1] * filler]  # texts of one token, dropped again below
        alone = lengths
        if aside is not None:
            aside = aside._replace(starts=[*aside.starts, *[1] * filler])
            alone = lengths_alone(lengths, aside)
        packing = packing_of(lengths, device, aside)
        inputs = {
            "input_ids": _in_a_row([*ids, [self._padding] * filler]),
            "position_ids": positions_of(alone, first=self._first_position),
        }
        if segments is not None:
            inputs["token_type_ids"] = _in_a_row([*segments, [0] * filler])
        here = {name: moved(tensor, device).unsqueeze(0) for name, tensor in inputs.items()}
        rows: Tensor = self.transformer(**here, packing=packing).last_hidden_state[0]
        places = moved(mask.flatten().nonzero().squeeze(1), device)  # of the tokens among B * T
        states = rows.new_zeros(mask.numel(), rows.shape[-1])
        states = states.index_copy(0, places, rows[: len(rows) - filler])
        return TokenStates(states.unflatten(0, mask.shape), moved(mask, device))

    def _padded(
        self,
        ids: Sequence[Sequence[int]],
        segments: Sequence[Sequence[int]] | None,
        aside: Aside | None,
        mask: Tensor,
    ) -> TokenStates:
        inputs = {"input_ids": _filled_up(ids, self._padding, mask), "attention_mask": mask.long()}
        if segments is not None:
            inputs["token_type_ids"] = _filled_up(segments, 0, mask)
        if aside is not None:
            starts = torch.tensor(aside.starts).unsqueeze(1)
            places = torch.arange(mask.shape[1])
            inputs["position_ids"] = places - starts * (places >= starts) + self._first_position
        here = {name: moved(tensor, self.transformer.device) for name, tensor in inputs.items()}
        seen = here["attention_mask"].bool()
        if aside is not None:
            bias = bias_of(aside, mask.shape[1], seen.device).masked_fill(~seen[:, None, None], -math.inf)
            here["attention_mask"] = bias.to(self.transformer.dtype)
        with _plain_attention(self.transformer.device):
            states: Tensor = self.transformer(**here).last_hidden_state
        return TokenStates(states, seen)


def read_encoder(folder: Path, *, strict: bool = False) -> Encoder:
    """The encoder in a Hugging Face folder, from safetensors only, without running code from it.

    Args:
        strict: whether weights that the encoder has no place for are an error, as in our own folders.
    """
    transformer, report = read_transformer(folder, AutoModel)
    if any(name.startswith("pooler.") for name in report.missing):
        transformer.register_module("pooler", None)  # never stored, and not needed
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
    """The model that one of transformers' Auto classes reads, and which of its weights were not there.

    Args:
        new_labels: how many outputs a new classifier is to have, whatever the folder has.
    """
    labels = {} if new_labels is None else {"num_labels": new_labels}
    _check_safe(folder)
    try:
        with quietly():
            config = AutoConfig.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False, **labels
            )
            transformer, report = auto_class.from_pretrained(
                folder,
                config=config,
                ignore_mismatched_sizes=new_labels is not None,
                dtype=torch.float32,
                local_files_only=True,
                output_loading_info=True,
                trust_remote_code=False,
                use_safetensors=True,
            )
    except Exception as error:  # a broken folder fails here in many ways
        raise ModelError(f"the model in {folder} cannot be read: {error}") from error
    askew = [each[0] for each in report["mismatched_keys"]]
    if any(name.startswith(f"{transformer.base_model_prefix}.") for name in askew):
        raise ModelError(f"{folder} holds weights of other shapes than its config.json says: {_some(askew)}")
    for weight in transformer.parameters():
        # what is mapped from a file lies askew in memory, and other kernels would turn a last bit
        weight.data = weight.data.clone()
    return transformer.eval(), LoadReport(report["missing_keys"], report["unexpected_keys"])


def write_encoder(encoder: Encoder, folder: Path) -> None:
    """Fill a Hugging Face folder with the transformer."""
    with quietly():
        encoder.transformer.save_pretrained(folder)


@contextmanager
def quietly() -> Iterator[None]:
    """Keep transformers from drawing and reporting on the user's terminal; we say ourselves what is wrong."""
    shown, loudness = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(loudness)
        if shown:
            logging.enable_progress_bar()


def _in_a_row(rows: Sequence[Sequence[int]]) -> Tensor:
    """``[N]``: all numbers, one row after the other."""
    return torch.from_numpy(np.concatenate([np.asarray(row, dtype=np.int64) for row in rows]))


def _filled_up(rows: Sequence[Sequence[int]], filler: int, mask: Tensor) -> Tensor:
    """``[B, T]``, as the mask: every row as long as the longest."""
    filled = torch.full(mask.shape, filler)
    filled[mask] = _in_a_row(rows)
    return filled


def _plain_attention(device: torch.device) -> AbstractContextManager[None]:
    """On an NVIDIA GPU, attention without cuDNN, which takes 4 ms to get ready for every shape it meets."""
    return sdpa_kernel(KERNELS) if device.type == "cuda" else nullcontext()


def _first_position(transformer: PreTrainedModel) -> int:
    """RoBERTa and its kin count positions from after the padding token's id."""
    embeddings: Any = getattr(transformer, "embeddings", None)
    if hasattr(embeddings, "create_position_ids_from_input_ids"):
        return int(embeddings.padding_idx) + 1
    return 0


def _check_safe(folder: Path) -> None:
    if (folder / "context" / "config.json").is_file():
        raise ModelError(f"{folder} is a poly-encoder: a plain encoder of it is {folder / 'context'}")
    for learnt in (DIFFERENCES, ADAPTER):
        if learnt in (read_manifest(folder) or {}):
            raise ModelError(
                f"{folder} holds only what was learnt, no encoder to build on: name the model that it began "
                "with, or go on with it as it is"
            )
    if not (folder / "config.json").is_file():
        raise ModelError(f"{folder} has no config.json: it is no model folder, or was only half written")
    _check_no_code(folder)
    if any(folder.glob("*.safetensors")):
        return
    pickled = sorted(file.name for pattern in PICKLED for file in folder.glob(pattern))
    if pickled:
        raise ModelError(
            f"{folder} holds pickled weights ({', '.join(pickled)}), which can run code when they are read: "
            "save the model as safetensors"
        )
    raise ModelError(f"{folder} has no *.safetensors: it is no model folder, or was only half written")


def _check_no_code(folder: Path) -> None:
    config = read_json(folder / "config.json")
    model_type = config.get("model_type")
    if "auto_map" in config and model_type not in CONFIG_MAPPING:
        raise ModelError(
            f"{folder} needs Python code of its own (auto_map in config.json), which tercet does not run: "
            f"use a model of an architecture that transformers has itself, not {model_type!r}"
        )


def check_tensors(folder: Path, *, missing: Iterable[str], extra: Iterable[str] = ()) -> None:
    """Raise if weights are missing or have no place in the model, naming them."""
    absent, strange = sorted(missing), sorted(extra)
    if absent:
        raise ModelError(f"{folder} lacks weights: {_some(absent)}; copy or save the model again")
    if strange:
        raise ModelError(
            f"{folder} holds weights that this model has no place for: {_some(strange)}; "
            "it was written for another architecture"
        )


def check_finite(module: nn.Module, folder: Path) -> None:
    """Raise if a weight is NaN or infinite."""
    broken = [name for name, weight in module.named_parameters() if not bool(torch.isfinite(weight).all())]
    if broken:
        raise ModelError(
            f"{folder} holds weights that are NaN or infinite: {_some(broken)}; copy or train it again"
        )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
