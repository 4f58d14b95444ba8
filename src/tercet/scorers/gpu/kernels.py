"""``match`` as two Triton kernels, in which each candidate is read once and no product is written.

A program has a block of candidates and one context. It loops over blocks of codes and keeps, for each
candidate, the largest logit so far and two sums: ``Σ exp(a d_i)`` and ``Σ exp(a d_i) d_i``, both relative to
that logit (online softmax). Their quotient is the score. Programs of several contexts with the same
candidates are adjacent, so the candidates come from the cache.

``triton.jit`` reads the source of these functions: they may use nothing but ``triton.language``.
"""

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def _parts(values):
    """Three numbers of bfloat16 whose sum is a number of float32."""
    wide = values.to(tl.float32)
    first = wide.to(tl.bfloat16)
    rest = wide - first.to(tl.float32)
    second = rest.to(tl.bfloat16)
    third = (rest - second.to(tl.float32)).to(tl.bfloat16)
    return first, second, third


@triton.jit
def _as(values, dtype: tl.constexpr):
    """The values in ``dtype``: a conversion, which is exact, is needed only for int8."""
    return values if values.dtype == dtype else values.to(tl.float32).to(dtype)


@triton.jit
def _dot(left, right, sums, interpreted: tl.constexpr):
    """``sums + left @ right``, of half precision.

    Triton's interpreter would multiply the bits of bfloat16; the products are as exact in float32.
    """
    if interpreted:
        sums += tl.dot(left.to(tl.float32), right.to(tl.float32), input_precision="ieee")
    else:
        sums = tl.dot(left, right, sums)
    return sums


@triton.jit
def _product(left, right, sums, arithmetic: tl.constexpr, interpreted: tl.constexpr):
    """``sums + left @ right``.

    Args:
        left: ``[C, D]``, candidates.
        right: ``[D, M]``, codes.
        arithmetic: ``native`` multiplies half precision as it is, ``split`` multiplies three parts of 8 bits
            of each float32 number (six products; what is left out is below 2^-24), ``split_codes`` does so
            for codes alone, ``tf32`` rounds to 11 bits, and ``ieee`` uses no tensor cores.
    """
    if arithmetic == "native":
        sums = _dot(_as(left, right.dtype), right, sums, interpreted)
    elif arithmetic == "split_codes":
        whole = _as(left, tl.bfloat16)
        first, second, third = _parts(right)
        sums = _dot(whole, third, sums, interpreted)  # the smallest first
        sums = _dot(whole, second, sums, interpreted)
        sums = _dot(whole, first, sums, interpreted)
    elif arithmetic == "split":
        one, two, three = _parts(left)
        first, second, third = _parts(right)
        sums = _dot(three, first, sums, interpreted)
        sums = _dot(one, third, sums, interpreted)
        sums = _dot(two, second, sums, interpreted)
        sums = _dot(two, first, sums, interpreted)
        sums = _dot(one, second, sums, interpreted)
        sums = _dot(one, first, sums, interpreted)
    else:
        sums = tl.dot(left.to(tl.float32), right.to(tl.float32), sums, input_precision=arithmetic)
    return sums


@triton.jit
def _products(
    candidates,
    codes,
    rows,
    columns,
    row_stride,
    code_stride,
    candidate_count,
    code_count,
    width,
    arithmetic: tl.constexpr,
    interpreted: tl.constexpr,
    whole_width: tl.constexpr,
    block_candidates: tl.constexpr,
    block_codes: tl.constexpr,
    block_width: tl.constexpr,
):
    """``[block_candidates, block_codes]``: the inner products; 0 outside of both arrays."""
    sums = tl.zeros([block_candidates, block_codes], dtype=tl.float32)
    numbers = tl.arange(0, block_width)
    in_rows = rows[:, None] < candidate_count
    in_columns = columns[None, :] < code_count
    left = candidates + rows[:, None].to(tl.int64) * row_stride + numbers[None, :]
    right = codes + columns[None, :] * code_stride + numbers[:, None]
    for start in range(0, width, block_width):
        if whole_width:
            some = tl.load(left + start, mask=in_rows, other=0.0)
            others = tl.load(right + start, mask=in_columns, other=0.0)
        else:
            inside = start + numbers < width
            some = tl.load(left + start, mask=in_rows & inside[None, :], other=0.0)
            others = tl.load(right + start, mask=in_columns & inside[:, None], other=0.0)
        sums = _product(some, others, sums, arithmetic, interpreted)
    return sums


@triton.jit
def score_kernel(
    codes,
    candidates,
    mask,
    row_scales,
    scale,
    scores,
    logsums,
    maxima,
    contexts,
    candidate_count,
    code_count,
    width,
    context_stride,
    code_stride,
    own_stride,
    row_stride,
    mask_stride,
    arithmetic: tl.constexpr,
    interpreted: tl.constexpr,
    scale_in_memory: tl.constexpr,
    has_mask: tl.constexpr,
    has_row_scales: tl.constexpr,
    has_logsums: tl.constexpr,
    has_maxima: tl.constexpr,
    whole_width: tl.constexpr,
    block_candidates: tl.constexpr,
    block_codes: tl.constexpr,
    block_width: tl.constexpr,
):
    """Write the scores of a block of candidates for one context.

    Args:
        codes: ``[B, M, D]``
        candidates: ``[C, D]`` with ``own_stride`` 0, or ``[B, C, D]``.
        mask: ``[B, M]`` of bytes, 0 for missing codes.
        row_scales: ``[C]``, the factors of int8 candidates.
        scale: the factor of the logits, a number or its address.
        scores: ``[B, C]``
        logsums: ``[B, C]``, log2 of the sum of 2^logit; the backward pass needs them.
        maxima: ``[B, blocks]``, the best score of each block; infinity if one is NaN.
    """
    context = tl.program_id(0) % contexts
    block = tl.program_id(0) // contexts
    rows = block * block_candidates + tl.arange(0, block_candidates)
    factor = LOG2_E * (tl.load(scale) if scale_in_memory else scale)
    here = candidates + context.to(tl.int64) * own_stride
    ours = codes + context.to(tl.int64) * context_stride
    best = tl.full([block_candidates], float("-inf"), dtype=tl.float32)
    total = tl.zeros([block_candidates], dtype=tl.float32)
    weighted = tl.zeros([block_candidates], dtype=tl.float32)
    for start in range(0, code_count, block_codes):
        columns = start + tl.arange(0, block_codes)
        found = _products(
            here,
            ours,
            rows,
            columns,
            row_stride,
            code_stride,
            candidate_count,
            code_count,
            width,
            arithmetic,
            interpreted,
            whole_width,
            block_candidates,
            block_codes,
            block_width,
        )
        if has_row_scales:
            found *= tl.load(row_scales + rows, mask=rows < candidate_count, other=0.0)[:, None]
        present = columns < code_count
        if has_mask:
            present &= tl.load(mask + context * mask_stride + columns, mask=present, other=0) != 0
        logits = tl.where(present[None, :], found * factor, float("-inf"))
        higher = tl.maximum(best, tl.max(logits, axis=1))
        reference = tl.where(higher == float("-inf"), 0.0, higher)  # all codes so far are masked
        shrink = tl.exp2(best - reference)
        weights = tl.exp2(logits - reference[:, None])
        total = total * shrink + tl.sum(weights, axis=1)
        parts = tl.where(present[None, :], weights * found, 0.0)
        weighted = weighted * shrink + tl.sum(parts, axis=1)
        best = higher
    values = weighted / total  # NaN if every code is masked
    inside = rows < candidate_count
    at = context.to(tl.int64) * candidate_count + rows
    tl.store(scores + at, values, mask=inside)
    if has_logsums:
        tl.store(logsums + at, best + tl.log2(total), mask=inside)
    if has_maxima:
        visible = tl.where(values == values, values, float("inf"))  # tl.max would pass over a NaN
        largest = tl.max(tl.where(inside, visible, float("-inf")), axis=0)
        blocks = tl.cdiv(candidate_count, block_candidates)
        tl.store(maxima + context.to(tl.int64) * blocks + block, largest)


@triton.jit
def gradient_kernel(
    codes,
    candidates,
    mask,
    scale,
    scores,
    logsums,
    gradient,
    of_products,
    of_scale,
    contexts,
    candidate_count,
    code_count,
    width,
    context_stride,
    code_stride,
    own_stride,
    row_stride,
    mask_stride,
    score_stride,
    gradient_stride,
    arithmetic: tl.constexpr,
    interpreted: tl.constexpr,
    own: tl.constexpr,
    has_mask: tl.constexpr,
    has_scale: tl.constexpr,
    whole_width: tl.constexpr,
    block_candidates: tl.constexpr,
    block_codes: tl.constexpr,
    block_width: tl.constexpr,
):
    """Write the gradients of the products of a block of candidates for one context.

    The products are computed again: ``∂score/∂d_i = w_i (1 + a (d_i − score))``.

    Args:
        scores: ``[B, C]`` of the forward pass, as ``logsums``; both have ``score_stride``.
        gradient: ``[B, C]``, of the scores.
        of_products: the result, ``[C, B, M]`` for shared candidates, as one matrix product with the codes
            needs it, and ``[B, C, M]`` for own ones.
        of_scale: ``[B, C]``, the result for the scale.
    """
    context = tl.program_id(0) % contexts
    block = tl.program_id(0) // contexts
    rows = block * block_candidates + tl.arange(0, block_candidates)
    inside = rows < candidate_count
    attention = tl.load(scale)
    factor = LOG2_E * attention
    here = candidates + context.to(tl.int64) * own_stride
    ours = codes + context.to(tl.int64) * context_stride
    at = context.to(tl.int64) * score_stride + rows
    values = tl.load(scores + at, mask=inside, other=0.0)
    sums = tl.load(logsums + at, mask=inside, other=0.0)
    given = tl.load(gradient + context.to(tl.int64) * gradient_stride + rows, mask=inside, other=0.0)
    if own:
        place = (context.to(tl.int64) * candidate_count + rows) * code_count
    else:
        place = (rows.to(tl.int64) * contexts + context) * code_count
    slopes = tl.zeros([block_candidates], dtype=tl.float32)
    for start in range(0, code_count, block_codes):
        columns = start + tl.arange(0, block_codes)
        found = _products(
            here,
            ours,
            rows,
            columns,
            row_stride,
            code_stride,
            candidate_count,
            code_count,
            width,
            arithmetic,
            interpreted,
            whole_width,
            block_candidates,
            block_codes,
            block_width,
        )
        present = columns < code_count
        written = inside[:, None] & present[None, :]
        if has_mask:
            present &= tl.load(mask + context * mask_stride + columns, mask=present, other=0) != 0
        weights = tl.exp2(found * factor - sums[:, None])
        excess = found - values[:, None]
        slope = tl.where(present[None, :], weights * (1.0 + attention * excess), 0.0)
        tl.store(of_products + place[:, None] + columns[None, :], slope * given[:, None], mask=written)
        if has_scale:
            slopes += tl.sum(tl.where(present[None, :], weights * found * excess, 0.0), axis=1)
    if has_scale:
        tl.store(of_scale + context.to(tl.int64) * candidate_count + rows, slopes * given, mask=inside)
