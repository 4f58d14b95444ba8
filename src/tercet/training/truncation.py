"""How much of a data set a model truncates."""

from collections.abc import Iterable, Sequence
from itertools import islice

from tercet.records import Example
from tercet.scorers.dual_scorer import DualScorer
from tercet.scorers.loaded import LoadedScorer

WINDOW = 4096


def truncated_shares(scorer: LoadedScorer, examples: Iterable[Example]) -> dict[str, float]:
    """The shares of contexts and of candidates that are longer than the model's maximum length."""
    total = {"contexts": 0, "candidates": 0}
    truncated = {"contexts": 0, "candidates": 0}
    remaining = iter(examples)
    while window := list(islice(remaining, WINDOW)):
        for side, tokens in zip(total, _truncated_tokens(scorer, window), strict=True):
            total[side] += len(tokens)
            truncated[side] += sum(1 for count in tokens if count)
    return {side: truncated[side] / max(total[side], 1) for side in total}


def _truncated_tokens(
    scorer: LoadedScorer, examples: Sequence[Example]
) -> tuple[Sequence[int], Sequence[int]]:
    """Truncated tokens of each context, and of each candidate; a cross-encoder truncates pairs."""
    texts = [text for example in examples for text in example.candidates]
    if isinstance(scorer, DualScorer):
        contexts = scorer.truncated_tokens([example.context for example in examples], "context")
        return contexts.tolist(), scorer.truncated_tokens(texts, "candidate").tolist()
    left = scorer.token_ids([example.context for example in examples for _ in example.candidates], "context")
    right = scorer.token_ids(texts, "candidate")
    pairs = [scorer.pair_tokenizer.pair(*each) for each in zip(left, right, strict=True)]
    return [pair.context_truncated for pair in pairs], [pair.candidate_truncated for pair in pairs]
