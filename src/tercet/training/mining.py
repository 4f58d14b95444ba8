"""Mining of hard negatives: wrong candidates that rank high, by BM25 or by a model.

Texts are in memory. Vectors and the lexical index are in files, and scores are computed in blocks.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, Protocol

import numpy as np

from tercet.arrays import BlockTopK
from tercet.data.overlap import comparison_key
from tercet.errors import DataError
from tercet.index.lexical import LexicalIndex
from tercet.records import Codes, Context, Example, Floats, as_text
from tercet.scorers.dual_scorer import DualScorer
from tercet.settings.mining import MiningConfig

CONTEXTS_AT_ONCE = 256
CANDIDATES_AT_ONCE = 16_384


class Searcher(Protocol):
    """Finds candidates for contexts."""

    def search(self, contexts: Sequence[Context], codes: Codes, k: int) -> list[list[int]]:
        """The positions of the ``k`` best candidates of each context, best first."""


class LexicalSearcher:
    """BM25."""

    def __init__(self, candidates: Sequence[str], folder: Path) -> None:
        self._index = LexicalIndex(folder)
        self._index.add(np.arange(len(candidates)), candidates)

    def search(self, contexts: Sequence[Context], codes: Codes, k: int) -> list[list[int]]:
        """The candidates with the highest BM25 scores."""
        return [[position for position, _ in self._index.search(as_text(each), k)] for each in contexts]


class ModelSearcher:
    """A model's scores of all candidates."""

    def __init__(self, scorer: DualScorer, vectors: Floats) -> None:
        self._scorer = scorer
        self._vectors = vectors

    def search(self, contexts: Sequence[Context], codes: Codes, k: int) -> list[list[int]]:
        """The candidates with the highest scores."""
        top = BlockTopK(len(codes), min(k, len(self._vectors)))
        for start in range(0, len(self._vectors), CANDIDATES_AT_ONCE):
            block = self._vectors[start : start + CANDIDATES_AT_ONCE]
            top.offer(self._scorer.match(codes, block), first=start)
        return [row.tolist() for row in top.columns]


def mine(examples: Sequence[Example], scorer: DualScorer, config: MiningConfig) -> Iterator[Example]:
    """The examples with hard negatives from the answers of all examples added to their candidates.

    Known answers of a context are never negatives, nor are candidates that ``scorer`` scores nearly as high
    as the answer.
    """
    answers = answers_of(examples)
    with TemporaryDirectory() as created:
        vectors = scorer.encode(answers.texts, Path(created) / "vectors.npy")
        miner = NegativeMiner(scorer, config, answers, vectors, Path(created) / "lexical")
        yield from miner.extended(examples)


class Answers(NamedTuple):
    """The different answers of examples, and those of each context, in forms that can be compared."""

    texts: list[str]
    known: dict[str, set[str]]


def answers_of(examples: Iterable[Example]) -> Answers:
    """The answers of examples, which must have neither scores nor labels."""
    texts: dict[str, None] = {}
    known: dict[str, set[str]] = {}
    for example in examples:
        if example.targets:
            raise DataError(
                f"{example.location}: mining needs answers, and this row has a score or label: use another "
                "reader"
            )
        answer = example.candidates[0]
        texts[answer] = None
        known.setdefault(comparison_key(example.context), set()).add(comparison_key(answer))
    if not texts:
        raise DataError("there are no examples to mine negatives for")
    return Answers(list(texts), known)


class NegativeMiner:
    """Chooses negatives among the answers that a searcher finds.

    Args:
        vectors: ``[C, D]``: those of the answers.
        folder: a new folder for a lexical index of the answers.
    """

    def __init__(
        self, scorer: DualScorer, config: MiningConfig, answers: Answers, vectors: Floats, folder: Path
    ) -> None:
        self._scorer, self._config, self._vectors = scorer, config, vectors
        self._texts, self._known = answers
        self._position = {text: number for number, text in enumerate(self._texts)}
        self._searcher = _searcher(config, scorer, self._texts, vectors, folder)

    def extended(self, examples: Sequence[Example]) -> Iterator[Example]:
        """The examples with their hard negatives, in order."""
        for start in range(0, len(examples), CONTEXTS_AT_ONCE):
            window = examples[start : start + CONTEXTS_AT_ONCE]
            contexts = [example.context for example in window]
            codes = self._scorer.encode_contexts(contexts)
            for row, positions in enumerate(self._searcher.search(contexts, codes, self._config.depth)):
                yield self._extend(window[row], codes.take(slice(row, row + 1)), positions)

    def _extend(self, example: Example, codes: Codes, positions: Sequence[int]) -> Example:
        """The example with its hard negatives."""
        context = comparison_key(example.context)
        right = self._known[context] | {context}
        others = [position for position in positions if comparison_key(self._texts[position]) not in right]
        answer = self._position[example.candidates[0]]
        scores = self._scorer.match(codes, self._vectors[[answer, *others]])[0]
        negatives = [
            self._texts[position]
            for position, score in zip(others, scores[1:], strict=True)
            if score <= scores[0] - self._config.margin
        ]
        candidates = (*example.candidates, *negatives[: self._config.negatives])
        return replace(example, candidates=tuple(dict.fromkeys(candidates)))


def _searcher(
    config: MiningConfig, scorer: DualScorer, texts: Sequence[str], vectors: Floats, folder: Path
) -> Searcher:
    if config.by == "model":
        return ModelSearcher(scorer, vectors)
    folder.mkdir()
    return LexicalSearcher(texts, folder)
