"""Two texts to one row of token ids, cut so that the candidate survives."""

from collections.abc import Sequence
from dataclasses import dataclass

from tercet.errors import InputError
from tercet.models.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class PairIds:
    """A pair as the model reads it; so many tokens of either text had no room."""

    ids: list[int]
    segments: list[int]
    candidate_start: int
    context_cut: int
    candidate_cut: int


class PairTokenizer:
    """Joins the tokens of a context and of a candidate, each of which is tokenised once.

    Of a pair that is too long, the context gives way, from its beginning, where a dialogue is oldest. Only
    when no more than ``floor`` tokens of the context are left does the candidate give way too, from its end.
    Texts ``aside`` of each other are each written as if alone.
    """

    def __init__(self, tokenizer: Tokenizer, *, floor: int, aside: bool = False) -> None:
        self._tokenizer = tokenizer
        self._template = tokenizer.aside_template() if aside else tokenizer.pair_template()
        self.has_segments = self._template.has_segments
        special = sum(map(len, self._template.ids))
        self._room = tokenizer.max_tokens - special
        self._floor = min(floor, self._room // 2)
        if self._room < 2:
            raise InputError(
                f"max_tokens must leave room for two texts beside {special} special tokens, "
                f"got {tokenizer.max_tokens}"
            )

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """All tokens of each text."""
        return self._tokenizer.bare_ids(texts)

    def pair(self, context: Sequence[int], candidate: Sequence[int]) -> PairIds:
        """The row of a context and a candidate."""
        left, right = self._fit(context, candidate)
        template = self._template
        return PairIds(
            ids=[*template.ids[0], *left, *template.ids[1], *right, *template.ids[2]],
            segments=[
                *template.segments[0],
                *[template.owners[0]] * len(left),
                *template.segments[1],
                *[template.owners[1]] * len(right),
                *template.segments[2],
            ],
            candidate_start=len(template.ids[0]) + len(left) + template.tail,
            context_cut=len(context) - len(left),
            candidate_cut=len(candidate) - len(right),
        )

    def _fit(self, context: Sequence[int], candidate: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        kept = max(self._room - len(candidate), min(len(context), self._floor))
        left = context[max(len(context) - kept, 0) :]
        return left, candidate[: self._room - len(left)]
