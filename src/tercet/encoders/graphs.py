"""CUDA graphs for small batches: one launch replays the hundreds of kernels of a transformer.

A graph has fixed shapes, so texts are padded to a bucket: a number of texts and a number of tokens. It is
captured when its bucket has been used a few times. A bounded number of graphs stay, those used last.
Where no graph can be captured, the transformer runs as usual.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar, cast
from weakref import WeakKeyDictionary, ref

import numpy as np
import torch
from torch import Tensor, nn

from tercet.encoders.packing import Padding
from tercet.records import Ints

LENGTHS = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512)
"""Tokens of a bucket; longer texts are not padded to a bucket."""
TEXTS = (1, 2, 4, 8, 16, 32, 64)
"""Texts of a bucket."""
MOST_TOKENS = 4096
"""Tokens of a bucket, padding included. With more, launching kernels is no longer what takes the time."""
MOST_GRAPHS = 24
"""Graphs of one transformer. They share their memory, which the largest one determines."""
USES_BEFORE = 2
"""How often a bucket is used before its graph is captured, which takes as long as many forward passes."""
WARM_UPS = 2
"""Forward passes before a capture, in which libraries allocate what they need."""

Graph = TypeVar("Graph")


class Bucket(NamedTuple):
    """The shape of a graph."""

    texts: int
    tokens: int
    has_segments: bool


def bucket_of(lengths: Sequence[int], *, has_segments: bool, max_tokens: int | None) -> Bucket | None:
    """The smallest bucket for texts of these lengths; None if there is none.

    Args:
        max_tokens: the most tokens that the transformer reads, a bucket's padding included.
    """
    texts, tokens = bisect_left(TEXTS, len(lengths)), bisect_left(LENGTHS, max(lengths))
    if texts == len(TEXTS) or tokens == len(LENGTHS):
        return None
    width = LENGTHS[tokens] if max_tokens is None else min(LENGTHS[tokens], max_tokens)
    found = Bucket(TEXTS[texts], width, has_segments)
    return found if found.texts * found.tokens <= MOST_TOKENS else None


class GraphCache(Generic[Graph]):
    """The graphs of buckets: captured late, the least recently used ones dropped, failures remembered."""

    def __init__(self, capture: Callable[[Bucket], Graph]) -> None:
        self._capture = capture
        self._graphs: OrderedDict[Bucket, Graph] = OrderedDict()
        self._uses: dict[Bucket, int] = {}
        self._failed: set[Bucket] = set()

    def __len__(self) -> int:
        return len(self._graphs)

    def get(self, bucket: Bucket) -> Graph | None:
        """The graph of a bucket; None if it is not used enough yet or cannot be captured."""
        if bucket in self._graphs:
            self._graphs.move_to_end(bucket)
            return self._graphs[bucket]
        self._uses[bucket] = self._uses.get(bucket, 0) + 1
        if bucket in self._failed or self._uses[bucket] <= USES_BEFORE:
            return None
        while len(self._graphs) >= MOST_GRAPHS:
            dropped, _ = self._graphs.popitem(last=False)
            self._uses[dropped] = 0
        try:
            self._graphs[bucket] = self._capture(bucket)
        except RuntimeError:  # no memory, or an operation that cannot be captured
            self._failed.add(bucket)
            return None
        return self._graphs[bucket]


class StaticInputs(NamedTuple):
    """What a graph reads: ids and segments ``[B, T]``, lengths ``[B]``, all views of one buffer."""

    buffer: Tensor
    ids: Tensor
    segments: Tensor
    lengths: Tensor


def static_inputs(bucket: Bucket, device: torch.device) -> StaticInputs:
    """Empty inputs; every text has one token."""
    size = bucket.texts * bucket.tokens
    buffer = torch.zeros(2 * size + bucket.texts, dtype=torch.int64, device=device)
    buffer[2 * size :] = 1
    shape = bucket.texts, bucket.tokens
    return StaticInputs(
        buffer, buffer[:size].view(shape), buffer[size : 2 * size].view(shape), buffer[2 * size :]
    )


def filled(
    bucket: Bucket, ids: Sequence[Sequence[int]], segments: Sequence[Sequence[int]] | None, padding: int
) -> Ints:
    """The content of the buffer for some texts; texts that are missing have one token."""
    size = bucket.texts * bucket.tokens
    buffer = np.zeros(2 * size + bucket.texts, dtype=np.int64)
    buffer[:size], buffer[2 * size :] = padding, 1
    for row, text in enumerate(ids):
        buffer[row * bucket.tokens : row * bucket.tokens + len(text)] = text
        buffer[2 * size + row] = len(text)
    for row, text in enumerate(segments or ()):
        start = size + row * bucket.tokens
        buffer[start : start + len(text)] = text
    return buffer


def padded_forward(
    transformer: nn.Module, inputs: StaticInputs, *, first_position: int, with_segments: bool
) -> tuple[Tensor, Tensor]:
    """``states [B, T, D]`` and ``mask [B, T]``. It never waits for the device, so it can be captured."""
    columns = torch.arange(inputs.ids.shape[1], device=inputs.ids.device)
    mask = columns < inputs.lengths.unsqueeze(1)
    given: dict[str, Any] = {"input_ids": inputs.ids, "packing": Padding(mask)}
    given["position_ids"] = (columns + first_position).expand(len(inputs.ids), -1)
    if with_segments:
        given["token_type_ids"] = inputs.segments
    return transformer(**given).last_hidden_state, mask


class CapturedForward:
    """A captured forward pass of one bucket."""

    def __init__(
        self, transformer: nn.Module, bucket: Bucket, *, first_position: int, pool: Any, stream: Any
    ) -> None:
        device = next(transformer.parameters()).device
        self.bucket = bucket
        self.inputs = static_inputs(bucket, device)
        self._first_position = first_position
        with torch.cuda.stream(stream):
            for _ in range(WARM_UPS):
                self._forward(transformer)
        stream.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
            self._states, self._mask = self._forward(transformer)

    def _forward(self, transformer: nn.Module) -> tuple[Tensor, Tensor]:
        return padded_forward(
            transformer,
            self.inputs,
            first_position=self._first_position,
            with_segments=self.bucket.has_segments,
        )

    @torch.inference_mode()
    def replay(self, buffer: Ints, *, texts: int, longest: int) -> tuple[Tensor, Tensor]:
        """Copies of ``states [B, T, D]`` and ``mask [B, T]`` of the first texts and tokens."""
        self.inputs.buffer.copy_(torch.from_numpy(buffer))
        self._graph.replay()
        return self._states[:texts, :longest].clone(), self._mask[:texts, :longest].clone()


class TransformerGraphs:
    """The graphs of one transformer on a GPU. Threads take turns, on a stream of its own."""

    def __init__(self, transformer: nn.Module, *, first_position: int) -> None:
        device = next(transformer.parameters()).device
        self._weights = weights_of(transformer)
        self._lock = Lock()
        self._stream = torch.cuda.Stream(device)
        pool, owner = torch.cuda.graph_pool_handle(), ref(transformer)  # a strong one would never be freed

        def capture(bucket: Bucket) -> CapturedForward:
            return CapturedForward(
                cast("nn.Module", owner()),
                bucket,
                first_position=first_position,
                pool=pool,
                stream=self._stream,
            )

        self._cache: GraphCache[CapturedForward] = GraphCache(capture)

    def fits(self, transformer: nn.Module) -> bool:
        """Whether the weights are still where the graphs read them."""
        return self._weights == weights_of(transformer)

    def run(
        self,
        bucket: Bucket,
        ids: Sequence[Sequence[int]],
        segments: Sequence[Sequence[int]] | None,
        *,
        padding: int,
    ) -> tuple[Tensor, Tensor] | None:
        """States and mask, or None if the bucket has no graph."""
        with self._lock:
            current = torch.cuda.current_stream(self._stream.device)
            self._stream.wait_stream(current)
            graph = self._cache.get(bucket)
            if graph is None:
                return None
            buffer = filled(bucket, ids, segments, padding)
            with torch.cuda.stream(self._stream):
                results = graph.replay(buffer, texts=len(ids), longest=max(map(len, ids)))
            current.wait_stream(self._stream)
            for tensor in results:
                tensor.record_stream(current)  # their memory belongs to the other stream
            return results


_graphs: "WeakKeyDictionary[nn.Module, TransformerGraphs]" = WeakKeyDictionary()
"""The graphs of each transformer, kept outside so that it copies and saves as usual."""

_creating = Lock()


def graphs_of(transformer: nn.Module, *, first_position: int) -> TransformerGraphs:
    """The graphs of a transformer, new ones if its weights have moved."""
    with _creating:
        found = _graphs.get(transformer)
        if found is None or not found.fits(transformer):
            with suppress(KeyError):
                del _graphs[transformer]  # frees memory before more is taken
            found = _graphs[transformer] = TransformerGraphs(transformer, first_position=first_position)
        return found


def weights_of(transformer: nn.Module) -> list[tuple[int, torch.dtype]]:
    """Where the weights are and of which types. Changes in place do not matter to a graph."""
    return [(weight.data_ptr(), weight.dtype) for weight in transformer.parameters()]
