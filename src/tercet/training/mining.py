"""Mining of hard negatives: wrong candidates that rank high, by BM25 or by a model.

Texts are in memory. Vectors and the lexical index are in files, and scores are computed in blocks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

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
    _check(examples)
    texts = list(dict.fromkeys(example.candidates[0] for example in examples))
    with TemporaryDirectory() as created:
        folder = Path(created)
        vectors = scorer.encode(texts, folder / "vectors.npy")
        searcher = _searcher(config, scorer, texts, vectors, folder / "lexical")
        miner = _Miner(scorer, config, texts, vectors, _known_answers(examples))
        for start in range(0, len(examples), CONTEXTS_AT_ONCE):
            window = examples[start : start + CONTEXTS_AT_ONCE]
            contexts = [example.context for example in window]
            codes = scorer.encode_contexts(contexts)
            for row, positions in enumerate(searcher.search(contexts, codes, config.depth)):
                yield miner.extend(window[row], codes.take(slice(row, row + 1)), positions)


class _Miner:
    """Chooses negatives among the candidates that a searcher has found."""

    def __init__(
        self,
        scorer: DualScorer,
        config: MiningConfig,
        texts: Sequence[str],
        vectors: Floats,
        known: dict[str, set[str]],
    ) -> None:
        self._scorer, self._config, self._texts, self._vectors = scorer, config, texts, vectors
        self._known = known
        self._position = {text: number for number, text in enumerate(texts)}

    def extend(self, example: Example, codes: Codes, positions: Sequence[int]) -> Example:
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


def _known_answers(examples: Sequence[Example]) -> dict[str, set[str]]:
    known: dict[str, set[str]] = {}
    for example in examples:
        known.setdefault(comparison_key(example.context), set()).add(comparison_key(example.candidates[0]))
    return known


def _check(examples: Sequence[Example]) -> None:
    if not examples:
        raise DataError("there are no examples to mine negatives for")
    for example in examples:
        if example.targets:
            raise DataError(
                f"{example.location}: mining needs answers, and this row has a score or label: use another "
                "reader"
            )
