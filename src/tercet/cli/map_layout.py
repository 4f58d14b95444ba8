"""Vectors to points in a plane, for a map."""

import warnings
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, TypeAlias

from tercet.extras import require
from tercet.index.all_pairs import plane

if TYPE_CHECKING:
    from tercet.records import Floats

Layout: TypeAlias = Literal["auto", "pca", "umap"]

MANY = 500
"""With this many points or more, ``auto`` prefers UMAP: two principal components hide neighbourhoods."""

MISSING_UMAP = "the map uses pca: for the layout umap, which separates clusters, pip install 'tercet[map]'"


def pick_layout(layout: Layout, count: int) -> Layout:
    """The layout of ``count`` points. It warns if UMAP would be better and is not installed."""
    if layout != "auto":
        return layout
    if count < MANY:
        return "pca"
    if find_spec("umap") is None:
        warnings.warn(MISSING_UMAP, stacklevel=2)
        return "pca"
    return "umap"


def layout_points(vectors: "Floats", layout: Layout) -> "Floats":
    """``[N, 2]``: a point for each vector ``[N, D]``, between 0 and 1."""
    points = _umap(vectors) if layout == "umap" else plane(vectors)
    low, high = points.min(axis=0), points.max(axis=0)
    widths = high - low
    widths[widths <= 0] = 1.0
    scaled: Floats = (points - low) / widths
    return scaled


def _umap(vectors: "Floats") -> "Floats":
    """``[N, 2]``: a layout that preserves neighbourhoods, reproducible."""
    import torch

    umap = require("umap", extra="map", purpose="the layout umap")
    near = min(15, max(2, len(vectors) - 1))
    threads = torch.get_num_threads()
    try:
        points: Floats = umap.UMAP(
            n_neighbors=near,
            metric="cosine",
            init="random" if len(vectors) < 20 else "spectral",
            random_state=0,
            n_jobs=1,  # umap would warn that a seed allows only one
        ).fit_transform(vectors)
    finally:
        torch.set_num_threads(threads)  # numba changes the number for all libraries
    return points
