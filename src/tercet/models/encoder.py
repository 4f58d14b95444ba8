"""Token ids to one state per token, with any Hugging Face text encoder."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import CONFIG_MAPPING, AutoConfig, AutoModel, PreTrainedModel
from transformers.utils import logging

from tercet.errors import ModelError
from tercet.files import read_json
from tercet.runtime.packing import IMPLEMENTATION, filler_rows, positions_of, runs_of

PACKABLE = frozenset({"bert", "camembert", "distilbert", "electra", "modernbert", "roberta", "xlm-roberta"})
"""Architectures whose packed states are tested to equal the padded ones; others are padded."""

PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


class TokenStates(NamedTuple):
    """``states [B, T, D]`` and ``mask [B, T]``, false where a text has ended."""

    states: Tensor
    mask: Tensor


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
    def width(self) -> int:
        """D, the length of a state."""
        return int(self.transformer.config.hidden_size)

    @property
    def vocabulary(self) -> int:
        """How many tokens it knows."""
        return int(self.transformer.config.vocab_size)

    @property
    def max_tokens(self) -> int | None:
        """The longest text it has positions for, or None if it has no such limit."""
        positions = getattr(self.transformer.config, "max_position_embeddings", None)
        return None if not positions or positions < 0 else positions - self._first_position

    def forward(self, ids: Sequence[Sequence[int]]) -> TokenStates:
        """States of the tokens of each text; quickest if equal lengths lie side by side."""
        device = self.transformer.device
        lengths = torch.tensor([len(text) for text in ids], device=device)
        mask = torch.arange(int(lengths.max()), device=device) < lengths.unsqueeze(1)  # [B, T]
        if self.packable and device.type == "cpu":
            return TokenStates(self._packed(ids, mask), mask)
        return TokenStates(self._padded(ids, mask), mask)

    def _packed(self, ids: Sequence[Sequence[int]], mask: Tensor) -> Tensor:
        filler = filler_rows(sum(map(len, ids)))
        filled = [*ids, *[[self._padding]] * filler]  # texts of one token, dropped again below
        lengths = [len(text) for text in filled]
        rows: Tensor = self.transformer(
            input_ids=torch.tensor([[token for text in filled for token in text]]),
            position_ids=torch.tensor([positions_of(lengths, first=self._first_position)]),
            packing=runs_of(lengths),
        ).last_hidden_state[0]  # [N + filler, D]
        states = rows.new_zeros(*mask.shape, rows.shape[-1])
        states[mask] = rows[: len(rows) - filler]
        return states

    def _padded(self, ids: Sequence[Sequence[int]], mask: Tensor) -> Tensor:
        longest = mask.shape[1]
        padded = [[*text, *[self._padding] * (longest - len(text))] for text in ids]
        states: Tensor = self.transformer(
            input_ids=torch.tensor(padded, device=mask.device), attention_mask=mask.long()
        ).last_hidden_state
        return states


def read_encoder(folder: Path) -> Encoder:
    """The encoder in a Hugging Face folder, from safetensors only, without running code from it."""
    _check_safe(folder)
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        with no_progress_bar():
            transformer, report = AutoModel.from_pretrained(
                folder,
                config=config,
                dtype=torch.float32,
                local_files_only=True,
                output_loading_info=True,
                trust_remote_code=False,
                use_safetensors=True,
            )
    except Exception as error:  # a broken folder fails here in many ways
        raise ModelError(f"the model in {folder} cannot be read: {error}") from error
    _check_complete(transformer, missing=set(report["missing_keys"]), folder=folder)
    return Encoder(transformer.eval())


@contextmanager
def no_progress_bar() -> Iterator[None]:
    """Keep transformers from drawing on the user's terminal."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _first_position(transformer: PreTrainedModel) -> int:
    """RoBERTa and its kin count positions from after the padding token's id."""
    embeddings: Any = getattr(transformer, "embeddings", None)
    if hasattr(embeddings, "create_position_ids_from_input_ids"):
        return int(embeddings.padding_idx) + 1
    return 0


def _check_safe(folder: Path) -> None:
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


def _check_complete(transformer: PreTrainedModel, *, missing: set[str], folder: Path) -> None:
    """Raise if weights are missing or not finite; a pooler that was never stored is left out."""
    if any(name.startswith("pooler.") for name in missing):
        transformer.register_module("pooler", None)
    absent = sorted(name for name in missing if not name.startswith("pooler."))
    if absent:
        raise ModelError(f"{folder} lacks weights: {_some(absent)}; copy or save the model again")
    check_finite(transformer, folder)


def check_finite(module: nn.Module, folder: Path) -> None:
    """Raise if a weight is NaN or infinite."""
    broken = [name for name, weight in module.named_parameters() if not bool(torch.isfinite(weight).all())]
    if broken:
        raise ModelError(
            f"{folder} holds weights that are NaN or infinite: {_some(broken)}; copy or train it again"
        )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
