"""Gold with other words: who proposes them, and whether texts still mean the same."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tercet.augment.proposers import MaskedWords, NearWords, Synonyms
from tercet.augment.silver import Silver
from tercet.augment.words import Change, Proposer, WordConfig, changed_pairs
from tercet.errors import DataError
from tercet.models.load import load
from tercet.models.sources import find_folder
from tercet.records import Lesson, as_text
from tercet.similar import unit_vectors


def change_words(
    gold: Sequence[Lesson], change: Change, config: WordConfig, *, device: str | None = None
) -> list[Silver]:
    """Gold pairs with words of one or both texts changed, and gold's score."""
    rows = list(changed_pairs(gold, change, config, proposer_of(change, config)))
    if config.least_similarity > -1 and rows:
        rows = alike(rows, gold, config, device=device)
    if not rows:
        raise DataError(
            f"{change} made nothing new of {len(gold)} pairs: raise rate, lower least_similarity, or "
            "choose another change"
        )
    return rows


def proposer_of(change: Change, config: WordConfig) -> Proposer | None:
    """Who proposes words for a change; nobody where none are needed."""
    if change in ("deletion", "swap"):
        return None
    if change == "synonyms":
        return Synonyms(Path(config.wordnet))
    if config.language_model:
        return MaskedWords(find_folder(config.language_model))
    return NearWords(find_folder(config.encoder))


def alike(
    rows: Sequence[Silver], gold: Sequence[Lesson], config: WordConfig, *, device: str | None = None
) -> list[Silver]:
    """The rows whose texts are both close enough to those they were made of."""
    parents = [gold[row.parents[0]] for row in rows]
    old = [text for each in parents for text in (as_text(each.context), each.candidates[0])]
    new = [text for row in rows for text in (row.context, row.candidate)]
    scorer = load(config.encoder, device=device)
    cosines = np.einsum("nd,nd->n", unit_vectors(scorer, old), unit_vectors(scorer, new))
    close = cosines.reshape(-1, 2).min(axis=1) >= config.least_similarity
    return [row for row, is_close in zip(rows, close.tolist(), strict=True) if is_close]
