"""How much a model has to process, in texts or pairs, which is known before it starts."""

from typing import TYPE_CHECKING

from tercet.records import as_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tercet.records import Context
    from tercet.scorers.loaded import LoadedScorer


def work_of_all(scorer: "LoadedScorer", contexts: "Sequence[Context]", candidates: "Sequence[str]") -> int:
    """The texts or pairs that are processed to score every context against every candidate."""
    if scorer.kind == "cross":
        return _directions(scorer) * len(contexts) * len(candidates)
    return _directions(scorer) * (len(contexts) + len(candidates))


def work_of_pairs(scorer: "LoadedScorer", contexts: "Sequence[Context]", candidates: "Sequence[str]") -> int:
    """As ``work_of_all``, for each context and the candidate at its position; equal texts count once."""
    if scorer.kind == "cross":
        return _directions(scorer) * len(contexts)
    return _directions(scorer) * (len(set(map(as_text, contexts))) + len(set(candidates)))


def _directions(scorer: "LoadedScorer") -> int:
    """2 if the texts of a pair are also exchanged."""
    from tercet.scorers.cross_scorer import CrossScorer

    symmetric = scorer.config.symmetric if isinstance(scorer, CrossScorer) else scorer.is_symmetric
    return 2 if symmetric else 1
