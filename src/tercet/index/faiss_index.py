"""faiss indexes that propose candidates: HNSW and IVF. A new method is one entry of ``METHODS``."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from tercet.errors import BrokenIndexError, OutputError
from tercet.extras import require
from tercet.files.atomic import new_file
from tercet.records import Floats

Method: TypeAlias = Literal["hnsw", "ivf"]

MIN_TRAINING, MAX_TRAINING = 1000, 200_000
"""Vectors that quantizers and IVF centroids are trained on."""
VECTORS_PER_LIST = 39
"""faiss warns if a list has fewer training vectors."""
ADDED_AT_ONCE = 50_000


@dataclass(frozen=True, kw_only=True, slots=True)
class MethodSpec:
    """How faiss builds and searches one kind of index."""

    factory: Callable[[int], str]
    """The factory string for a number of vectors, without the storage of the vectors."""
    search_effort: int
    """Default effort for a context with one code, such as efSearch or nprobe."""
    min_search_effort: int
    """Least effort per code when a context has many: what one code misses, another finds."""
    search_parameters: Callable[[Any, int, int, Any], Any]
    """faiss's search parameters, from the faiss module, the effort, k, and an id selector or None."""
    build_parameters: str = ""
    """Parameters that are set before vectors are added."""


def _hnsw_parameters(faiss: Any, effort: int, k: int, selector: Any) -> Any:
    return faiss.SearchParametersHNSW(efSearch=max(effort, k), sel=selector)


def _ivf_parameters(faiss: Any, effort: int, k: int, selector: Any) -> Any:
    return faiss.SearchParametersIVF(nprobe=effort, sel=selector)


def _ivf_factory(count: int) -> str:
    return f"IVF{max(1, min(int(4 * sqrt(count)), count // VECTORS_PER_LIST))}"


METHODS: dict[Method, MethodSpec] = {
    "hnsw": MethodSpec(
        factory=lambda count: "HNSW16",
        build_parameters="efConstruction=64",
        search_effort=256,
        min_search_effort=32,
        search_parameters=_hnsw_parameters,
    ),
    "ivf": MethodSpec(
        factory=_ivf_factory, search_effort=128, min_search_effort=64, search_parameters=_ivf_parameters
    ),
}


def import_faiss() -> Any:
    """The faiss module."""
    return require("faiss", extra="index", purpose="approximate search")


def build_index(vectors: Floats, method: Method) -> Any:
    """A faiss index over vectors ``[N, D]``, which may be memory-mapped.

    The vectors are stored in 8 bits, or in float32 if they are too few to train a quantizer.
    """
    faiss, spec = import_faiss(), METHODS[method]
    storage = "Flat" if len(vectors) < MIN_TRAINING else "SQ8"
    factory = f"{spec.factory(len(vectors))},{storage}"
    index = faiss.index_factory(vectors.shape[1], factory, faiss.METRIC_INNER_PRODUCT)
    faiss.ParameterSpace().set_index_parameters(index, spec.build_parameters)
    index.train(np.ascontiguousarray(vectors[:: max(1, len(vectors) // MAX_TRAINING)]))
    for start in range(0, len(vectors), ADDED_AT_ONCE):
        index.add(np.ascontiguousarray(vectors[start : start + ADDED_AT_ONCE]))
    return index


def write_graph(vectors: Floats, file: Path) -> None:
    """Write an HNSW index over vectors ``[N, D]`` to a file."""
    index = build_index(vectors, "hnsw")
    with new_file(file, overwrite=True) as partial:
        try:
            import_faiss().write_index(index, str(partial))
        except RuntimeError as error:  # faiss has no error of its own for a full disk
            raise OutputError(f"cannot write to {file.parent}: {error}") from None


def read_index(file: Path) -> Any:
    """The faiss index in a file, memory-mapped."""
    faiss = import_faiss()
    try:
        return faiss.read_index(str(file), faiss.IO_FLAG_MMAP_IFC)
    except RuntimeError as error:
        raise BrokenIndexError(
            f'{file} is truncated or damaged ({error}): run "tercet index repair"'
        ) from None


@contextmanager
def one_thread(faiss: Any) -> Iterator[None]:
    """Let faiss search in one thread: a search is shorter than the wait for a second thread."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
