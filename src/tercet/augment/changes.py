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


def change_words(gold: Sequence[Lesson], change: Change, config: WordConfig) -> list[Silver]:
    """Gold pairs with words of one or both texts changed, and gold's score."""
    rows = list(changed_pairs(gold, change, config, proposer_of(change, config)))
    if config.least_similarity > 0:
        rows = alike(rows, gold, config)
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


def alike(rows: Sequence[Silver], gold: Sequence[Lesson], config: WordConfig) -> list[Silver]:
    """The rows whose texts are both close enough to those they were made of."""
    scorer = load(config.encoder)
    parents = [gold[row.parents[0]] for row in rows]
    left = scorer.score_pairs([as_text(each.context) for each in parents], [row.context for row in rows])
    right = scorer.score_pairs([each.candidates[0] for each in parents], [row.candidate for row in rows])
    close = np.minimum(left, right) >= config.least_similarity
    return [row for row, is_close in zip(rows, close.tolist(), strict=True) if is_close]
