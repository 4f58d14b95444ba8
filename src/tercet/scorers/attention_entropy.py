"""Normalized entropies of a poly-encoder's two attentions.

If codes attend uniformly to the tokens, all of them equal the mean. If candidates attend uniformly to the
codes, they see a single vector. In both cases the poly-encoder has collapsed to a bi-encoder.
"""

import torch
from torch import Tensor

from tercet.encoders.encoder import TokenStates
from tercet.scorers.codes import CodeLayer, CodeTensors
from tercet.scorers.match import attend


def normalized_entropy(weights: Tensor, counts: Tensor) -> Tensor:
    """``[...]``: 1 for equal weights, 0 if one weight is 1.

    Args:
        weights: ``[..., N]``, which sum to 1.
        counts: ``[...]``, how many of the weights exist, at least 2; the others are 0.
    """
    entropy: Tensor = torch.special.entr(weights).sum(dim=-1)
    return entropy / counts.to(entropy).log()


def normalized_entropies(layer: CodeLayer, tokens: TokenStates, candidates: Tensor) -> dict[str, Tensor]:
    """``code_entropy`` of contexts with several codes; with learnt codes also ``token_entropy``.

    Args:
        layer: computes the codes.
        tokens: the states of the contexts.
        candidates: ``[C, D]``; each attends over the codes of each context.
    """
    with torch.autocast(candidates.device.type, enabled=False):
        codes: CodeTensors = layer(tokens)
        many = codes.mask.sum(dim=1) > 1
        weights = attend(codes.vectors[many], candidates, codes.mask[many], layer.candidate_scale()).weights
        found = {
            "code_entropy": normalized_entropy(weights, codes.mask[many].sum(dim=1, keepdim=True)).mean(dim=1)
        }
        if layer.codes is not None:
            many = tokens.mask.sum(dim=1) > 1
            weights = layer.attention(TokenStates(tokens.states[many], tokens.mask[many]))
            counts = tokens.mask[many].sum(dim=1, keepdim=True)
            found["token_entropy"] = normalized_entropy(weights, counts).mean(dim=1)
    return found
