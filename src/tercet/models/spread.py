"""How evenly a poly-encoder's two attentions are spread: their entropies, as shares of a flat one's.

Codes that take equally of all tokens are all the same mean, and candidates that take equally of all codes see
one vector: either way the poly-encoder has become a bi-encoder, which a ranking shows late or not at all.
"""

import torch
from torch import Tensor


def evenness(weights: Tensor, counts: Tensor) -> Tensor:
    """``[...]``: 1 where weights are equal, 0 where one has everything.

    Args:
        weights: ``[..., N]``, which add up to 1.
        counts: ``[...]``, how many of them there are, the others being 0; of a single one it is 0.
    """
    entropy: Tensor = torch.special.entr(weights).sum(dim=-1)
    return entropy / counts.clamp(min=2).to(entropy).log()
