"""Proposers of words: WordNet, a masked language model, an encoder's embedding table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize
from transformers import AutoModelForMaskedLM

from tercet.augment.wordnet import WordNet
from tercet.errors import ModelError
from tercet.formats.tokenizer import read_tokenizer
from tercet.formats.transformer import read_encoder, read_transformer

WORD_STARTS = ("Ġ", "▁")
"""Prefixes of tokens that start a word, in byte-level BPE and SentencePiece."""

MOST_LIKELY = 10
"""Number of most likely words from which one is drawn."""


class Synonyms:
    """The words of WordNet's first sense."""

    def __init__(self, folder: Path) -> None:
        self._wordnet = WordNet(folder)

    def replacements(self, pieces: Sequence[str], position: int) -> Sequence[str]:
        """Synonyms of the word, independent of its surroundings."""
        return self._wordnet.synonyms(pieces[position])

    def insertions(self, pieces: Sequence[str], position: int) -> Sequence[str]:
        """None: a synonym next to its word would repeat it."""
        return ()


class MaskedWords:
    """The predictions of a masked language model."""

    def __init__(self, folder: Path, *, count: int = MOST_LIKELY) -> None:
        self._model, report = read_transformer(folder, AutoModelForMaskedLM)
        if any("predictions" in name or "lm_head" in name for name in report.missing):
            raise ModelError(
                f"{folder} has no masked-LM head: give a masked language model, such as one of `tercet "
                "pretrain`, or none, to use the encoder's embedding table"
            )
        self._tokenizer = read_tokenizer(folder)
        self._count = count
        self._words = whole_words(self._tokenizer.convert_ids_to_tokens(list(range(len(self._tokenizer)))))

    def replacements(self, pieces: Sequence[str], position: int) -> Sequence[str]:
        """The most likely words at the position if its word is masked."""
        return self._read([*pieces[:position], self._tokenizer.mask_token, *pieces[position + 1 :]])

    def insertions(self, pieces: Sequence[str], position: int) -> Sequence[str]:
        """The most likely words between the word and the one before it."""
        return self._read(
            [*pieces[:position], f"{self._tokenizer.mask_token} {pieces[position]}", *pieces[position + 1 :]]
        )

    @torch.inference_mode()
    def _read(self, pieces: Sequence[str]) -> list[str]:
        read = self._tokenizer("".join(pieces), truncation=True, return_tensors="pt")
        gaps = (read.input_ids[0] == self._tokenizer.mask_token_id).nonzero()
        if not len(gaps):
            return []  # truncated
        logits: Tensor = self._model(**read).logits[0, int(gaps[0])]
        return best_words(logits, self._words, self._count)


class NearWords:
    """The nearest words in an encoder's embedding table; insertions resemble the word that follows."""

    def __init__(self, folder: Path, *, count: int = MOST_LIKELY) -> None:
        tokenizer = read_tokenizer(folder)
        self._count = count
        self._words = whole_words(tokenizer.convert_ids_to_tokens(list(range(len(tokenizer)))))
        self._positions = {word: position for position, word in self._words.items()}
        table: Any = read_encoder(folder).transformer.get_input_embeddings()
        self._table = normalize(table.weight.detach(), dim=-1)

    def replacements(self, pieces: Sequence[str], position: int) -> Sequence[str]:
        """The nearest words, if the word is in the table."""
        word = pieces[position].casefold()
        if word not in self._positions:
            return []
        near = best_words(self._table @ self._table[self._positions[word]], self._words, self._count + 1)
        return [other for other in near if other != word]

    def insertions(self, pieces: Sequence[str], position: int) -> Sequence[str]:
        """As ``instead``: words close to the one that follows."""
        return self.replacements(pieces, position)


def whole_words(tokens: Sequence[str]) -> dict[int, str]:
    """The tokens that are complete alphabetic words, by id."""
    marked = any(token.startswith(WORD_STARTS) for token in tokens)
    found: dict[int, str] = {}
    for position, token in enumerate(tokens):
        word = token[1:] if token.startswith(WORD_STARTS) else token
        # WordPiece marks continuations by ##, which is not alphabetic
        if (word != token or not marked) and word.isalpha() and len(word) > 1:
            found[position] = word
    return found


def best_words(scores: Tensor, words: dict[int, str], count: int) -> list[str]:
    """The ``count`` words with the highest scores ``[V]``, best first."""
    positions = np.fromiter(words, dtype=np.int64)
    held = scores[torch.from_numpy(positions)]
    best = held.topk(min(count, len(positions))).indices.tolist()
    return [words[int(positions[position])] for position in best]
