"""How much of a data set a model has no room for."""

from collections.abc import Iterable, Sequence
from itertools import islice

from tercet.models.cross import CrossEncoder
from tercet.models.load import AnyScorer
from tercet.records import Lesson

WINDOW = 4096


def cut_shares(scorer: AnyScorer, lessons: Iterable[Lesson]) -> dict[str, float]:
    """The share of contexts and of candidates that lose tokens when ``scorer`` reads them."""
    counted = [0, 0]
    cut = [0, 0]
    remaining = iter(lessons)
    while window := list(islice(remaining, WINDOW)):
        for side, cuts in enumerate(_cuts(scorer, window)):
            counted[side] += len(cuts)
            cut[side] += sum(1 for tokens in cuts if tokens)
    return {name: cut[side] / max(counted[side], 1) for side, name in enumerate(("contexts", "candidates"))}


def _cuts(scorer: AnyScorer, lessons: Sequence[Lesson]) -> tuple[Sequence[int], Sequence[int]]:
    """Tokens that are cut of each context, and of each candidate."""
    texts = [text for lesson in lessons for text in lesson.candidates]
    if not isinstance(scorer, CrossEncoder):
        contexts = [lesson.context for lesson in lessons]
        return scorer.context_cuts(contexts).tolist(), scorer.candidate_cuts(texts).tolist()
    left = scorer.token_ids([lesson.context for lesson in lessons for _ in lesson.candidates], "context")
    right = scorer.token_ids(texts, "candidate")
    pairs = [scorer.pair_tokenizer.pair(*each) for each in zip(left, right, strict=True)]
    return [pair.context_cut for pair in pairs], [pair.candidate_cut for pair in pairs]
