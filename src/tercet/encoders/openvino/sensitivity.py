"""Which linear layers bear int8: measured by what the graph returns when only one input is quantized."""

from collections.abc import Mapping, Sequence

import numpy as np

from tercet.encoders.openvino.compiled import CompiledGraph
from tercet.encoders.openvino.graphs import GraphPart
from tercet.encoders.openvino.inputs import Batch
from tercet.encoders.openvino.quantized import InputRange
from tercet.encoders.openvino.ranges import Recorder
from tercet.records import Floats

MOST_ERROR = 1.6e-3
"""The squared error of what a graph returns that int8 may cause, relative to its square."""

BATCHES = 6
"""Batches on which errors are measured, of those that were recorded."""


def chosen_ranges(part: GraphPart, recorder: Recorder) -> dict[str, InputRange]:
    """The ranges of the inputs that are quantized; the most harmful layers stay in a float precision."""
    ranges = {name: choice.range for name, choice in recorder.choices().items()}
    places = np.linspace(0, len(recorder.batches) - 1, min(BATCHES, len(recorder.batches))).astype(int)
    batches = [recorder.batches[place] for place in places]
    errors = {name: output_error(_graph(part, {name: chosen}), batches) for name, chosen in ranges.items()}
    kept = bearable(errors, {name: recorder.size(name) for name in errors})
    return {name: ranges[name] for name in ranges if name in kept}


def bearable(errors: Mapping[str, float], sizes: Mapping[str, int], most: float = MOST_ERROR) -> set[str]:
    """The inputs to quantize: those with the largest errors for their size are left out, until the sum of
    the errors is at most ``most``."""
    kept = set(errors)
    for name in sorted(errors, key=lambda name: -errors[name] / sizes[name]):
        if sum(errors[each] for each in kept) <= most:
            break
        kept.remove(name)
    return kept


def output_error(graph: CompiledGraph, batches: Sequence[tuple[Batch, Floats]]) -> float:
    """The mean squared error of what a graph returns for batches, relative to the mean square."""
    wrong = right = 0.0
    for batch, expected in batches:
        wrong += float(((graph.infer(batch) - expected) ** 2).sum())
        right += float((expected**2).sum())
    return wrong / right


def _graph(part: GraphPart, ranges: Mapping[str, InputRange]) -> CompiledGraph:
    return part.compiled(part.transformer._replace(ranges=ranges, recorder=None))
