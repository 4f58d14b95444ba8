"""Token ids to token states, with any Hugging Face text encoder."""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import PreTrainedModel

from tercet.encoders.fork import keep_one_thread_after_fork
from tercet.encoders.graphs import bucket_of, graphs_of
from tercet.encoders.packing import (
    IMPLEMENTATION,
    SeparateTexts,
    attention_bias,
    filler_rows,
    has_varlen_attention,
    make_packing,
    position_ids,
    text_lengths,
    to_device,
)
from tercet.encoders.precision import HALVES

PACKABLE = frozenset({"bert", "camembert", "distilbert", "electra", "modernbert", "roberta", "xlm-roberta"})
"""Architectures whose packed states are tested to equal the padded ones; others are padded."""

SEPARABLE = PACKABLE - {"modernbert"}
"""Architectures that can read the texts of a pair separately. ModernBERT's sliding window would join them."""

KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]

INCIDENTAL = frozenset(
    {"_name_or_path", "architectures", "auto_map", "dtype", "id2label", "label2id", "transformers_version"}
)
"""Settings of a transformer that do not change what it computes."""

keep_one_thread_after_fork()


class TokenStates(NamedTuple):
    """``states [B, T, D]`` and ``mask [B, T]``, false for padding."""

    states: Tensor
    mask: Tensor


class Encoder(nn.Module):
    """A transformer that encodes texts of different lengths, without padding where possible."""

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
        """The transformers model type, such as ``bert``."""
        return str(self.transformer.config.model_type)

    @property
    def width(self) -> int:
        """D, the hidden size."""
        return int(self.transformer.config.hidden_size)

    @property
    def vocabulary(self) -> int:
        """The vocabulary size."""
        return int(self.transformer.config.vocab_size)

    @property
    def segments(self) -> int:
        """The number of segment ids; a pair needs 2."""
        return int(getattr(self.transformer.config, "type_vocab_size", 0) or 0)

    @property
    def max_tokens(self) -> int | None:
        """The maximum sequence length, or None if there is no limit."""
        positions = getattr(self.transformer.config, "max_position_embeddings", None)
        return None if not positions or positions < 0 else positions - self._first_position

    def fingerprint_inputs(self) -> dict[str, Any]:
        """What determines the states apart from the weights.

        Only settings that differ from the architecture's defaults, so that a newer transformers with more
        settings leads to the same fingerprint.
        """
        settings: dict[str, Any] = self.transformer.config.to_diff_dict()
        return {"transformer": {name: each for name, each in settings.items() if name not in INCIDENTAL}}

    def forward(
        self,
        ids: Sequence[Sequence[int]],
        segments: Sequence[Sequence[int]] | None = None,
        separate: SeparateTexts | None = None,
    ) -> TokenStates:
        """The states of the tokens of each text; fastest if texts of equal length are adjacent.

        Args:
            ids: the tokens of each text.
            segments: for each token, whether it belongs to the first (0) or the second (1) text of a pair.
            separate: for pairs whose texts are read separately.
        """
        replayed = self._replayed(ids, segments) if separate is None else None
        if replayed is not None:
            return replayed
        lengths = torch.tensor([len(text) for text in ids])
        mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(dim=1)  # [B, T]
        run = self._packed if self._can_pack(separate) else self._padded
        return run(ids, segments, separate, mask)

    def _replayed(
        self, ids: Sequence[Sequence[int]], segments: Sequence[Sequence[int]] | None
    ) -> TokenStates | None:
        """The states of a small batch by a CUDA graph; None if there is none for it."""
        if self.transformer.device.type != "cuda" or not self._can_capture():
            return None
        bucket = bucket_of(
            [len(text) for text in ids], has_segments=segments is not None, max_tokens=self.max_tokens
        )
        if bucket is None:
            return None
        graphs = graphs_of(self.transformer, first_position=self._first_position)
        with _without_cudnn(self.transformer.device):
            found = graphs.run(bucket, ids, segments, padding=self._padding)
        return None if found is None else TokenStates(*found)

    def _can_capture(self) -> bool:
        """Whether a forward pass does the same each time: no gradients, no dropout, no sliding window."""
        return (
            self.packable
            and not self.training
            and torch.is_inference_mode_enabled()
            and not torch.is_autocast_enabled("cuda")
            and not getattr(self.transformer.config, "sliding_window", None)
            and not torch.cuda.is_current_stream_capturing()
        )

    def _can_pack(self, separate: SeparateTexts | None) -> bool:
        """Always on a CPU. The GPU kernel needs half precision and supports no dropout."""
        device, config = self.transformer.device, self.transformer.config
        if device.type == "cpu" or not self.packable:
            return self.packable
        if separate is not None:
            return False
        half = torch.is_autocast_enabled("cuda") or any(
            weight.dtype in HALVES.values() for weight in self.parameters()
        )
        drops = self.training and any(part.p for part in self.modules() if isinstance(part, nn.Dropout))
        fits = self.width // config.num_attention_heads % 8 == 0 and not getattr(
            config, "sliding_window", None
        )
        return half and not drops and fits and has_varlen_attention(device)

    def _packed(
        self,
        ids: Sequence[Sequence[int]],
        segments: Sequence[Sequence[int]] | None,
        separate: SeparateTexts | None,
        mask: Tensor,
    ) -> TokenStates:
        device = self.transformer.device
        filler = filler_rows(sum(map(len, ids))) if device.type == "cpu" else 0
        lengths = [*(len(text) for text in ids), *[1] * filler]  # texts of one token, dropped again below
        alone = lengths
        if separate is not None:
            separate = separate._replace(starts=[*separate.starts, *[1] * filler])
            alone = text_lengths(lengths, separate)
        packing = make_packing(lengths, device, separate)
        inputs = {
            "input_ids": _concatenated([*ids, [self._padding] * filler]),
            "position_ids": position_ids(alone, first=self._first_position),
        }
        if segments is not None:
            inputs["token_type_ids"] = _concatenated([*segments, [0] * filler])
        on_device = {name: to_device(tensor, device).unsqueeze(0) for name, tensor in inputs.items()}
        rows: Tensor = self.transformer(**on_device, packing=packing).last_hidden_state[0]
        positions = to_device(mask.flatten().nonzero().squeeze(dim=1), device)  # of the tokens among B * T
        states = rows.new_zeros(mask.numel(), rows.shape[-1])
        states = states.index_copy(0, positions, rows[: len(rows) - filler])
        return TokenStates(states.unflatten(0, mask.shape), to_device(mask, device))

    def _padded(
        self,
        ids: Sequence[Sequence[int]],
        segments: Sequence[Sequence[int]] | None,
        separate: SeparateTexts | None,
        mask: Tensor,
    ) -> TokenStates:
        inputs = {"input_ids": _padded(ids, self._padding, mask), "attention_mask": mask.long()}
        if segments is not None:
            inputs["token_type_ids"] = _padded(segments, 0, mask)
        if separate is not None:
            starts = torch.tensor(separate.starts).unsqueeze(dim=1)
            positions = torch.arange(mask.shape[1])
            inputs["position_ids"] = positions - starts * (positions >= starts) + self._first_position
        on_device = {name: to_device(tensor, self.transformer.device) for name, tensor in inputs.items()}
        seen = on_device["attention_mask"].bool()
        if separate is not None:
            bias = attention_bias(separate, mask.shape[1], seen.device)
            bias = bias.masked_fill(~seen[:, None, None], -math.inf)
            on_device["attention_mask"] = bias.to(self.transformer.dtype)
        with _without_cudnn(self.transformer.device):
            states: Tensor = self.transformer(**on_device).last_hidden_state
        return TokenStates(states, seen)


def _concatenated(rows: Sequence[Sequence[int]]) -> Tensor:
    """``[N]``: the numbers of all rows, one row after the other."""
    count = sum(map(len, rows))  # one pass over the numbers, without an array for each row
    return torch.from_numpy(np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=count))


def _padded(rows: Sequence[Sequence[int]], filler: int, mask: Tensor) -> Tensor:
    """``[B, T]``: the rows, padded to the shape of the mask."""
    padded = torch.full(mask.shape, filler)
    padded[mask] = _concatenated(rows)
    return padded


def _without_cudnn(device: torch.device) -> AbstractContextManager[None]:
    """On an NVIDIA GPU, attention without cuDNN, which takes 4 ms to prepare for each new shape."""
    return sdpa_kernel(KERNELS) if device.type == "cuda" else nullcontext()


def _first_position(transformer: PreTrainedModel) -> int:
    """RoBERTa and its relatives count positions from the padding token's id + 1."""
    embeddings: Any = getattr(transformer, "embeddings", None)
    if hasattr(embeddings, "create_position_ids_from_input_ids"):
        return int(embeddings.padding_idx) + 1
    return 0
