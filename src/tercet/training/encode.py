"""Token ids to vectors with gradients, in as little memory as wanted."""

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from tercet.models.code_layer import CodeTensors
from tercet.models.cross import CrossEncoder
from tercet.models.dual import DualEncoder
from tercet.models.pairs import PairIds
from tercet.runtime.batches import batches_by_tokens

Ids: TypeAlias = Sequence[Sequence[int]]
Chunk = TypeVar("Chunk")
Result = TypeVar("Result")


JOINED_PADDING = 8192
"""On a GPU, where texts are padded, so many more tokens cost less than a second pass."""


def both_sides(
    scorer: DualEncoder, contexts: Ids, candidates: Ids, *, chunk_tokens: int | None
) -> tuple[CodeTensors, Tensor]:
    """The codes of the contexts and the vectors of the candidates, in one pass where one tower reads both."""
    if not scorer.siamese or _padding(contexts, candidates) > JOINED_PADDING:
        codes = context_codes(scorer, contexts, chunk_tokens=chunk_tokens)
        return codes, candidate_vectors(scorer, candidates, chunk_tokens=chunk_tokens)
    vectors = candidate_vectors(scorer, [*contexts, *candidates], chunk_tokens=chunk_tokens)
    left = vectors[: len(contexts)].unsqueeze(1)
    mask = torch.ones(left.shape[:2], dtype=torch.bool, device=left.device)
    return CodeTensors(left, mask), vectors[len(contexts) :]


def candidate_vectors(scorer: DualEncoder, ids: Ids, *, chunk_tokens: int | None) -> Tensor:
    """``[C, D]``: the vector of each candidate."""
    chunks, back = _chunks(ids, chunk_tokens)
    vectors = torch.cat([_run(scorer.candidate_vectors, chunk, chunk_tokens) for chunk in chunks])
    return vectors[back]


def context_codes(scorer: DualEncoder, ids: Ids, *, chunk_tokens: int | None) -> CodeTensors:
    """The codes of each context."""
    chunks, back = _chunks(ids, chunk_tokens)
    parts = [_run(scorer.context_codes, chunk, chunk_tokens) for chunk in chunks]
    most = max(part.mask.shape[1] for part in parts)
    vectors = torch.cat([filled_up(part.vectors, most) for part in parts])
    mask = torch.cat([filled_up(part.mask, most) for part in parts])
    return CodeTensors(vectors[back], mask[back])


def pair_outputs(scorer: CrossEncoder, pairs: Sequence[PairIds], *, chunk_tokens: int | None) -> Tensor:
    """``[N, k]``: the outputs for each pair."""
    order, back = _order([len(pair.ids) for pair in pairs], chunk_tokens)
    parts = [_run(scorer, [pairs[place] for place in chunk], chunk_tokens) for chunk in order]
    return torch.cat(parts)[back]


def _chunks(ids: Ids, chunk_tokens: int | None) -> tuple[list[Ids], list[int]]:
    """The texts, longest first, in chunks, and how to bring what comes out back into order."""
    order, back = _order([len(text) for text in ids], chunk_tokens)
    return [[ids[position] for position in chunk] for chunk in order], back


def _order(lengths: Sequence[int], chunk_tokens: int | None) -> tuple[list[list[int]], list[int]]:
    """Positions, longest first, in chunks, and how to bring what comes out back into order."""
    chunks = batches_by_tokens(lengths, sum(lengths) if chunk_tokens is None else chunk_tokens)
    order = [position for chunk in chunks for position in chunk]
    return chunks, sorted(range(len(order)), key=order.__getitem__)


def _run(forward: Callable[[Chunk], Result], chunk: Chunk, chunk_tokens: int | None) -> Result:
    """What ``forward`` gives; where chunks are wanted, nothing else of it is kept for the way back.

    That is gradient caching (Gao et al., 2021): a chunk is computed again, with the same dropout, when its
    gradient comes. torch's checkpointing does just that.
    """
    if chunk_tokens is None or not torch.is_grad_enabled():
        return forward(chunk)
    result: Result = checkpoint(forward, chunk, use_reentrant=False)
    return result


def _padding(left: Ids, right: Ids) -> int:
    """How many more tokens there are if the two are filled up to one length and not each to its own."""
    longest = [max(map(len, side)) for side in (left, right)]
    counts = [len(left), len(right)]
    return sum(counts) * max(longest) - sum(map(int.__mul__, counts, longest))


def filled_up(codes: Tensor, most: int) -> Tensor:
    """``[B, most, ...]``: zeros where there are fewer codes."""
    missing = codes.new_zeros(len(codes), most - codes.shape[1], *codes.shape[2:])
    return torch.cat([codes, missing], dim=1)
