"""Token ids to vectors with gradients, optionally with gradient caching."""

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from tercet.encoders.batches import batches_by_tokens
from tercet.scorers.codes import CodeTensors
from tercet.scorers.cross import CrossEncoder
from tercet.scorers.dual import DualEncoder, padded_codes
from tercet.text.pairs import PairIds

Ids: TypeAlias = Sequence[Sequence[int]]
Chunk = TypeVar("Chunk")
Result = TypeVar("Result")


JOINED_PADDING = 8192
"""On a GPU, where texts are padded, this many more tokens cost less than a second forward pass."""


def both_sides(
    scorer: DualEncoder, contexts: Ids, candidates: Ids, *, mini_batch_tokens: int | None
) -> tuple[CodeTensors, Tensor]:
    """The codes of contexts and the vectors of candidates, in one forward pass if they share a tower."""
    if not scorer.is_siamese or _padding(contexts, candidates) > JOINED_PADDING:
        codes = context_codes(scorer, contexts, mini_batch_tokens=mini_batch_tokens)
        return codes, candidate_vectors(scorer, candidates, mini_batch_tokens=mini_batch_tokens)
    vectors = candidate_vectors(scorer, [*contexts, *candidates], mini_batch_tokens=mini_batch_tokens)
    left = vectors[: len(contexts)].unsqueeze(1)
    mask = torch.ones(left.shape[:2], dtype=torch.bool, device=left.device)
    return CodeTensors(left, mask), vectors[len(contexts) :]


def candidate_vectors(scorer: DualEncoder, ids: Ids, *, mini_batch_tokens: int | None) -> Tensor:
    """``[C, D]``: the vector of each candidate."""
    chunks, back = _chunks(ids, mini_batch_tokens)
    vectors = torch.cat([_run(scorer.candidate_vectors, chunk, mini_batch_tokens) for chunk in chunks])
    return vectors[back]


def context_codes(scorer: DualEncoder, ids: Ids, *, mini_batch_tokens: int | None) -> CodeTensors:
    """The codes of each context."""
    chunks, back = _chunks(ids, mini_batch_tokens)
    parts = [_run(scorer.context_codes, chunk, mini_batch_tokens) for chunk in chunks]
    most = max(part.mask.shape[1] for part in parts)
    vectors = torch.cat([padded_codes(part.vectors, most) for part in parts])
    mask = torch.cat([padded_codes(part.mask, most) for part in parts])
    return CodeTensors(vectors[back], mask[back])


def pair_outputs(scorer: CrossEncoder, pairs: Sequence[PairIds], *, mini_batch_tokens: int | None) -> Tensor:
    """``[N, k]``: the outputs of each pair."""
    order, back = _order([len(pair.ids) for pair in pairs], mini_batch_tokens)
    parts = [_run(scorer, [pairs[position] for position in chunk], mini_batch_tokens) for chunk in order]
    return torch.cat(parts)[back]


def _chunks(ids: Ids, mini_batch_tokens: int | None) -> tuple[list[Ids], list[int]]:
    """The texts in chunks, longest first, and the permutation that restores their order."""
    order, back = _order([len(text) for text in ids], mini_batch_tokens)
    return [[ids[position] for position in chunk] for chunk in order], back


def _order(lengths: Sequence[int], mini_batch_tokens: int | None) -> tuple[list[list[int]], list[int]]:
    """Positions in chunks, longest first, and the permutation that restores their order."""
    chunks = batches_by_tokens(lengths, sum(lengths) if mini_batch_tokens is None else mini_batch_tokens)
    order = [position for chunk in chunks for position in chunk]
    return chunks, sorted(range(len(order)), key=order.__getitem__)


def _run(forward: Callable[[Chunk], Result], chunk: Chunk, mini_batch_tokens: int | None) -> Result:
    """The result of ``forward``; with mini-batches, no activations are stored for the backward pass.

    This is gradient caching (Gao et al., 2021): the backward pass computes a chunk again, with the same
    dropout. torch's checkpointing does exactly that.
    """
    if mini_batch_tokens is None or not torch.is_grad_enabled():
        return forward(chunk)
    result: Result = checkpoint(forward, chunk, use_reentrant=False)
    return result


def _padding(left: Ids, right: Ids) -> int:
    """The additional padding if both sides are padded to one length instead of each to its own."""
    longest = [max(map(len, side)) for side in (left, right)]
    counts = [len(left), len(right)]
    return sum(counts) * max(longest) - sum(map(int.__mul__, counts, longest))
