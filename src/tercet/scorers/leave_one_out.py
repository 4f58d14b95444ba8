"""The contributions of words to the score of any scorer, by leaving each of them out.

    contribution(w) = score(all words) − score(all words but w)

This is an approximation: words that say the same thing hide each other, so the contributions do not add up to
the score.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tercet.records import Context, Explanation, ExplanationMethod, Floats, TokenShare
from tercet.settings.models import Side
from tercet.text.words import Span, grouped, without_span, word_spans

MAX_WORDS = 200
"""Words of a text that are left out one by one. Longer texts lose several neighbouring words at a time."""

PairScores = Callable[[Sequence[Context], Sequence[str]], Floats]


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoredPair:
    """A context and a candidate, their score, and how the scorer reads them.

    ``separator`` joins the turns of the context. ``context_span`` and ``candidate_span`` are the characters
    that were not truncated.
    """

    context: Context
    candidate: str
    score: float
    separator: str
    context_span: Span
    candidate_span: Span
    context_truncated: int
    candidate_truncated: int

    def read_of_context(self, length: int) -> Span:
        """The characters of the joined context that the scorer reads: all if nothing was truncated."""
        return self.context_span if self.context_truncated else (0, length)

    def read_of_candidate(self) -> Span:
        """The characters of the candidate that the scorer reads: all if nothing was truncated."""
        return self.candidate_span if self.candidate_truncated else (0, len(self.candidate))


class LeftOut(NamedTuple):
    """The characters of a text that are scored, the spans to leave out, and a note on words that are not."""

    read: Span
    spans: list[Span]
    note: str

    def moved(self) -> list[Span]:
        """The spans in the part of the text that is scored."""
        return [(start - self.read[0], end - self.read[0]) for start, end in self.spans]


def explain_by_leaving_out(pair: ScoredPair, pair_scores: PairScores) -> Explanation:
    """The contributions of the words of both texts.

    Args:
        pair_scores: ``[B]``, the score of each context and the candidate at its position.
    """
    turns = [pair.context] if isinstance(pair.context, str) else list(pair.context)
    text = pair.separator.join(turns)
    left = _left_out("context", _turn_words(turns, pair.separator), pair.read_of_context(len(text)))
    right = _left_out("candidate", word_spans(pair.candidate), pair.read_of_candidate())
    context = _within(pair.context, left.read, pair.separator) or pair.context
    candidate = pair.candidate[slice(*right.read)] or pair.candidate
    contexts = [_shortened(context, span, pair.separator) for span in left.moved()]
    candidates = [without_span(candidate, span) for span in right.moved()]
    parts = _falls(
        pair_scores,
        [context, *contexts, *[context] * len(candidates)],
        [candidate, *[candidate] * len(contexts), *candidates],
    )
    return Explanation(
        context=text,
        candidate=pair.candidate,
        score=pair.score,
        method=ExplanationMethod.LEAVE_ONE_OUT,
        codes=(),
        tokens=_shares(text, left.spans, parts[: len(left.spans)]),
        candidate_tokens=_shares(pair.candidate, right.spans, parts[len(left.spans) :]),
        attention=np.empty((0, len(left.spans)), dtype=np.float32),
        context_truncated=pair.context_truncated,
        candidate_truncated=pair.candidate_truncated,
        notes=tuple(filter(None, (left.note, right.note))),
    )


def _turn_words(turns: Sequence[str], separator: str) -> list[Span]:
    """The words of all turns, in the joined text; no word reaches into the next turn."""
    spans, start = [], 0
    for turn in turns:
        spans += [(start + first, start + last) for first, last in word_spans(turn)]
        start += len(turn) + len(separator)
    return spans


def _falls(pair_scores: PairScores, contexts: Sequence[Context], candidates: Sequence[str]) -> Floats:
    """How much less than the first pair each other one scores."""
    if len(contexts) == 1:
        return np.empty(0, dtype=np.float32)
    scores = pair_scores(contexts, candidates)
    falls: Floats = scores[0] - scores[1:]
    return falls


def _within(context: Context, span: Span, separator: str) -> Context:
    """The context in a span of its joined text, without the turns outside of it."""
    if isinstance(context, str):
        return context[slice(*span)]
    turns, start = [], 0
    for turn in context:
        if start < span[1] and start + len(turn) > span[0]:
            turns.append(turn[max(span[0] - start, 0) : span[1] - start])
        start += len(turn) + len(separator)
    return tuple(turns)


def _left_out(side: Side, words: list[Span], read: Span) -> LeftOut:
    """The words to leave out of what the model reads of a text.

    Of a truncated text, only the whole words that are read are scored. Otherwise, leaving a word out would
    make room for truncated words.
    """
    if len(words) < 2:
        return LeftOut(read, [], f"the {side} has one word, which cannot be left out")
    whole = [(start, end) for start, end in words if read[0] <= start and end <= read[1]]
    if len(whole) < 2:
        return LeftOut(read, [], f"the model reads less than two words of the {side}, so none is left out")
    if len(whole) < len(words):
        read = whole[0][0], whole[-1][1]
    spans = grouped(whole, MAX_WORDS)
    if len(spans) == len(whole):
        return LeftOut(read, spans, "")
    together = -(-len(whole) // MAX_WORDS)
    return LeftOut(
        read,
        spans,
        f"the {side} has {len(whole):,} words: up to {together} neighbours were left out together",
    )


def _shortened(context: Context, span: Span, separator: str) -> Context:
    """The context without a span of its joined text; a turn that would be empty is dropped."""
    if isinstance(context, str):
        return without_span(context, span)
    turns, start = [], 0
    for turn in context:
        first, last = max(span[0] - start, 0), min(span[1] - start, len(turn))
        turns.append(without_span(turn, (first, last)) if first < last else turn)
        start += len(turn) + len(separator)
    return tuple(turn for turn in turns if turn.strip())


def _shares(text: str, spans: Sequence[Span], parts: Floats) -> tuple[TokenShare, ...]:
    return tuple(
        TokenShare(text[start:end], start, end, None, part)
        for (start, end), part in zip(spans, parts.tolist(), strict=True)
    )
