"""A word table whose first rows are frozen, and whose new rows are trained."""

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding
from transformers import PreTrainedModel

from tercet.errors import InputError


class GrownEmbedding(nn.Module):
    """The rows of ``known``, which stay as they are, followed by new ones.

    Only the new rows have gradients, moments of the optimizer and a place in checkpoints.
    """

    def __init__(self, known: nn.Embedding, new: Tensor) -> None:
        super().__init__()
        self.known = known.requires_grad_(False)
        self.new = nn.Parameter(new)

    @property
    def weight(self) -> Tensor:
        """``[V, D]``: all rows."""
        return torch.cat([self.known.weight, self.new])

    def forward(self, ids: Tensor) -> Tensor:
        """``[...]`` to ``[..., D]``"""
        count = len(self.known.weight)
        is_new = ids >= count
        known: Tensor = self.known(ids.masked_fill(is_new, 0))
        return torch.where(is_new.unsqueeze(-1), embedding((ids - count).clamp_min(0), self.new), known)


def word_vectors(transformer: PreTrainedModel) -> nn.Embedding:
    """The word table of a transformer."""
    words = transformer.get_input_embeddings()
    if not isinstance(words, nn.Embedding):
        raise InputError(f"new pieces need a word table, and this model has a {type(words).__name__}")
    return words


def grow(transformer: PreTrainedModel, new: Tensor) -> None:
    """Append new rows to the word table, the only ones of it that are trained from now on."""
    words = word_vectors(transformer)
    transformer.set_input_embeddings(GrownEmbedding(words, new.to(words.weight.device)))
    transformer.config.vocab_size = len(words.weight) + len(new)


@torch.no_grad()
def merge(transformer: PreTrainedModel) -> None:
    """Make one plain table of a grown one, so that the model can be saved."""
    words = transformer.get_input_embeddings()
    if isinstance(words, GrownEmbedding):
        whole = nn.Embedding.from_pretrained(words.weight, freeze=False, padding_idx=words.known.padding_idx)
        transformer.set_input_embeddings(whole)
