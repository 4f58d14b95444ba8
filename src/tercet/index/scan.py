"""Exhaustive search of one segment: every vector is scanned, few are scored exactly.

For a single code, the scan runs over the quantized vectors, and the error bounds show which vectors can be
among the best. For several codes, it is one matrix product per block: a score never exceeds the largest
product, so the softmax is computed only where that reaches the best so far. Both ways return the same
results, because the final scores are computed in float64.
"""

from typing import Protocol

import numpy as np

from tercet.arrays import kth_largest
from tercet.index.quantized import estimate, quantize
from tercet.index.scoring import TopK, exact_scores, max_score_gap, poly_scores, score_error
from tercet.index.segment import Segment
from tercet.records import Bools, Floats, Ints

QUANTIZED_BLOCK = 16_384
FIRST_BLOCK, PRODUCT_BLOCK = 512, 4096
"""The first block is small, because all of it has to be scored."""
ROWS_PER_RUN = 16
MAX_QUANTIZED_SCANS = 3
"""Up to this many scans of the quantized vectors cost less than one matrix product."""


class Scan(Protocol):
    """A search of one segment, which need not run on the CPU."""

    def __call__(
        self, segment: Segment, contexts: list[Floats], tops: list[TopK], *, scale: float
    ) -> None: ...


def scan(segment: Segment, contexts: list[Floats], tops: list[TopK], *, scale: float) -> None:
    """Offer the vectors of a segment to the top-k of each context, whose codes are ``[M, D]``."""
    if all(len(codes) == 1 for codes in contexts) and len(contexts) <= MAX_QUANTIZED_SCANS:
        for codes, top in zip(contexts, tops, strict=True):
            scan_quantized(segment, codes, top)
    else:
        scan_products(segment, contexts, tops, scale=scale)


def scan_quantized(segment: Segment, code: Floats, top: TopK) -> None:
    """Compare one code ``[1, D]`` with the quantized vectors."""
    query = quantize(code)
    for block in segment.blocks(QUANTIZED_BLOCK):
        products, bounds = estimate(query, segment.quantized.take(block))
        alive = segment.alive[block]
        threshold = max(top.threshold, kth_largest((products - bounds)[alive], top.k))
        rows = np.flatnonzero(alive & (products + bounds >= threshold))
        offer_rows(segment, rows + block.start, code, top, scale=1.0)


def scan_products(segment: Segment, contexts: list[Floats], tops: list[TopK], *, scale: float) -> None:
    """Compare the codes of several contexts with all vectors, in one matrix product per block."""
    columns = np.ascontiguousarray(np.concatenate(contexts).T)  # [D, all codes]
    ends = np.cumsum([len(codes) for codes in contexts])[:-1]
    errors = [score_error(codes, segment.max_norm, scale) for codes in contexts]
    size, start = FIRST_BLOCK, 0
    while start < len(segment):
        block = slice(start, min(start + size, len(segment)))
        products = segment.vectors(block) @ columns
        parts = np.split(products, ends, axis=1)
        for codes, top, part, error in zip(contexts, tops, parts, errors, strict=True):
            rows = promising_rows(part, segment.alive[block], top, scale=scale, error=error)
            offer_rows(segment, rows + block.start, codes, top, scale=scale)
        size, start = PRODUCT_BLOCK, block.stop


def promising_rows(products: Floats, alive: Bools, top: TopK, *, scale: float, error: float) -> Ints:
    """The rows of ``[n, M]`` products that can be among the best.

    Args:
        alive: ``[n]``, false for rows that were removed.
        error: bound on the error of a score.
    """
    if top.threshold > -np.inf:
        rows = rows_reaching(products, top.threshold - 2 * error)
        rows = rows[alive[rows]]
    else:  # without a threshold, a lower bound on the k-th best score of this block replaces it
        largest = np.where(alive, products.max(axis=1), -np.inf)
        bound = kth_largest(largest, top.k) - max_score_gap(products.shape[1], scale)
        rows = np.flatnonzero(alive & (largest >= bound - 2 * error))
    scores = poly_scores(products[rows], scale)
    threshold = max(top.threshold, kth_largest(scores, top.k))
    return rows[scores >= threshold - 2 * error]


def rows_reaching(products: Floats, threshold: float) -> Ints:
    """The rows of ``[n, M]`` that contain a product of at least the threshold.

    Such rows are rare, so the maximum of several rows at once is checked first: numpy is fast on long runs.
    """
    whole = len(products) // ROWS_PER_RUN * ROWS_PER_RUN
    runs = products[:whole].reshape(-1, ROWS_PER_RUN * products.shape[1]).max(axis=1)
    near = np.flatnonzero(runs >= threshold)[:, None] * ROWS_PER_RUN + np.arange(ROWS_PER_RUN)
    rows = np.concatenate([near.ravel(), np.arange(whole, len(products))])
    reaching: Ints = rows[products[rows].max(axis=1) >= threshold]
    return reaching


def offer_rows(segment: Segment, rows: Ints, codes: Floats, top: TopK, *, scale: float) -> None:
    """Score some rows exactly and offer them."""
    if len(rows):
        top.offer(segment.ids[rows], exact_scores(codes, segment.vectors(rows), scale))
