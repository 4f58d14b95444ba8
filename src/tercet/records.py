"""The small frozen types that pass between the parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, overload

if TYPE_CHECKING:  # numpy would double the time that `tercet --help` takes
    import numpy as np
    from numpy.typing import NDArray

Context: TypeAlias = str | Sequence[str]
"""One text, or the turns of a dialogue from the oldest to the newest."""


def as_text(context: Context) -> str:
    """A context in one string, its turns line by line."""
    return context if isinstance(context, str) else "\n".join(context)


Floats: TypeAlias = "NDArray[np.float32]"
Counts: TypeAlias = "NDArray[np.int64]"
Flags: TypeAlias = "NDArray[np.bool_]"


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate in its place of a ranking.

    ``position`` is the candidate's index in the list that was ranked. The cuts count the tokens of the
    context and of the candidate that the model had no room for; 0 means that it read everything.
    """

    position: int
    score: float
    candidate: str
    context_cut: int = 0
    candidate_cut: int = 0


@dataclass(frozen=True, slots=True)
class Scores:
    """Every context against every candidate, and what of them was not read.

    ``values`` is ``[B, C]``; ``context_cuts`` and ``candidate_cuts`` broadcast to it.
    """

    values: Floats
    context_cuts: Counts
    candidate_cuts: Counts


@dataclass(frozen=True, slots=True)
class Codes:
    """The codes of contexts: ``vectors`` ``[B, M, D]``; ``mask`` ``[B, M]`` is false where there is no code.

    A bi-encoder has one code for each context, M = 1: its vectors are ``codes.vectors[:, 0]``.
    """

    vectors: Floats
    mask: Flags

    def __len__(self) -> int:
        return len(self.vectors)

    def take(self, contexts: "Counts | slice") -> "Codes":
        """The codes of some of the contexts."""
        return Codes(self.vectors[contexts], self.mask[contexts])


@dataclass(frozen=True, slots=True)
class Hit:
    """A candidate that a search found; ``metadata`` is whatever was kept with it."""

    id: str
    text: str
    score: float
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hits(Sequence[Hit]):
    """What a search found, best first.

    ``certainty`` says whether these are the best there are: ``certified`` (proven), ``certified up to the
    index's recall`` (proven if the graph that was asked missed nothing), or ``budget reached``; of hits whose
    order is not the vectors' alone, ``fused`` or ``reranked``.
    """

    found: tuple[Hit, ...]
    certainty: str

    @property
    def certified(self) -> bool:
        """Whether it is proven that nothing better was missed."""
        return self.certainty == "certified"

    @overload
    def __getitem__(self, place: int) -> Hit: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, place: int | slice) -> Hit | tuple[Hit, ...]:
        return self.found[place]

    def __len__(self) -> int:
        return len(self.found)


@dataclass(frozen=True, slots=True)
class VectorFile:
    """A finished ``.npy`` file of vectors, ``[count, width]``; ``cut`` texts were not read to their end."""

    path: Path
    count: int
    width: int
    cut: int


@dataclass(frozen=True, slots=True)
class ClosePair:
    """Two texts that are alike: their places in the list, and their score."""

    first: int
    second: int
    score: float


@dataclass(frozen=True, slots=True)
class Question:
    """A context with its one right answer."""

    context: str
    answer: str
    topic: str


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The turns of two speakers who alternate, oldest first."""

    turns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """A context, a candidate and how well they fit; the scale is the data set's own."""

    context: Context
    candidate: str
    score: float


@dataclass(frozen=True, slots=True)
class Lesson:
    """A context, its candidates, and what is known of them.

    ``targets`` is one number for a single candidate (a score, a label), one for each candidate (a teacher's
    scores), or none where the first candidate is the answer and the others are wrong. ``where`` is the file
    and the line that it comes from, ``group`` what else belongs with it, such as a dialogue.
    """

    context: Context
    candidates: tuple[str, ...]
    targets: tuple[float, ...] = ()
    where: str = field(default="", compare=False)
    group: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class CodeShare:
    """What one code of a context gave to a score: its weight in the attention, and its part of the score."""

    position: int
    weight: float
    contribution: float


@dataclass(frozen=True, slots=True)
class TokenShare:
    """What one token of a context gave to a score; ``start`` and ``end`` are its characters in the text read.

    Tokens that share their characters are one here. A token that the tokenizer added, such as the first, has
    no characters: ``start == end``.
    """

    text: str
    start: int
    end: int
    weight: float
    contribution: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where a poly-encoder's score comes from.

    The contributions of the codes add up to the score, and so do those of the tokens; the weights of each add
    up to 1. ``attention`` is ``[M, T]``: how much each code took of each token. The cuts count the tokens
    that the model had no room for.
    """

    context: str
    candidate: str
    score: float
    codes: tuple[CodeShare, ...]
    tokens: tuple[TokenShare, ...]
    attention: Floats
    context_cut: int = 0
    candidate_cut: int = 0
