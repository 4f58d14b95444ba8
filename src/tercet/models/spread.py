"""How evenly a poly-encoder's two attentions are spread: their entropies, as shares of a flat one's.

Codes that take equally of all tokens are all the same mean, and candidates that take equally of all codes see
one vector: either way the poly-encoder has become a bi-encoder, which a ranking shows late or not at all.
"""

import torch
from torch import Tensor

from tercet.models.code_layer import CodeLayer, CodeTensors
from tercet.models.encoder import TokenStates
from tercet.models.match import attend


def evenness(weights: Tensor, counts: Tensor) -> Tensor:
    """``[...]``: 1 where weights are equal, 0 where one has everything.

    Args:
        weights: ``[..., N]``, which add up to 1.
        counts: ``[...]``, how many of them there are, at least 2; the others are 0.
    """
    entropy: Tensor = torch.special.entr(weights).sum(dim=-1)
    return entropy / counts.to(entropy).log()


def attention_evenness(layer: CodeLayer, tokens: TokenStates, candidates: Tensor) -> dict[str, Tensor]:
    """Of each context with several codes, and where codes are learnt, of each with several tokens.

    Args:
        layer: makes the codes.
        tokens: of the contexts.
        candidates: ``[C, D]``; each attends to the codes of each context.
    """
    with torch.autocast(candidates.device.type, enabled=False):
        codes: CodeTensors = layer(tokens)
        many = codes.mask.sum(dim=1) > 1
        weights = attend(codes.vectors[many], candidates, codes.mask[many], layer.candidate_scale()).weights
        found = {"code_entropy": evenness(weights, codes.mask[many].sum(dim=1, keepdim=True)).mean(dim=1)}
        if layer.codes is not None:
            many = tokens.mask.sum(dim=1) > 1
            weights = layer.attention(TokenStates(tokens.states[many], tokens.mask[many]))
            counts = tokens.mask[many].sum(dim=1, keepdim=True)
            found["token_entropy"] = evenness(weights, counts).mean(dim=1)
    return found
