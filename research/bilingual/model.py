"""MiniLM over texts of all lengths side by side, in plain torch.

Weights are float32, the forward pass is bfloat16 on a GPU. The names of weights are short here; ``from_bert``
and ``to_bert`` translate them from and to Hugging Face's BertModel.
"""

import math
import os
from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from texts import Spans, TokenFile
from torch import Tensor, nn
from torch.nn import functional

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
DTYPE = torch.bfloat16 if DEVICE.type == "cuda" else torch.float32
HEADS, WIDTH, LAYERS = 12, 384, 6
HEAD_WIDTH = WIDTH // HEADS
UNKNOWN = 100
EVAL_TOKENS = 198
"""Largest number of tokens of a text in evaluation."""

Weights = dict[str, Tensor]


class Packed:
    """Texts side by side on the device; with ``group`` 2, the two texts of a pair attend to each other."""

    def __init__(self, ids: NDArray[np.int32], lengths: NDArray[np.int64], group: int = 1) -> None:
        starts = np.cumsum(lengths) - lengths
        positions = np.arange(len(ids)) - np.repeat(starts, lengths)
        texts = np.repeat(np.arange(len(lengths)), lengths)
        sequences = lengths.reshape(-1, group).sum(axis=1)
        bounds = np.concatenate([[0], np.cumsum(sequences)]).astype(np.int32)
        self.count, self.group = len(lengths), group
        self.longest, self.longest_text = int(sequences.max()), int(lengths.max())
        self.ids, self.positions, self.texts = to_device(np.stack([ids.astype(np.int64), positions, texts]))
        self.bounds, self.lengths = to_device(bounds), to_device(lengths)


def to_device(array: NDArray) -> Tensor:
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor.pin_memory().to(DEVICE, non_blocking=True) if DEVICE.type == "cuda" else tensor


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH, eps=1e-12), nn.LayerNorm(WIDTH, eps=1e-12)


class Encoder(nn.Module):
    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.word, self.pos = nn.Embedding(vocabulary, WIDTH), nn.Embedding(512, WIDTH)
        self.segment = nn.Embedding(2, WIDTH)
        self.ln = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, packed: Packed, cross_text_weight: float | None = None) -> Tensor:
        """States ``[T, D]``; attention to the other text of a pair is multiplied by the weight."""
        words = functional.embedding(packed.ids, self.word.weight)
        positions = functional.embedding(packed.positions, self.pos.weight)
        segments = functional.embedding(packed.texts % packed.group, self.segment.weight)
        states = layer_norm(self.ln, (words + positions + segments).to(DTYPE))
        project, finish = compiled_parts() if compiling_works() else (project_states, finish_layer)
        side = sides(packed) if cross_text_weight is not None else None
        for layer in self.layers:
            attended = attention(*project(layer, states, side, cross_text_weight), packed)
            states = finish(layer, states, attended)
        return states


def linear(layer: nn.Linear, states: Tensor) -> Tensor:
    return functional.linear(states, layer.weight.to(states.dtype), layer.bias.to(states.dtype))


def layer_norm(layer: nn.LayerNorm, states: Tensor) -> Tensor:
    weight, bias = layer.weight.to(states.dtype), layer.bias.to(states.dtype)
    return functional.layer_norm(states, (WIDTH,), weight, bias, 1e-12)


def project_states(
    layer: Layer, states: Tensor, side: Tensor | None, weight: float | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values, each ``[T, H, D / H]``, or wider with a weight."""
    query, key, value = linear(layer.qkv, states).view(-1, 3, HEADS, HEAD_WIDTH).unbind(1)
    query = query * HEAD_WIDTH**-0.5
    if side is None or weight is None:
        return query, key, value
    # With c = -log(weight) / 2, exp(c s_i s_j) is 1 within a text and `weight` across, up to a factor that
    # the softmax removes.
    side = side.to(query.dtype).view(-1, 1, 1).expand(-1, HEADS, 1)
    zeros = query.new_zeros(len(query), HEADS, 7)  # kernels want widths in eights
    query = torch.cat([query, -0.5 * math.log(weight) * side, zeros], dim=-1)
    key = torch.cat([key, side, zeros], dim=-1)
    value = torch.cat([value, zeros, zeros[..., :1]], dim=-1)
    return query, key, value


def finish_layer(layer: Layer, states: Tensor, attended: Tensor) -> Tensor:
    """What follows attention; ``attended`` is ``[T, H, D / H]`` or wider."""
    attended = attended[..., :HEAD_WIDTH].reshape(-1, WIDTH)
    states = layer_norm(layer.ln1, states + linear(layer.out, attended))
    hidden = functional.gelu(linear(layer.up, states))
    return layer_norm(layer.ln2, states + linear(layer.down, hidden))


def sides(packed: Packed) -> Tensor:
    """``[T]``: +1 in the first text of a pair, -1 in the second."""
    return 1 - 2 * (packed.texts % 2)


@cache
def compiled_parts() -> tuple[Callable[..., tuple[Tensor, Tensor, Tensor]], Callable[..., Tensor]]:
    return torch.compile(project_states, dynamic=True), torch.compile(finish_layer, dynamic=True)


@cache
@torch.enable_grad()
def compiling_works() -> bool:
    """Whether the compiled parts of a layer run here and agree with the plain ones."""
    if DEVICE.type != "cuda" or os.environ.get("COMPILE") == "0":
        return False
    layer, side = Layer().to(DEVICE), torch.ones(40, device=DEVICE, dtype=torch.long)
    states = torch.randn(40, WIDTH, device=DEVICE).to(DTYPE).requires_grad_()
    results = []
    try:
        for project, finish in (compiled_parts(), (project_states, finish_layer)):
            _, _, value = project(layer, states, side, 0.3)
            output = finish(layer, states, value).float()
            (gradient,) = torch.autograd.grad(output.pow(3).sum(), states)
            results.append((output.detach(), gradient.float()))
    except Exception as error:  # compilers fail in many ways
        print(f"layers are not compiled: {error}", flush=True)
        return False
    return all((left - right).norm() <= 0.02 * right.norm() for left, right in zip(*results, strict=True))


def attention(
    query: Tensor, key: Tensor, value: Tensor, packed: Packed, *, fast: bool | None = None
) -> Tensor:
    """``[T, H, D / H]``; each text, or each pair of texts, attends to itself."""
    if fast_attention_works() if fast is None else fast:
        return fast_attention(query, key, value, packed)
    return padded_attention(query, key, value, packed)


def fast_attention(query: Tensor, key: Tensor, value: Tensor, packed: Packed) -> Tensor:
    from torch.nn.attention.varlen import varlen_attn

    query = query * query.shape[-1] ** 0.5  # the kernel divides by this root
    inputs = query.contiguous(), key.contiguous(), value.contiguous()
    return varlen_attn(*inputs, packed.bounds, packed.bounds, packed.longest, packed.longest)


def padded_attention(query: Tensor, key: Tensor, value: Tensor, packed: Packed) -> Tensor:
    count, longest = len(packed.bounds) - 1, packed.longest
    starts, lengths = packed.bounds[:-1].long(), packed.bounds.diff().long()
    row = torch.repeat_interleave(torch.arange(count, device=query.device), lengths)
    place = row * longest + torch.arange(len(query), device=query.device) - starts[row]
    mask = (torch.arange(longest, device=query.device) < lengths[:, None])[:, None, None]

    def padded(values: Tensor) -> Tensor:
        empty = values.new_zeros(count * longest, HEADS, values.shape[-1])
        return empty.index_copy(0, place, values).view(count, longest, HEADS, -1).transpose(1, 2)

    attended = functional.scaled_dot_product_attention(
        padded(query), padded(key), padded(value), attn_mask=mask, scale=1.0
    )
    return attended.transpose(1, 2).reshape(count * longest, HEADS, -1)[place]


@cache
@torch.enable_grad()
def fast_attention_works() -> bool:
    """Whether the kernel for texts of all lengths runs here and agrees with the padded one."""
    if DEVICE.type != "cuda":
        return False
    packed = Packed(np.full(40, 7, np.int32), np.array([9, 11, 12, 8]), group=2)
    try:
        for weight in (None, 0.3):
            layer, inputs = Layer().to(DEVICE), torch.randn(40, WIDTH, device=DEVICE).to(DTYPE)
            inputs.requires_grad_()
            results = []
            for fast in (True, False):
                parts = project_states(layer, inputs, sides(packed), weight)
                outputs = attention(*parts, packed, fast=fast).float()
                (gradient,) = torch.autograd.grad(outputs.pow(2).sum(), inputs)
                results.append((outputs.detach(), gradient.float()))
            if any((left - right).norm() > 0.02 * right.norm() for left, right in zip(*results, strict=True)):
                return False
    except (ImportError, RuntimeError, NotImplementedError) as error:
        print(f"attention is padded, because the kernel for all lengths failed: {error}", flush=True)
        return False
    return True


def mean_vectors(states: Tensor, packed: Packed) -> Tensor:
    """``[N, D]`` in float32, of length 1."""
    empty = torch.zeros(packed.count, WIDTH, device=states.device)
    totals = empty.index_add(0, packed.texts, states.float())
    return functional.normalize(totals / packed.lengths.unsqueeze(1), dim=-1)


def padded_states(states: Tensor, packed: Packed) -> tuple[Tensor, Tensor]:
    """``[N, T, D]`` and the mask ``[N, T]``."""
    longest = packed.longest_text
    place = packed.texts * longest + packed.positions
    empty = states.new_zeros(packed.count * longest, WIDTH)
    mask = torch.arange(longest, device=states.device) < packed.lengths.unsqueeze(1)
    return empty.index_copy(0, place, states).view(packed.count, longest, WIDTH), mask


def batches(lengths: NDArray, max_tokens: int) -> list[NDArray[np.int64]]:
    """Positions of texts of similar length, in batches of at most ``max_tokens`` tokens."""
    order = np.argsort(lengths, kind="stable")
    ends = np.cumsum(lengths[order])
    max_tokens = max_tokens if DEVICE.type == "cuda" else 4000
    found, start = [], 0
    while start < len(order):
        limit = (ends[start - 1] if start else 0) + max_tokens
        end = max(start + 1, int(np.searchsorted(ends, limit)))
        found.append(order[start:end])
        start = end
    return found


@torch.no_grad()
def embed(
    encoder: Encoder,
    texts: TokenFile,
    spans: Spans,
    *,
    max_tokens: int = EVAL_TOKENS,
    keep_end: bool = False,
    reduce: Callable[[Tensor, Packed], Tensor] = mean_vectors,
    batch_tokens: int = 150_000,
) -> Tensor:
    """What ``reduce`` returns for each span, ``[N, ...]``; by default unit vectors ``[N, D]``."""
    lengths = np.minimum(spans[:, 1] - spans[:, 0], max_tokens) + 2
    parts, order = [], batches(lengths, batch_tokens)
    for chosen in order:
        packed = Packed(*texts.sequences(spans[chosen], max_tokens, keep_end))
        parts.append(reduce(encoder(packed), packed))
    return in_order(torch.cat(parts), np.concatenate(order))


def in_order(values: Tensor, order: NDArray[np.int64]) -> Tensor:
    """The values, which come in the given order, in the order of their texts."""
    sorted_values = torch.empty_like(values)
    sorted_values[torch.from_numpy(order).to(values.device)] = values
    return sorted_values


def build(weights: Weights) -> Encoder:
    encoder = Encoder(len(weights["word.weight"]))
    encoder.load_state_dict(weights)
    return encoder.to(DEVICE)


EMBEDDINGS = {
    "word.weight": "word_embeddings.weight",
    "pos.weight": "position_embeddings.weight",
    "segment.weight": "token_type_embeddings.weight",
    "ln.weight": "LayerNorm.weight",
    "ln.bias": "LayerNorm.bias",
}
BLOCKS = {
    "out": "attention.output.dense",
    "ln1": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "ln2": "output.LayerNorm",
}
PROJECTIONS = ("query", "key", "value")


def from_bert(bert: Weights) -> Weights:
    weights = {ours: bert[f"embeddings.{theirs}"].float() for ours, theirs in EMBEDDINGS.items()}
    for layer in range(LAYERS):
        theirs, ours = f"encoder.layer.{layer}", f"layers.{layer}"
        for part in ("weight", "bias"):
            qkv = [bert[f"{theirs}.attention.self.{name}.{part}"] for name in PROJECTIONS]
            weights[f"{ours}.qkv.{part}"] = torch.cat(qkv).float()
            for name, block in BLOCKS.items():
                weights[f"{ours}.{name}.{part}"] = bert[f"{theirs}.{block}.{part}"].float()
    return weights


def to_bert(weights: Weights) -> Weights:
    bert = {f"embeddings.{theirs}": weights[ours] for ours, theirs in EMBEDDINGS.items()}
    for layer in range(LAYERS):
        theirs, ours = f"encoder.layer.{layer}", f"layers.{layer}"
        for part in ("weight", "bias"):
            qkv = weights[f"{ours}.qkv.{part}"].chunk(3)
            for name, projection in zip(PROJECTIONS, qkv, strict=True):
                bert[f"{theirs}.attention.self.{name}.{part}"] = projection
            for name, block in BLOCKS.items():
                bert[f"{theirs}.{block}.{part}"] = weights[f"{ours}.{name}.{part}"]
    return {name: tensor.clone().contiguous() for name, tensor in bert.items()}
