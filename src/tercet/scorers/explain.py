"""The exact contributions of tokens to the scores of poly- and bi-encoders.

The score of a poly-encoder,

    score = s Σ_i w_i d_i = s Σ_i w_i Σ_t A_it (h_t · c) = s Σ_t (Σ_i w_i A_it) (h_t · c)

is a sum over the codes and also a sum over the tokens, because a code is an average of token states. The
vectors of a bi-encoder are sums of parts of their tokens, u = Σ_t u_t and v = Σ_t v_t, so its score

    score = u·v / (|u| |v|) = Σ_t (u_t · v) / (|u| |v|) = Σ_t (u · v_t) / (|u| |v|)

is a sum over the tokens of the context, and also over those of the candidate. Without the norms, this holds
for the dot product. Nothing is approximated.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tercet.records import CodeShare, Explanation, ExplanationMethod, Floats, TokenShare
from tercet.scorers.finite import finite_scores, finite_vectors
from tercet.scorers.numpy_layers import norms, softmax
from tercet.settings.models import SIDES, PoolingConfig
from tercet.text.tokenizer import Passage, Piece


class Shares(NamedTuple):
    """The weights of codes ``[M]`` and tokens ``[T]``, which sum to 1, and their parts of the score.

    ``attention`` is ``[M, T]``: the weight of each token in each code.
    """

    code_weights: Floats
    code_parts: Floats
    token_weights: Floats
    token_parts: Floats
    attention: Floats


def shares(
    states: Floats,
    attention: Floats,
    candidate: Floats,
    *,
    scale: float,
    logit_scale: float,
    unit_codes: bool = False,
) -> Shares:
    """The contribution of each code and each token to a score.

    Args:
        states: ``[T, D]`` of the context's tokens.
        attention: ``[M, T]``, the weight of each token in each code.
        candidate: ``[D]``
        scale: multiplies the logits of the candidate's attention over the codes.
        logit_scale: ``s``
        unit_codes: whether codes are normalized; the contributions of tokens are then divided too.
    """
    given = attention / norms(attention @ states)[:, None] if unit_codes else attention
    codes = given @ states  # [M, D]
    weights = softmax((np.float32(scale) * (codes @ candidate)).astype(np.float32))  # [M]
    of_tokens = weights @ attention  # [T]
    found = (
        weights,
        logit_scale * weights * (codes @ candidate),
        of_tokens,
        logit_scale * (weights @ given) * (states @ candidate),
        attention,
    )
    return Shares(*(finite_scores(values.astype(np.float32)) for values in found))


def by_characters(found: Shares, pieces: Sequence[Piece]) -> tuple[Shares, list[Piece]]:
    """The shares with pieces of the same characters merged, and the merged pieces."""
    starts = _starts(pieces)
    weights, parts, attention = (
        np.add.reduceat(values, starts, axis=-1)
        for values in (found.token_weights, found.token_parts, found.attention)
    )
    merged = found._replace(token_weights=weights, token_parts=parts, attention=attention)
    return merged, [pieces[position] for position in starts]


def code_shares(found: Shares) -> tuple[CodeShare, ...]:
    """The shares of the codes, in order."""
    pairs = zip(found.code_weights.tolist(), found.code_parts.tolist(), strict=True)
    return tuple(CodeShare(position, weight, part) for position, (weight, part) in enumerate(pairs))


def token_shares(found: Shares, pieces: Sequence[Piece]) -> tuple[TokenShare, ...]:
    """The shares of the tokens, in order."""
    rows = zip(pieces, found.token_weights.tolist(), found.token_parts.tolist(), strict=True)
    return tuple(TokenShare(piece.text, piece.start, piece.end, weight, part) for piece, weight, part in rows)


class ExplainedSide(NamedTuple):
    """The tokens of a text, their parts of its vector, ``[T, D]``, and how many tokens were truncated."""

    parts: Floats
    pieces: list[Piece]
    truncated: int


def similarity_parts(left: Floats, right: Floats, *, cosine: bool) -> tuple[Floats, Floats]:
    """The contributions of the tokens of two texts to their similarity; each adds up to it.

    Args:
        left: ``[S, D]``, the parts of the tokens in the vector of the first text.
        right: ``[T, D]``, the same for the second text.
    """
    for parts in (left, right):
        finite_vectors(parts.sum(axis=0))  # in double precision, nothing would overflow
    first, second = (parts.sum(axis=0, dtype=np.float64) for parts in (left, right))
    norm = max(float(np.linalg.norm(first)), 1e-12) * max(float(np.linalg.norm(second)), 1e-12)
    found = left.astype(np.float64) @ second, right.astype(np.float64) @ first
    scores = [each / norm if cosine else each for each in found]
    return finite_scores(scores[0]), finite_scores(scores[1])


def merged_shares(parts: Floats, pieces: Sequence[Piece]) -> tuple[TokenShare, ...]:
    """The contributions of the tokens, in order; those of pieces of the same characters are merged."""
    starts = _starts(pieces)
    kept = [pieces[position] for position in starts]
    merged = np.add.reduceat(parts, starts)
    return tuple(
        TokenShare(piece.text, piece.start, piece.end, None, part)
        for piece, part in zip(kept, merged.tolist(), strict=True)
    )


def single_token_notes(context: PoolingConfig, candidate: PoolingConfig) -> tuple[str, ...]:
    """A note for each side whose vector is the state of a single token."""
    return tuple(
        f"the vector of a {side} is the state of its {pooling.kinds[0]} token, so that token has the whole "
        "score: leave words out (leave_one_out=True, --leave-one-out) to see what the others contribute"
        for side, pooling in zip(SIDES, (context, candidate), strict=True)
        if pooling.kinds in (("first",), ("last",))
    )


def explain_bi(
    passages: Sequence[Passage],
    left: ExplainedSide,
    right: ExplainedSide,
    *,
    cosine: bool,
    poolings: tuple[PoolingConfig, PoolingConfig],
) -> Explanation:
    """The explanation of a bi-encoder's score; ``passages`` are context and candidate."""
    parts = similarity_parts(left.parts, right.parts, cosine=cosine)
    tokens = merged_shares(parts[0], left.pieces)
    return Explanation(
        context=passages[0].text,
        candidate=passages[1].text,
        score=float(parts[0].sum()),
        method=ExplanationMethod.EXACT,
        codes=(),
        tokens=tokens,
        candidate_tokens=merged_shares(parts[1], right.pieces),
        attention=np.empty((0, len(tokens)), dtype=np.float32),
        context_truncated=left.truncated,
        candidate_truncated=right.truncated,
        notes=single_token_notes(*poolings),
    )


def explain_poly(
    passages: Sequence[Passage], found: Shares, pieces: Sequence[Piece], truncated: tuple[int, int]
) -> Explanation:
    """The explanation of a poly-encoder's score.

    Args:
        passages: context and candidate.
        pieces: the tokens of the context.
        truncated: how many tokens of context and candidate were truncated.
    """
    found, merged = by_characters(found, pieces)
    return Explanation(
        context=passages[0].text,
        candidate=passages[1].text,
        score=float(found.code_parts.sum()),
        method=ExplanationMethod.EXACT,
        codes=code_shares(found),
        tokens=token_shares(found, merged),
        attention=found.attention,
        context_truncated=truncated[0],
        candidate_truncated=truncated[1],
    )


def _starts(pieces: Sequence[Piece]) -> list[int]:
    """The positions of the pieces whose characters differ from those of the piece before."""
    return [
        position
        for position, piece in enumerate(pieces)
        if position == 0 or piece.start == piece.end or piece != pieces[position - 1]
    ]
