"""A graph, compiled for this CPU, that turns batches of tokens into arrays."""

import os
from collections.abc import Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
import openvino as ov

from tercet.encoders.openvino.blocks import Node
from tercet.encoders.openvino.inputs import POOLED_FROM, Batch, Inputs, arrays
from tercet.encoders.openvino.processor import float_type
from tercet.encoders.openvino.ranges import Recorder
from tercet.encoders.openvino.rows import similar_lengths
from tercet.errors import ModelError
from tercet.records import Floats
from tercet.settings.models import Precision


class CompiledGraph:
    """A compiled graph. Threads may share it, unless it has a recorder."""

    def __init__(
        self, output: Node, inputs: Inputs, *, precision: Precision, recorder: Recorder | None = None
    ) -> None:
        parameters = list(inputs.parameters.values())
        self._names = tuple(inputs.parameters)
        self._recorder = recorder
        outputs = [output, *(recorder.nodes if recorder is not None else [])]
        config: dict[str, Any] = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": float_type(precision),
        }
        threads = os.environ.get("OMP_NUM_THREADS", "")
        if threads.isdecimal() and int(threads):
            config["INFERENCE_NUM_THREADS"] = int(threads)
        self._compiled = ov.Core().compile_model(ov.Model(outputs, parameters, "tercet"), "CPU", config)
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
        """As ``run``, in one call: what is returned per token is padded to the longest text."""
        if os.getpid() != self._process:
            raise ModelError(
                "this model was loaded before the process forked, and OpenVINO's threads do not survive a "
                "fork: load the model in the new process"
            )
        return self.infer(arrays(ids, others))

    def infer(self, batch: Batch) -> Floats:
        """As ``run_together``, from the arrays of a batch."""
        request = self._request()
        try:
            found = request.infer([batch[name] for name in self._names], share_inputs=True)
            result: Floats = np.array(found[0], dtype=np.float32)  # a copy: the request is used again
            if self._recorder is not None:
                inputs = [found[number] for number in range(1, len(found))]
                self._recorder.add(inputs, batch, result)
        finally:
            self._idle.put(request)
        return result

    def _request(self) -> Any:
        try:
            return self._idle.get_nowait()
        except Empty:
            return self._compiled.create_infer_request()


def _taken(others: Mapping[str, Sequence[Any]], group: Sequence[int]) -> dict[str, Sequence[Any]]:
    """The inputs of some of the texts; the length of a prompt is the same for all."""
    return {
        name: values if name == POOLED_FROM else [values[place] for place in group]
        for name, values in others.items()
    }
