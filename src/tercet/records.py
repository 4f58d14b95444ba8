"""The small immutable types that modules exchange."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, overload

if TYPE_CHECKING:  # importing numpy would double the time that `tercet --help` takes
    import numpy as np
    from numpy.typing import NDArray

Context: TypeAlias = str | Sequence[str]
"""A text, or the turns of a dialogue, oldest first."""


def as_text(context: Context) -> str:
    """The context as one string, with turns on separate lines."""
    return context if isinstance(context, str) else "\n".join(context)


Floats: TypeAlias = "NDArray[np.float32]"
Ints: TypeAlias = "NDArray[np.int64]"
Bools: TypeAlias = "NDArray[np.bool_]"

Progress: TypeAlias = Callable[[int], None]
"""Called with the number of things that were done since the last call."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate in a ranking.

    ``position`` is the index of the candidate in the list that was ranked. The last two fields count the
    tokens of the context and of the candidate that were truncated; 0 means that the model read everything.
    """

    position: int
    score: float
    text: str
    context_truncated: int = 0
    candidate_truncated: int = 0


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of every context against every candidate, and how many tokens were truncated.

    ``values`` is ``[B, C]``; the two counts broadcast to that shape.
    """

    values: Floats
    context_truncated: Ints
    candidate_truncated: Ints


@dataclass(frozen=True, slots=True)
class Codes:
    """Encoded contexts: ``vectors`` ``[B, M, D]``; ``mask`` ``[B, M]`` is false where a context has no code.

    A bi-encoder has one code per context, so its embeddings are ``codes.vectors[:, 0]``.
    """

    vectors: Floats
    mask: Bools

    def __len__(self) -> int:
        return len(self.vectors)

    def take(self, contexts: "Ints | slice") -> "Codes":
        """The codes of a subset of the contexts."""
        return Codes(self.vectors[contexts], self.mask[contexts])


class Certainty(StrEnum):
    """Whether a search result is guaranteed to hold the best candidates, from most to least certain."""

    CERTIFIED = "certified"
    """Proven: no better candidate exists."""
    CERTIFIED_UP_TO_RECALL = "certified_up_to_recall"
    """Proven under the condition that the approximate index missed nothing."""
    BUDGET_REACHED = "budget_reached"
    """Not proven: the search stopped after scoring the allowed number of candidates."""
    FUSED = "fused"
    """The ranking combines vector and lexical search."""
    RERANKED = "reranked"
    """A cross-encoder reordered the first candidates."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a text: the characters ``text[start:end]``."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Hit:
    """A candidate found by a search; ``metadata`` is what was stored with it.

    ``part`` is the chunk with the best score, if the index splits candidates into chunks.
    """

    id: str
    text: str
    score: float
    metadata: Mapping[str, Any] = field(default_factory=dict)
    part: Part | None = None

    @property
    def passage(self) -> str:
        """The text of ``part``; the whole text if there is none."""
        return self.text if self.part is None else self.text[self.part.start : self.part.end]


@dataclass(frozen=True, slots=True)
class Hits(Sequence[Hit]):
    """Search results, best first, and whether they are guaranteed to be the best."""

    found: tuple[Hit, ...]
    certainty: Certainty

    @property
    def certified(self) -> bool:
        """Whether it is proven that no better candidate exists."""
        return self.certainty is Certainty.CERTIFIED

    @overload
    def __getitem__(self, position: int) -> Hit: ...
    @overload
    def __getitem__(self, position: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, position: int | slice) -> Hit | tuple[Hit, ...]:
        return self.found[position]

    def __len__(self) -> int:
        return len(self.found)


@dataclass(frozen=True, slots=True)
class VectorFile:
    """A ``.npy`` file of vectors, ``[count, width]``; ``truncated`` texts exceeded the maximum length."""

    path: Path
    count: int
    width: int
    truncated: int


@dataclass(frozen=True, slots=True)
class ClosePair:
    """Two similar texts: their positions in the list, and their score."""

    first: int
    second: int
    score: float


@dataclass(frozen=True, slots=True)
class Question:
    """An entry of an FAQ: a question and its answer; ``context`` is how a user asks it."""

    question: str
    answer: str
    context: str
    topic: str


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The turns of a dialogue between two people, oldest first."""

    turns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """A context, a candidate and a score; the scale of the score depends on the data set."""

    context: Context
    candidate: str
    score: float


@dataclass(frozen=True, slots=True)
class Example:
    """A training or test example: a context, its candidates, and their targets.

    ``targets`` holds one number for a single candidate (a score or a label), one number per candidate (a
    teacher's scores), or nothing if the first candidate is the right answer and the others are wrong.
    ``location`` is the file and line that the example comes from. Examples of one ``group``, such as a
    dialogue, are never split between training and dev data.
    """

    context: Context
    candidates: tuple[str, ...]
    targets: tuple[float, ...] = ()
    location: str = field(default="", compare=False)
    group: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class CodeShare:
    """The attention weight of one code, and its contribution to the score."""

    position: int
    weight: float
    contribution: float


@dataclass(frozen=True, slots=True)
class TokenShare:
    """The contribution of a token or a word to the score.

    ``start`` and ``end`` delimit its characters in the text. Tokens of the same characters are merged. A
    special token and a token of a prompt have no characters: ``start == end``. ``weight`` is the attention of
    a poly-encoder's codes to the token; other scorers have None.
    """

    text: str
    start: int
    end: int
    weight: float | None
    contribution: float


class ExplanationMethod(StrEnum):
    """How contributions were found."""

    EXACT = "exact"
    """By the formula of the model: the contributions add up to the score."""
    LEAVE_ONE_OUT = "leave-one-out"
    """By scoring the texts without each word, an approximation: the contributions do not add up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """How the words of a context and of a candidate contribute to their score.

    ``tokens`` are those of the context. If the method is exact, their contributions add up to the score, and
    so do those of ``candidate_tokens`` and of ``codes`` where there are any. Only a poly-encoder has codes,
    and it has no candidate tokens. ``attention`` is ``[M, T]``: the weight of each token in each code.
    ``notes`` say in words what limits the explanation.
    """

    context: str
    candidate: str
    score: float
    method: ExplanationMethod
    codes: tuple[CodeShare, ...]
    tokens: tuple[TokenShare, ...]
    candidate_tokens: tuple[TokenShare, ...] = ()
    attention: Floats
    context_truncated: int = 0
    candidate_truncated: int = 0
    notes: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether the contributions add up to the score."""
        return self.method is ExplanationMethod.EXACT
