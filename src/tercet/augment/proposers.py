"""Who proposes words: WordNet, a masked language model, an encoder's table of words."""

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
from tercet.models.encoder import read_encoder, read_transformer
from tercet.models.tokenizer import read_tokenizer

WORD_STARTS = ("Ġ", "▁")
"""How byte-level BPE and SentencePiece mark a token that begins a word."""

BEST = 10
"""Among so many of the likeliest words one is drawn."""


class Synonyms:
    """The words of WordNet's first sense."""

    def __init__(self, folder: Path) -> None:
        self._wordnet = WordNet(folder)

    def instead(self, pieces: Sequence[str], place: int) -> Sequence[str]:
        """Synonyms of the word, whatever stands around it."""
        return self._wordnet.synonyms(pieces[place])

    def before(self, pieces: Sequence[str], place: int) -> Sequence[str]:
        """None: a synonym beside its word says it twice."""
        return ()


class MaskedWords:
    """What a masked language model reads in a gap."""

    def __init__(self, folder: Path, *, best: int = BEST) -> None:
        self._model, report = read_transformer(folder, AutoModelForMaskedLM)
        if any("predictions" in name or "lm_head" in name for name in report.missing):
            raise ModelError(
                f"{folder} has no head that predicts words: give a masked language model, such as one "
                "that `tercet pretrain` made, or none, and the encoder's own table is used"
            )
        self._tokenizer = read_tokenizer(folder)
        self._best = best
        self._words = whole_words(self._tokenizer.convert_ids_to_tokens(list(range(len(self._tokenizer)))))

    def instead(self, pieces: Sequence[str], place: int) -> Sequence[str]:
        """What fits the place better than other words, the word itself left out."""
        return self._read([*pieces[:place], self._tokenizer.mask_token, *pieces[place + 1 :]])

    def before(self, pieces: Sequence[str], place: int) -> Sequence[str]:
        """What fits between the word and the one before it."""
        return self._read(
            [*pieces[:place], f"{self._tokenizer.mask_token} {pieces[place]}", *pieces[place + 1 :]]
        )

    @torch.inference_mode()
    def _read(self, pieces: Sequence[str]) -> list[str]:
        read = self._tokenizer("".join(pieces), truncation=True, return_tensors="pt")
        gaps = (read.input_ids[0] == self._tokenizer.mask_token_id).nonzero()
        if not len(gaps):
            return []  # cut away
        logits: Tensor = self._model(**read).logits[0, int(gaps[0])]
        return best_words(logits, self._words, self._best)


class NearWords:
    """The words that lie nearest in an encoder's table; insertions are near the word that follows."""

    def __init__(self, folder: Path, *, best: int = BEST) -> None:
        tokenizer = read_tokenizer(folder)
        self._best = best
        self._words = whole_words(tokenizer.convert_ids_to_tokens(list(range(len(tokenizer)))))
        self._places = {word: place for place, word in self._words.items()}
        table: Any = read_encoder(folder).transformer.get_input_embeddings()
        self._table = normalize(table.weight.detach(), dim=-1)

    def instead(self, pieces: Sequence[str], place: int) -> Sequence[str]:
        """The words nearest to the word; none if it is no word of the table."""
        word = pieces[place].casefold()
        if word not in self._places:
            return []
        near = best_words(self._table @ self._table[self._places[word]], self._words, self._best + 1)
        return [other for other in near if other != word]

    def before(self, pieces: Sequence[str], place: int) -> Sequence[str]:
        """As ``instead``: something close to what is said anyway."""
        return self.instead(pieces, place)


def whole_words(tokens: Sequence[str]) -> dict[int, str]:
    """The tokens that are words of letters by themselves, by their ids."""
    marked = any(token.startswith(WORD_STARTS) for token in tokens)
    found: dict[int, str] = {}
    for place, token in enumerate(tokens):
        word = token[1:] if token.startswith(WORD_STARTS) else token
        # WordPiece marks what goes on a word instead, by ##, which is no letter
        if (word != token or not marked) and word.isalpha() and len(word) > 1:
            found[place] = word
    return found


def best_words(scores: Tensor, words: dict[int, str], count: int) -> list[str]:
    """The ``count`` words with the highest scores ``[V]``, best first."""
    places = np.fromiter(words, dtype=np.int64)
    held = scores[torch.from_numpy(places)]
    best = held.topk(min(count, len(places))).indices.tolist()
    return [words[int(places[place])] for place in best]
