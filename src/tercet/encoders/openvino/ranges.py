"""Which ranges the inputs of linear layers need: recorded from texts, chosen by the error of the outputs."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tercet.encoders.openvino.blocks import LinearWeights, Node, Weights, plain_linear
from tercet.encoders.openvino.inputs import TEXTS, Batch
from tercet.encoders.openvino.quantized import LEVELS, InputRange, quantized_matrix
from tercet.records import Floats, Ints

TOKENS_PER_CALL, TOKENS = 64, 1024
"""Tokens of each input that are kept to measure errors: per call of the graph, and in all."""

MARGIN = 1.2
"""Ranges are wider by this factor than what was seen: a value outside of its range costs far more than a
coarser step."""

BALANCES = (0.7, 0.85, 1.0)
"""0: all channels share one range. 1: each channel has its own, and the weights bear the differences."""


class Choice(NamedTuple):
    """The range of an input, and what it costs.

    ``error`` is the squared error of the outputs relative to their variance, on the recorded tokens.
    """

    range: InputRange
    error: float


class _Seen(NamedTuple):
    """What was recorded of an input: tokens ``[N, D]``, lowest and highest values ``[D]``."""

    tokens: Floats
    low: Floats
    high: Floats

    def with_more(self, values: Floats, chosen: Ints) -> "_Seen":
        """The same with more tokens ``[N, D]``, of which the chosen ones are kept."""
        return _Seen(
            np.concatenate([self.tokens, values[chosen]]),
            np.minimum(self.low, values.min(axis=0)),
            np.maximum(self.high, values.max(axis=0)),
        )


class Recorder(LinearWeights):
    """The weights of a graph whose additional outputs are the inputs of its linear layers."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self.readers: dict[str, list[str]] = {}
        """The linear layers that read each input, by the first of them."""
        self.nodes: list[Node] = []
        """The inputs, in the same order."""
        self.batches: list[tuple[Batch, Floats]] = []
        """What the graph read and returned."""
        self._names: dict[str, str] = {}
        self._seen: dict[str, _Seen] = {}
        self._random = np.random.default_rng(0)

    def __getitem__(self, name: str) -> Floats:
        return self._weights[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._weights)

    def __len__(self) -> int:
        return len(self._weights)

    def linear(self, x: Node, name: str) -> Node:
        """``x W^T + b``"""
        first = self._names.setdefault(x.get_name(), name)
        if first == name:
            self.nodes.append(x)
        self.readers.setdefault(first, []).append(name)
        return plain_linear(x, self._weights, name)

    def add(self, inputs: Sequence[Floats], batch: Batch, output: Floats) -> None:
        """Record what the additional outputs of the graph returned, ``[R, W, D]`` each."""
        present = batch[TEXTS] >= 0
        self.batches.append((batch, output))
        count = int(np.count_nonzero(present))
        chosen = self._random.choice(count, min(TOKENS_PER_CALL, count), replace=False)
        for name, values in zip(self.readers, inputs, strict=True):
            tokens = values[present]
            before = self._seen.get(name, _Seen(tokens[:0], tokens[0], tokens[0]))
            self._seen[name] = before.with_more(tokens, chosen)

    def choices(self) -> dict[str, Choice]:
        """The range of each input, by the first linear layer that reads it."""
        return {name: self._choice(name, seen) for name, seen in self._seen.items()}

    def size(self, name: str) -> int:
        """The number of weights of the linear layers that read an input."""
        return sum(self._weights[f"{each}.weight"].size for each in self.readers[name])

    def _choice(self, name: str, seen: _Seen) -> Choice:
        matrix = np.concatenate([self._weights[f"{each}.weight"] for each in self.readers[name]])
        kept = self._random.choice(len(seen.tokens), min(TOKENS, len(seen.tokens)), replace=False)
        return choose_range(seen.tokens[kept], (seen.low, seen.high), matrix)


def choose_range(tokens: Floats, extremes: tuple[Floats, Floats], matrix: Floats) -> Choice:
    """The range with the smallest error of ``tokens @ matrix.T``.

    Args:
        tokens: ``[N, D]``, typical inputs.
        extremes: ``[D]`` twice: the lowest and highest value of each channel.
        matrix: ``[O, D]``, the weights of all linear layers that read this input.
    """
    exact = tokens @ matrix.T
    variance = float(exact.var(axis=0).sum())
    ranges = [_range(extremes, matrix, balance) for balance in BALANCES]
    choices = [Choice(each, _error(tokens, matrix, exact, each) / variance) for each in ranges]
    return min(choices, key=lambda choice: choice.error)


def _range(extremes: tuple[Floats, Floats], matrix: Floats, balance: float) -> InputRange:
    low, high = extremes
    widths = np.maximum((high - low) * np.float32(MARGIN), np.float32(1e-6))
    reach = np.maximum(np.abs(matrix).max(axis=0), np.float32(1e-6))
    divisors = widths**balance / reach ** (1 - balance)
    widths = divisors * (widths / divisors).max()
    scale = (LEVELS / widths).astype(np.float16).astype(np.float32)
    offset = (LEVELS / 2 - (low + high) / 2 * scale).astype(np.float16).astype(np.float32)
    return InputRange(scale, offset)


def _error(tokens: Floats, matrix: Floats, exact: Floats, chosen: InputRange) -> float:
    quantized = quantized_matrix(matrix, chosen.scale)
    levels = np.clip(np.rint(tokens * chosen.scale + chosen.offset), 0, LEVELS)
    found = (levels - chosen.offset) @ (quantized.levels * quantized.steps).T
    return float(((found - exact) ** 2).sum(axis=1).mean())
