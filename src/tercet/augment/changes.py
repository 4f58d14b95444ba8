"""Gold pairs with changed words, filtered by similarity to the originals."""

from collections.abc import Callable, Sequence

import numpy as np

from tercet.augment.proposers import MaskedWords, NearWords, Synonyms
from tercet.augment.silver import Silver
from tercet.augment.wordnet import wordnet_folder
from tercet.augment.words import Proposer, changed_pairs
from tercet.errors import DataError
from tercet.formats.load import load
from tercet.formats.sources import resolve_model
from tercet.records import Example, as_text
from tercet.settings.augment import WordChange, WordsConfig
from tercet.similar import unit_text_vectors


def change_words(
    gold: Sequence[Example], change: WordChange, config: WordsConfig, *, device: str | None = None
) -> list[Silver]:
    """Gold pairs with words of one or both texts changed, with the gold score."""
    rows = list(changed_pairs(gold, change, config, PROPOSERS[change](config)))
    if config.min_similarity > -1 and rows:
        rows = similar_enough(rows, gold, config, device=device)
    if not rows:
        raise DataError(
            f"{change} changed none of {len(gold)} pairs: raise rate, lower min_similarity, or choose "
            "another change"
        )
    return rows


def similar_enough(
    rows: Sequence[Silver], gold: Sequence[Example], config: WordsConfig, *, device: str | None = None
) -> list[Silver]:
    """The rows whose texts are both similar enough to the originals."""
    parents = [gold[row.parents[0]] for row in rows]
    old = [text for each in parents for text in (as_text(each.context), each.candidates[0])]
    new = [text for row in rows for text in (row.context, row.candidate)]
    scorer = load(config.encoder, device=device, runtime="torch")
    cosines = np.einsum("nd,nd->n", unit_text_vectors(scorer, old), unit_text_vectors(scorer, new))
    close = cosines.reshape(-1, 2).min(axis=1) >= config.min_similarity
    return [row for row, is_close in zip(rows, close.tolist(), strict=True) if is_close]


def _no_proposer(config: WordsConfig) -> None:
    return None


def _synonyms(config: WordsConfig) -> Proposer:
    return Synonyms(wordnet_folder(config.wordnet))


def _language_model(config: WordsConfig) -> Proposer:
    if config.language_model:
        return MaskedWords(resolve_model(config.language_model))
    return NearWords(resolve_model(config.encoder))


PROPOSERS: dict[WordChange, Callable[[WordsConfig], Proposer | None]] = {
    "synonyms": _synonyms,
    "substitution": _language_model,
    "insertion": _language_model,
    "deletion": _no_proposer,
    "swap": _no_proposer,
}
"""What proposes words for each change."""
