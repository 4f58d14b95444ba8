"""Which codes and which tokens carried a poly-encoder's score.

    score = s Σ_i w_i d_i = s Σ_i w_i Σ_t A_it (h_t · c) = s Σ_t (Σ_i w_i A_it) (h_t · c)

is a sum over the codes and, written the other way, a sum over the tokens, because a code is an average of
token states: nothing is approximated.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from torch import Tensor
from torch.linalg import vector_norm

from tercet.models.match import attend
from tercet.models.tokenizer import Piece
from tercet.records import CodeShare, Floats, TokenShare


class Shares(NamedTuple):
    """Of codes ``[M]`` and tokens ``[T]``: weights, which add up to 1, and parts, which add up to the score.

    ``attention`` is ``[M, T]``: how much of each token is in each code.
    """

    code_weights: Floats
    code_parts: Floats
    token_weights: Floats
    token_parts: Floats
    attention: Floats


def shares(
    states: Tensor,
    attention: Tensor,
    candidate: Tensor,
    *,
    scale: float,
    logit_scale: float,
    unit_codes: bool = False,
) -> Shares:
    """What each code and each token gave to a score.

    Args:
        states: ``[T, D]`` of the context's tokens.
        attention: ``[M, T]``, how much of each token is in each code.
        candidate: ``[D]``
        scale: how sharply the candidate attends to the codes.
        logit_scale: ``s``
        unit_codes: whether codes are divided by their lengths; then so is what each token gives to them.
    """
    given = attention / vector_norm(attention @ states, dim=-1, keepdim=True) if unit_codes else attention
    codes = given @ states  # [M, D]
    weights = attend(codes.unsqueeze(0), candidate.unsqueeze(0), None, scale).weights[0, 0]  # [M]
    of_tokens = weights @ attention  # [T]
    found = (
        weights,
        logit_scale * weights * (codes @ candidate),
        of_tokens,
        logit_scale * (weights @ given) * (states @ candidate),
        attention,
    )
    return Shares(*(values.cpu().numpy() for values in found))


def by_characters(found: Shares, pieces: Sequence[Piece]) -> tuple[Shares, list[Piece]]:
    """The shares of pieces that stand for the same characters added up, and one piece for each of them."""
    starts = [
        place
        for place, piece in enumerate(pieces)
        if place == 0 or piece.start == piece.end or piece != pieces[place - 1]
    ]
    weights, parts, attention = (
        np.add.reduceat(values, starts, axis=-1)
        for values in (found.token_weights, found.token_parts, found.attention)
    )
    merged = found._replace(token_weights=weights, token_parts=parts, attention=attention)
    return merged, [pieces[place] for place in starts]


def code_shares(found: Shares) -> tuple[CodeShare, ...]:
    """The codes, in their order."""
    pairs = zip(found.code_weights.tolist(), found.code_parts.tolist(), strict=True)
    return tuple(CodeShare(position, weight, part) for position, (weight, part) in enumerate(pairs))


def token_shares(found: Shares, pieces: Sequence[Piece]) -> tuple[TokenShare, ...]:
    """The tokens, in their order."""
    rows = zip(pieces, found.token_weights.tolist(), found.token_parts.tolist(), strict=True)
    return tuple(TokenShare(piece.text, piece.start, piece.end, weight, part) for piece, weight, part in rows)
