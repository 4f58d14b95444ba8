"""Two texts to one sequence of token ids, truncated so that the candidate survives."""

from collections.abc import Sequence
from dataclasses import dataclass

from tercet.errors import InputError
from tercet.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class PairIds:
    """A tokenized pair; the last two fields count the tokens of each text that were dropped."""

    ids: list[int]
    segments: list[int]
    candidate_start: int
    context_truncated: int
    candidate_truncated: int


class PairTokenizer:
    """Joins the tokens of a context and of a candidate, each of which is tokenized once.

    If a pair is too long, the context loses its beginning, where a dialogue is oldest. Once only
    ``min_context_tokens`` tokens of the context are left, the candidate loses its end.

    Args:
        separate: tokenize each text as if it were alone, with its own special tokens.
        candidate_segment: give the tokens of a separate candidate segment 1.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        min_context_tokens: int,
        separate: bool = False,
        candidate_segment: bool = False,
    ) -> None:
        self._tokenizer = tokenizer
        self._template = (
            tokenizer.separate_template(segments=candidate_segment) if separate else tokenizer.pair_template()
        )
        self.has_segments = self._template.has_segments
        special = sum(map(len, self._template.ids))
        self._room = tokenizer.max_tokens - special
        self._min_context = min(min_context_tokens, self._room // 2)
        if self._room < 2:
            raise InputError(
                f"max_tokens must leave room for two texts beside {special} special tokens, "
                f"got {tokenizer.max_tokens}"
            )

    @property
    def candidate_room(self) -> int:
        """How many tokens of a candidate fit beside the shortest context."""
        return self._room - self._min_context

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """All tokens of each text."""
        return self._tokenizer.bare_ids(texts)

    def pair(self, context: Sequence[int], candidate: Sequence[int]) -> PairIds:
        """The sequence of a context and a candidate."""
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
            context_truncated=len(context) - len(left),
            candidate_truncated=len(candidate) - len(right),
        )

    def _fit(self, context: Sequence[int], candidate: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        kept = max(self._room - len(candidate), min(len(context), self._min_context))
        left = context[max(len(context) - kept, 0) :]
        return left, candidate[: self._room - len(left)]
