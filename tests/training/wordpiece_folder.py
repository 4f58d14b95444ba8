"""A tiny bi-encoder with the kind of tokenizer that BERT's uncased models have."""

from pathlib import Path

import torch
from tokenizers import normalizers
from transformers import PreTrainedTokenizerFast

from tercet.data.rows import read_rows
from tercet.data.sample import PARALLEL, sample_path
from tercet.training.masked_lm import new_masked_lm
from tercet.training.vocabulary import make_tokenizer

PAIRS = [(row.columns["en"], row.columns["ko"]) for row in read_rows(sample_path(PARALLEL))]
ENGLISH = [english for english, _ in PAIRS]
KOREAN = [korean for _, korean in PAIRS]


def make_wordpiece_folder(folder: Path, *, width: int = 32, seed: int = 0) -> Path:
    """The folder of a random encoder that reads the English sample sentences, and no Korean."""
    tokenizer = make_tokenizer(ENGLISH, size=400, lowercase=True, max_tokens=64)
    assert isinstance(tokenizer, PreTrainedTokenizerFast)
    tokenizer.backend_tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    model = new_masked_lm(
        vocabulary=len(tokenizer), width=width, layers=2, heads=2, positions=64, padding=0, seed=seed
    )
    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(10)  # so that texts have different vectors
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
