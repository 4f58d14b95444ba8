"""What a cross-encoder is in every runtime: it reads both texts of a pair together."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np

from tercet.encoders.batches import batches_by_tokens, observed, windows
from tercet.encoders.memory import release_free_memory
from tercet.errors import InputError
from tercet.inputs import check_pairs
from tercet.records import Context, Floats, Ints, Scores
from tercet.scorers.finite import finite_scores
from tercet.scorers.text_scorer import TextScorer, distinct
from tercet.settings.models import CrossConfig, Side
from tercet.text.pairs import PairIds, PairTokenizer
from tercet.text.tokenizer import Passage, Tokenizer, span_of
from tercet.text.words import Span


class Outputs(NamedTuple):
    """The outputs of pairs, ``[N, k]``, and the truncated tokens of each text, ``[N]``."""

    values: Floats
    context_truncated: Ints
    candidate_truncated: Ints


class CrossScorer(TextScorer):
    """The most accurate and slowest scorer: nothing can be cached between pairs."""

    kind = "cross"
    config: CrossConfig
    pair_tokenizer: PairTokenizer

    @abstractmethod
    def _run_pairs(self, pairs: Sequence[PairIds]) -> Floats:
        """``[B, k]``: the outputs of a batch of tokenized pairs, after the activation."""

    def _set_pairs(self, tokenizer: Tokenizer, config: CrossConfig, *, segments: int) -> None:
        """Set what this class needs; constructors call it.

        Args:
            segments: the number of segment ids that the encoder has.
        """
        self.config = config
        self.pair_tokenizer = PairTokenizer(
            tokenizer,
            min_context_tokens=config.min_context_tokens,
            separate=config.cross_text_weight is not None,
            candidate_segment=config.candidate_segment,
        )
        self._uses_segments = self.pair_tokenizer.has_segments and segments > 1

    def classify(self, contexts: Iterable[Context], candidates: Iterable[str]) -> Floats:
        """``[B, k]``: the value of each class for each context and the candidate at its position."""
        return finite_scores(self._pair_outputs(*check_pairs(contexts, candidates)).values)

    def check_has_score(self) -> None:
        """Raise if the model has classes and none of them is the score."""
        self._score_column()

    def tokenize_pairs(
        self, contexts: Sequence[Context], candidates: Sequence[str]
    ) -> list[tuple[PairIds, ...]]:
        """The first step of scoring pairs: their tokens, truncated. A symmetric model reads each pair in both
        orders, so it has two sequences. The texts are not checked."""
        texts, which = distinct([*contexts, *candidates])
        ids = self.pair_tokenizer.ids([passage.text for passage in self._passages(texts)])
        left, right = which[: len(contexts)].tolist(), which[len(contexts) :].tolist()
        pair, symmetric = self.pair_tokenizer.pair, self.config.symmetric
        return [
            (pair(ids[one], ids[two]), *([pair(ids[two], ids[one])] if symmetric else []))
            for one, two in zip(left, right, strict=True)
        ]

    def score_tokens(self, pairs: Sequence[tuple[PairIds, ...]]) -> Floats:
        """The second step: ``[N]``, the score of each tokenized pair."""
        column, orders = self._score_column(), len(pairs[0])
        values = self._forward([ids for pair in pairs for ids in pair])[:, column]
        return finite_scores(values.reshape(len(pairs), orders).mean(axis=1))

    def _scores(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Scores:
        shape = len(contexts), len(candidates)
        column = self._score_column()
        found = self._outputs(contexts, candidates, product)
        return Scores(
            values=found.values[:, column].reshape(shape),
            context_truncated=found.context_truncated.reshape(shape),
            candidate_truncated=found.candidate_truncated.reshape(shape),
        )

    def _pair_scores(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Floats:
        column = self._score_column()
        return self._pair_outputs(contexts, candidates).values[:, column]

    def _pair_outputs(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Outputs:
        return self._outputs(contexts, candidates, partial(zip, strict=True))

    def _score_column(self) -> int:
        """The output that candidates are ranked by."""
        column = self.config.score_class if self.config.num_labels > 1 else 0
        if column is None:
            names = ", ".join(self.config.labels) or "unnamed"
            raise InputError(
                f"this model has {self.config.num_labels} classes ({names}) and no score: use classify(...), "
                "or set scorer.config = dataclasses.replace(scorer.config, score_class=...)"
            )
        return column

    def token_ids(self, texts: Sequence[Context], side: Side) -> list[list[int]]:
        """All tokens of each text, before truncation; repeated texts are tokenized once."""
        different, which = distinct(texts)
        self._warn_of_script(different)
        ids = self.pair_tokenizer.ids([passage.text for passage in self._passages(different)])
        return [ids[position] for position in which]

    def _read_spans(self, passages: Sequence[Passage], truncated: tuple[int, int]) -> tuple[Span, Span]:
        left, right = (self.tokenizer.bare_pieces(passage.text) for passage in passages)
        return span_of(left[truncated[0] :]), span_of(right[: len(right) - truncated[1]])

    def _outputs(
        self,
        contexts: Sequence[Context],
        candidates: Sequence[str],
        paired: Callable[[list[list[int]], list[list[int]]], Iterable[tuple[list[int], list[int]]]],
    ) -> Outputs:
        """The outputs of the pairs that ``paired`` forms; truncation is counted in the given direction."""
        sides = self.token_ids(contexts, "context"), self.token_ids(candidates, "candidate")
        forward = self._run(paired(*sides))
        if not self.config.symmetric:
            return forward
        backward = self._run((right, left) for left, right in paired(*sides))
        mean: Floats = (forward.values + backward.values) / np.float32(2)
        return forward._replace(values=mean)

    def _run(self, pairs: Iterable[tuple[list[int], list[int]]]) -> Outputs:
        parts = list(self._stream(pairs))
        return Outputs(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _stream(self, pairs: Iterable[tuple[list[int], list[int]]]) -> Iterator[Outputs]:
        """Run one window of pairs at a time, in order."""
        for window in windows(pairs, self.encoding, size_of=lambda pair: len(pair[0]) + len(pair[1])):
            joined = [self.pair_tokenizer.pair(context, candidate) for context, candidate in window]
            truncated = np.array(
                [(pair.context_truncated, pair.candidate_truncated) for pair in joined], dtype=np.int64
            )
            self._warn_once(truncated.sum(axis=1), "pairs")
            yield Outputs(self._forward(joined), truncated[:, 0], truncated[:, 1])
            release_free_memory()

    def _forward(self, pairs: Sequence[PairIds]) -> Floats:
        self._check_ready()
        parts: list[Floats] = []
        order: list[int] = []
        for batch in observed(batches_by_tokens([len(pair.ids) for pair in pairs], self.token_budget)):
            parts.append(self._run_pairs([pairs[position] for position in batch]))
            order += batch
        values: Floats = np.concatenate(parts)[np.argsort(order)]
        return values

    def _candidate_room(self) -> int:
        return self.pair_tokenizer.candidate_room

    def _description(self) -> dict[str, object]:
        return {
            "head": self.config.head,
            "labels": ", ".join(self.config.labels) or self.config.num_labels,
            "activation": self.config.activation,
            "segments": self._uses_segments,
            "cross-text weight": self.config.cross_text_weight,
            "symmetric": self.config.symmetric,
        }
