"""Hard negatives: candidates that look right and are not, found by words or by a model.

Texts are held in memory; vectors and word lists lie in files, and scores are made a block at a time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, Protocol, TypeAlias, get_args

import numpy as np

from tercet.data.overlap import folded
from tercet.errors import DataError, InputError
from tercet.index.lexical import LexicalIndex
from tercet.inputs import check_choice, check_count
from tercet.models.dual import DualEncoder
from tercet.records import Codes, Context, Counts, Floats, Lesson, as_text

Miner: TypeAlias = Literal["bm25", "model"]
MINERS: tuple[Miner, ...] = get_args(Miner)

CONTEXTS_AT_ONCE = 256
CANDIDATES_AT_ONCE = 16_384


@dataclass(frozen=True, kw_only=True)
class MiningConfig:
    """Which candidates become negatives."""

    by: Miner = "bm25"
    """``bm25``: those that share words with the context. ``model``: those that the model puts first."""
    negatives: int = 4
    """How many are wanted for each lesson."""
    depth: int = 50
    """How many of the best are looked at."""
    margin: float = 0.05
    """A candidate must score so much less than the answer, or it is taken for another answer."""

    def __post_init__(self) -> None:
        check_choice("by", self.by, MINERS)
        check_count("negatives", self.negatives)
        check_count("depth", self.depth)
        if not isfinite(self.margin) or self.margin < 0:
            raise InputError(f"margin must be a number of at least 0, got {self.margin}")


class Searcher(Protocol):
    """Finds candidates by their places, the best first."""

    def search(self, contexts: Sequence[Context], codes: Codes, k: int) -> list[list[int]]: ...


class ByWords:
    """BM25."""

    def __init__(self, candidates: Sequence[str], folder: Path) -> None:
        self._index = LexicalIndex(folder)
        self._index.add(np.arange(len(candidates)), candidates)

    def search(self, contexts: Sequence[Context], codes: Codes, k: int) -> list[list[int]]:
        """The candidates that share the weightiest words with each context."""
        return [[place for place, _ in self._index.search(as_text(context), k)] for context in contexts]


class ByModel:
    """The best by a model's scores, over all candidates, a block at a time."""

    def __init__(self, scorer: DualEncoder, vectors: Floats) -> None:
        self._scorer = scorer
        self._vectors = vectors

    def search(self, contexts: Sequence[Context], codes: Codes, k: int) -> list[list[int]]:
        """The candidates that score best for each context."""
        places: Counts = np.empty((len(codes), 0), dtype=np.int64)
        scores: Floats = np.empty((len(codes), 0), dtype=np.float32)
        for start in range(0, len(self._vectors), CANDIDATES_AT_ONCE):
            block = self._scorer.match(codes, self._vectors[start : start + CANDIDATES_AT_ONCE])
            numbers = np.broadcast_to(np.arange(start, start + block.shape[1]), block.shape)
            scores, places = np.hstack([scores, block]), np.hstack([places, numbers])
            best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
            scores = np.take_along_axis(scores, best, axis=1)
            places = np.take_along_axis(places, best, axis=1)
        return [row.tolist() for row in places]


def mine(lessons: Sequence[Lesson], scorer: DualEncoder, config: MiningConfig) -> Iterator[Lesson]:
    """Each lesson with negatives from the answers of all; those that it has are kept, as far as they go.

    The known answers of a context, and what scores nearly as much as the answer by ``scorer``, are left out.
    """
    if not lessons:
        raise DataError("there are no lessons to mine negatives for")
    for lesson in lessons:
        if lesson.targets:
            raise DataError(
                f"{lesson.where}: negatives are mined for answers, and this row has a score or label"
            )
    texts = list(dict.fromkeys(lesson.candidates[0] for lesson in lessons))
    place = {text: position for position, text in enumerate(texts)}
    known: dict[str, set[str]] = {}
    for lesson in lessons:
        known.setdefault(folded(lesson.context), set()).add(folded(lesson.candidates[0]))
    with TemporaryDirectory() as made:
        scorer.encode(texts, Path(made) / "vectors.npy")
        vectors: Floats = np.load(Path(made) / "vectors.npy", mmap_mode="r")
        words = Path(made) / "words"
        words.mkdir()
        search: Searcher = ByWords(texts, words) if config.by == "bm25" else ByModel(scorer, vectors)
        for start in range(0, len(lessons), CONTEXTS_AT_ONCE):
            window = lessons[start : start + CONTEXTS_AT_ONCE]
            contexts = [lesson.context for lesson in window]
            codes = scorer.encode_contexts(contexts)
            for row, found in enumerate(search.search(contexts, codes, config.depth)):
                lesson = window[row]
                right = known[folded(lesson.context)] | {folded(lesson.context)}
                others = [position for position in found if folded(texts[position]) not in right]
                answer = place[lesson.candidates[0]]
                scores = scorer.match(codes.take(slice(row, row + 1)), vectors[[answer, *others]])[0]
                kept = [
                    texts[position]
                    for position, score in zip(others, scores[1:], strict=True)
                    if score <= scores[0] - config.margin
                ]
                yield _with_negatives(lesson, kept[: config.negatives])


def _with_negatives(lesson: Lesson, negatives: Sequence[str]) -> Lesson:
    return replace(lesson, candidates=tuple(dict.fromkeys((*lesson.candidates, *negatives))))
