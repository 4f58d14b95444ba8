"""The best of all vectors of a segment: every one is looked at, few are scored exactly.

One code is compared with the sketch, whose bounds say which vectors can be among the best. Several codes are
one matrix product; a score is never above its largest product, so the softmax is made only where that reaches
the best so far. What comes out does not depend on the way: scores are computed again in float64.
"""

import numpy as np

from tercet.index.scoring import Best, exact_scores, kth_largest, poly_scores, slack, widest_gap
from tercet.index.segment import Segment
from tercet.index.sketch import estimate, sketch
from tercet.records import Counts, Flags, Floats

SKETCHED_AT_ONCE = 16_384
FIRST_PRODUCTS, PRODUCTS_AT_ONCE = 512, 4096
ROWS_TOGETHER = 16
FEW_CODES = 3
"""So many searches through the sketch cost less than one matrix product."""


def scan(segment: Segment, contexts: list[Floats], found: list[Best], *, scale: float) -> None:
    """Offer the segment's vectors to the best of each context, whose codes are ``[M, D]``."""
    if all(len(codes) == 1 for codes in contexts) and len(contexts) <= FEW_CODES:
        for codes, best in zip(contexts, found, strict=True):
            scan_sketch(segment, codes, best)
    else:
        scan_products(segment, contexts, found, scale=scale)


def scan_sketch(segment: Segment, code: Floats, best: Best) -> None:
    """One code ``[1, D]`` against all vectors."""
    drawn = sketch(code)
    for block in segment.blocks(SKETCHED_AT_ONCE):
        products, margins = estimate(drawn, segment.sketch.part(block))
        alive = segment.alive[block]
        threshold = max(best.threshold, kth_largest((products - margins)[alive], best.k))
        rows = np.flatnonzero(alive & (products + margins >= threshold))
        score_rows(segment, rows + block.start, code, best, scale=1.0)


def scan_products(segment: Segment, contexts: list[Floats], found: list[Best], *, scale: float) -> None:
    """The codes of several contexts against all vectors, in one matrix product for each block."""
    columns = np.ascontiguousarray(np.concatenate(contexts).T)  # [D, all codes]
    ends = np.cumsum([len(codes) for codes in contexts])[:-1]
    offs = [slack(codes, segment.longest, scale) for codes in contexts]
    size, start = FIRST_PRODUCTS, 0  # a small block first: it has to be scored whole
    while start < len(segment):
        block = slice(start, min(start + size, len(segment)))
        products = segment.vectors(block) @ columns
        parts = np.split(products, ends, axis=1)
        for codes, best, part, off in zip(contexts, found, parts, offs, strict=True):
            rows = narrowed(part, segment.alive[block], best, scale=scale, off=off)
            score_rows(segment, rows + block.start, codes, best, scale=scale)
        size, start = PRODUCTS_AT_ONCE, block.stop


def narrowed(products: Floats, alive: Flags, best: Best, *, scale: float, off: float) -> Counts:
    """The living rows of ``[n, M]`` products that can be among the best; scores may be ``off`` by so much."""
    if best.threshold > -np.inf:
        rows = reaching(products, best.threshold - 2 * off)
        rows = rows[alive[rows]]
    else:  # nothing to compare with yet but the block's own k-th best, which is not below this
        highest = np.where(alive, products.max(axis=1), -np.inf)
        least = kth_largest(highest, best.k) - widest_gap(products.shape[1], scale)
        rows = np.flatnonzero(alive & (highest >= least - 2 * off))
    scores = poly_scores(products[rows], scale)
    threshold = max(best.threshold, kth_largest(scores, best.k))
    return rows[scores >= threshold - 2 * off]


def reaching(products: Floats, threshold: float) -> Counts:
    """The rows of ``[n, M]`` with a product of at least the threshold.

    Few have one, so the largest of several rows at once is looked at first: long runs are quick.
    """
    whole = len(products) // ROWS_TOGETHER * ROWS_TOGETHER
    runs = products[:whole].reshape(-1, ROWS_TOGETHER * products.shape[1]).max(axis=1)
    near = np.flatnonzero(runs >= threshold)[:, None] * ROWS_TOGETHER + np.arange(ROWS_TOGETHER)
    rows = np.concatenate([near.ravel(), np.arange(whole, len(products))])
    reached: Counts = rows[products[rows].max(axis=1) >= threshold]
    return reached


def score_rows(segment: Segment, rows: Counts, codes: Floats, best: Best, *, scale: float) -> None:
    """Score rows exactly."""
    if len(rows):
        best.offer(segment.ids[rows], exact_scores(codes, segment.vectors(rows), scale))
