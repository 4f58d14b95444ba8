"""A transformer as what it adds to another one: rows of the word table, and quantized differences.

The vectors of added tokens have 8 bits and a scale for each, matrices are differences in 4 bits, vectors are
differences in float32. The word vectors of the base stay as they are.
"""

from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from tercet.errors import InputError, ModelError
from tercet.formats.quantization import Bits, Quantized, can_quantize, dequantize, quantize

BITS: Bits = 4
LEVELS, SCALES = "words.levels", "words.scales"
ADDED = "added"


@torch.no_grad()
def extension_weights(transformer: PreTrainedModel, base: PreTrainedModel) -> dict[str, Tensor]:
    """What ``extend`` must add to ``base`` to obtain nearly ``transformer``."""
    words, known = (_words(each).weight.detach().cpu() for each in (transformer, base))
    if len(words) < len(known) or not torch.equal(words[: len(known)], known):
        raise InputError("an extension keeps the word vectors of its base, and these are others")
    new = words[len(known) :]
    scales = (new.abs().amax(dim=1, keepdim=True) / 127).clamp_min(2.0**-20).to(torch.float16)
    found = {LEVELS: (new / scales.float()).round().clamp(-127, 127).to(torch.int8), SCALES: scales}
    before = dict(base.named_parameters())
    for name, weight in transformer.named_parameters():
        if weight is _words(transformer).weight:
            continue
        added = weight.detach().cpu() - before[name]
        if bool(added.any()) and can_quantize(added):
            packed = quantize(added, BITS)._asdict()
            found |= {f"{name}.{part}": values for part, values in packed.items()}
        elif bool(added.any()):
            found[f"{name}.{ADDED}"] = added
    return found


@torch.no_grad()
def extend(transformer: PreTrainedModel, extension: dict[str, Tensor], folder: Path) -> None:
    """Add to a transformer what ``extension_weights`` returns.

    Args:
        folder: where the extension comes from, for errors.
    """
    weights = dict(transformer.named_parameters())
    names = {name.rpartition(".")[0] for name in extension.keys() - {LEVELS, SCALES}}
    try:
        _append_words(transformer, extension[LEVELS].float() * extension[SCALES].float())
        for name in names:
            if f"{name}.{ADDED}" in extension:
                weights[name].add_(extension[f"{name}.{ADDED}"])
            else:
                packed = Quantized(*(extension[f"{name}.{part}"] for part in Quantized._fields))
                weights[name].add_(dequantize(packed, BITS))
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise ModelError(f"the extension in {folder} does not fit its base model: {error}") from error


def _append_words(transformer: PreTrainedModel, rows: Tensor) -> None:
    words = _words(transformer)
    weight = torch.cat([words.weight, rows])
    embedding = nn.Embedding.from_pretrained(weight, freeze=False, padding_idx=words.padding_idx)
    transformer.set_input_embeddings(embedding)
    transformer.config.vocab_size = len(weight)


def _words(transformer: PreTrainedModel) -> nn.Embedding:
    embedding = transformer.get_input_embeddings()
    if not isinstance(embedding, nn.Embedding):
        raise InputError(f"an extension needs a word table, and this is a {type(embedding).__name__}")
    return embedding
