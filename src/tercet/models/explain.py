"""Which codes and which tokens carried a poly-encoder's score.

    score = s Σ_i w_i d_i = s Σ_i w_i Σ_t A_it (h_t · c) = s Σ_t (Σ_i w_i A_it) (h_t · c)

is a sum over the codes and, written the other way, a sum over the tokens, because a code is an average of
token states: nothing is approximated.
"""

from typing import NamedTuple

from torch import Tensor

from tercet.models.match import attend


class Shares(NamedTuple):
    """Weights, which add up to 1, and contributions, which add up to the score."""

    weights: Tensor
    contributions: Tensor


def shares(
    states: Tensor, attention: Tensor, candidate: Tensor, *, scale: float | Tensor
) -> tuple[Shares, Shares]:
    """Those of the codes ``[M]``, and those of the tokens ``[T]``.

    Args:
        states: ``[T, D]`` of the context's tokens.
        attention: ``[M, T]``, how much of each token is in each code.
        candidate: ``[D]``
        scale: how sharply the candidate attends to the codes.
    """
    codes = attention @ states  # [M, D]
    weights = attend(codes.unsqueeze(0), candidate.unsqueeze(0), None, scale).weights[0, 0]  # [M]
    of_tokens = weights @ attention  # [T]
    return (
        Shares(weights, weights * (codes @ candidate)),
        Shares(of_tokens, of_tokens * (states @ candidate)),
    )
