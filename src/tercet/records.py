"""The small frozen types that pass between the parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:  # numpy would double the time that `tercet --help` takes
    import numpy as np
    from numpy.typing import NDArray

Context: TypeAlias = str | Sequence[str]
"""One text, or the turns of a dialogue from the oldest to the newest."""

Floats: TypeAlias = "NDArray[np.float32]"
Counts: TypeAlias = "NDArray[np.int64]"


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
class VectorFile:
    """A finished ``.npy`` file of vectors, ``[count, width]``; ``cut`` texts were not read to their end."""

    path: Path
    count: int
    width: int
    cut: int


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
    """Two texts and how alike they are; the scale is the data set's own."""

    context: str
    candidate: str
    score: float
