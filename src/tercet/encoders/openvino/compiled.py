"""A graph, compiled for this CPU, that turns batches of tokens into arrays."""

import os
from collections.abc import Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
import openvino as ov
from numpy.typing import NDArray

from tercet.encoders.openvino.blocks import Node
from tercet.encoders.openvino.inputs import IDS, LENGTHS, POOLED_FROM, SEGMENTS, Inputs
from tercet.errors import ModelError
from tercet.records import Floats
from tercet.settings.models import Precision

HINTS: dict[Precision, str] = {"fp32": "f32", "bf16": "bf16"}
"""The precisions by OpenVINO's names."""

CALL_TOKENS = 64
"""Padding that costs as much as another call."""

STEPS = ((128, 8), (256, 16), (1 << 62, 32))
"""Maximum length and step: texts are padded to a multiple of the step. Few shapes, little padding."""


class CompiledGraph:
    """A compiled graph. Threads may share it."""

    def __init__(self, output: Node, inputs: Inputs, *, precision: Precision) -> None:
        parameters = list(inputs.parameters.values())
        self._names = tuple(inputs.parameters)
        config: dict[str, Any] = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": HINTS.get(precision, "f32"),
        }
        threads = os.environ.get("OMP_NUM_THREADS", "")
        if threads.isdecimal() and int(threads):
            config["INFERENCE_NUM_THREADS"] = int(threads)
        self._compiled = ov.Core().compile_model(ov.Model([output], parameters, "tercet"), "CPU", config)
        self._idle: SimpleQueue[Any] = SimpleQueue()
        self._process = os.getpid()

    def run(self, ids: Sequence[Sequence[int]], **others: Sequence[Any]) -> Floats:
        """The output for a batch of tokenized texts; those of similar length are processed together.

        Args:
            ids: the tokens of each text.
            others: the other inputs of the graph, by name.
        """
        groups = similar_lengths([len(text) for text in ids])
        if len(groups) == 1:
            return self.run_together(ids, **others)
        parts = [
            self.run_together([ids[place] for place in group], **_taken(others, group)) for group in groups
        ]
        order = np.argsort([place for group in groups for place in group])
        whole: Floats = np.concatenate(parts)[order]
        return whole

    def run_together(self, ids: Sequence[Sequence[int]], **others: Sequence[Any]) -> Floats:
        """As ``run``, with all texts padded to the length of the longest one."""
        if os.getpid() != self._process:
            raise ModelError(
                "this model was loaded before the process forked, and OpenVINO's threads do not survive a "
                "fork: load the model in the new process"
            )
        arrays = padded_inputs(ids, others)
        request = self._request()
        try:
            found = request.infer([arrays[name] for name in self._names], share_inputs=True)
            result: Floats = np.array(found[0], dtype=np.float32)  # a copy: the request is used again
        finally:
            self._idle.put(request)
        return result

    def _request(self) -> Any:
        try:
            return self._idle.get_nowait()
        except Empty:
            return self._compiled.create_infer_request()


def similar_lengths(lengths: Sequence[int]) -> list[list[int]]:
    """The positions of texts, longest first, in groups that need little padding."""
    groups: list[list[int]] = []
    width = wasted = 0
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        wasted += width - lengths[place]
        if not groups or wasted > CALL_TOKENS:
            groups.append([])
            width, wasted = padded_length(lengths[place]), 0
        groups[-1].append(place)
    return groups


def _taken(others: Mapping[str, Sequence[Any]], group: Sequence[int]) -> dict[str, Sequence[Any]]:
    """The inputs of some of the texts; the length of a prompt is the same for all."""
    return {
        name: values if name == POOLED_FROM else [values[place] for place in group]
        for name, values in others.items()
    }


def padded_inputs(
    ids: Sequence[Sequence[int]], others: Mapping[str, Sequence[Any]]
) -> dict[str, NDArray[np.int32]]:
    """The arrays of a batch; texts are padded with 0 to a common length."""
    lengths = np.array([len(text) for text in ids], dtype=np.int32)
    width = padded_length(int(lengths.max()))
    arrays = {IDS: _padded(ids, width), LENGTHS: lengths}
    for name, values in others.items():
        arrays[name] = _padded(values, width) if name == SEGMENTS else np.asarray(values, dtype=np.int32)
    return arrays


def padded_length(tokens: int) -> int:
    """The length to which texts of ``tokens`` tokens are padded."""
    step = next(step for most, step in STEPS if tokens <= most)
    return tokens + -tokens % step


def _padded(rows: Sequence[Sequence[int]], width: int) -> NDArray[np.int32]:
    padded = np.zeros((len(rows), width), dtype=np.int32)
    for target, row in zip(padded, rows, strict=True):
        target[: len(row)] = row
    return padded
