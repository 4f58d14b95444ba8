"""The cross-encoder: one transformer reads context and candidate together."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from tercet.config import CrossConfig, Precision, Side, cross_settings
from tercet.errors import InputError
from tercet.inputs import check_pairs, check_seed
from tercet.models.cross_folder import CrossParts, read_backbone, read_cross, write_cross
from tercet.models.encoder import ASIDE, Encoder
from tercet.models.head import activate
from tercet.models.neural import NeuralScorer, distinct
from tercet.models.pairs import PairIds, PairTokenizer
from tercet.models.sources import find_folder
from tercet.records import Context, Counts, Floats, Scores
from tercet.runtime.batches import batches_by_tokens, windows
from tercet.runtime.memory import release_free_memory
from tercet.runtime.packing import Aside
from tercet.runtime.precision import pick_device


class Outcome(NamedTuple):
    """What came out for pairs: values ``[N, k]``, and tokens of each text that were not read, ``[N]``."""

    values: Floats
    context_cuts: Counts
    candidate_cuts: Counts


class CrossEncoder(NeuralScorer):
    """The most accurate scorer and the slowest: nothing can be kept from one pair to the next."""

    kind = "cross"

    def __init__(self, parts: CrossParts, *, precision: Precision = "fp32") -> None:
        if parts.config.other_weight is not None and parts.encoder.architecture not in ASIDE:
            known = ", ".join(sorted(ASIDE))
            raise InputError(
                f"other_weight needs a backbone that is one of {known}, this is {parts.encoder.architecture}"
            )
        super().__init__(parts.tokenizer, turn_separator=parts.config.turn_separator, precision=precision)
        self.config = parts.config
        self.encoder = parts.encoder
        self.head = parts.head
        self.head.set_dropout(parts.config.dropout)
        self._other_weight = parts.config.other_weight
        self.pair_tokenizer = PairTokenizer(
            parts.tokenizer, floor=parts.config.context_floor, aside=self._other_weight is not None
        )
        self._uses_segments = self.pair_tokenizer.has_segments and parts.encoder.segments > 1
        self._finish()  # the head stays in float32

    @classmethod
    def from_backbone(
        cls,
        backbone: str | PathLike[str],
        *,
        config: CrossConfig | None = None,
        max_tokens: int | None = None,
        seed: int = 0,
        precision: Precision = "fp32",
        device: str | None = None,
    ) -> Self:
        """An untrained cross-encoder over any Hugging Face encoder."""
        parts = read_backbone(
            find_folder(backbone),
            config=config or CrossConfig(),
            max_tokens=max_tokens,
            seed=check_seed(seed),
        )
        return cls(parts, precision=precision).to(pick_device(device))

    def forward(self, pairs: Sequence[PairIds]) -> Tensor:
        """``[B, k]``: the outputs for each pair, before any activation, with gradients if wanted."""
        segments = [pair.segments for pair in pairs] if self._uses_segments else None
        starts = [pair.candidate_start for pair in pairs]
        aside = None if self._other_weight is None else Aside(starts, self._other_weight)
        states = self.encoder([pair.ids for pair in pairs], segments, aside)
        outputs: Tensor = self.head(states, starts)
        return outputs

    def classify(self, contexts: Iterable[Context], candidates: Iterable[str]) -> Floats:
        """``[B, k]``: the value of each class for each context and the candidate at its position."""
        return self._read_pairs(*check_pairs(contexts, candidates)).values

    def _scores(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Scores:
        shape = len(contexts), len(candidates)
        place = self._score_class()
        read = self._outcome(contexts, candidates, product)
        return Scores(
            values=read.values[:, place].reshape(shape),
            context_cuts=read.context_cuts.reshape(shape),
            candidate_cuts=read.candidate_cuts.reshape(shape),
        )

    def _pair_scores(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Floats:
        place = self._score_class()
        return self._read_pairs(contexts, candidates).values[:, place]

    def _read_pairs(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Outcome:
        return self._outcome(contexts, candidates, partial(zip, strict=True))

    def _score_class(self) -> int:
        """Which output candidates are ranked by."""
        place = self.config.score_class if self.config.outputs > 1 else 0
        if place is None:
            names = ", ".join(self.config.labels) or "without names"
            raise InputError(
                f"this model gives {self.config.outputs} classes ({names}) and no score: use classify(...), "
                "or choose one with scorer.config = dataclasses.replace(scorer.config, score_class=...)"
            )
        return place

    def token_ids(self, texts: Sequence[Context], side: Side) -> list[list[int]]:
        """All tokens of each text; the pair decides what is cut. One that comes again is tokenised once."""
        different, which = distinct(texts)
        ids = self.pair_tokenizer.ids([passage.text for passage in self._passages(different)])
        return [ids[place] for place in which]

    def _outcome(
        self,
        contexts: Sequence[Context],
        candidates: Sequence[str],
        paired: Callable[[list[list[int]], list[list[int]]], Iterable[tuple[list[int], list[int]]]],
    ) -> Outcome:
        """The values of the pairs that ``paired`` makes; the cuts are those of the first way round."""
        sides = self.token_ids(contexts, "context"), self.token_ids(candidates, "candidate")
        read = self._read_all(paired(*sides))
        if not self.config.symmetric:
            return read
        turned = self._read_all((right, left) for left, right in paired(*sides))
        mean: Floats = (read.values + turned.values) / np.float32(2)
        return read._replace(values=mean)

    def _read_all(self, pairs: Iterable[tuple[list[int], list[int]]]) -> Outcome:
        parts = list(self._stream(pairs))
        return Outcome(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _stream(self, pairs: Iterable[tuple[list[int], list[int]]]) -> Iterator[Outcome]:
        """Read a window of pairs at a time, in order."""
        for window in windows(pairs, self.batching, size_of=lambda pair: len(pair[0]) + len(pair[1])):
            joined = [self.pair_tokenizer.pair(context, candidate) for context, candidate in window]
            cuts = np.array([(pair.context_cut, pair.candidate_cut) for pair in joined], dtype=np.int64)
            self._warn_once(cuts.sum(axis=1), "pairs", "rankings count")
            yield Outcome(self._forward(joined), cuts[:, 0], cuts[:, 1])
            release_free_memory()

    @torch.inference_mode()
    def _forward(self, pairs: Sequence[PairIds]) -> Floats:
        self._check_evaluating()
        parts: list[Tensor] = []
        order: list[int] = []
        for batch in batches_by_tokens([len(pair.ids) for pair in pairs], self._token_budget()):
            outputs = self([pairs[position] for position in batch])
            parts.append(activate(outputs, self.config.activation).cpu())
            order += batch
        values: Floats = torch.cat(parts).numpy()[np.argsort(order)]
        return values

    @property
    def backbone(self) -> Encoder:
        """The encoder that reads pairs."""
        return self.encoder

    def _description(self) -> dict[str, object]:
        return {
            "head": self.config.head,
            "outputs": ", ".join(self.config.labels) or self.config.outputs,
            "activation": self.config.activation,
            "segments": self._uses_segments,
            "other weight": self.config.other_weight,
            "symmetric": self.config.symmetric,
        }

    @classmethod
    def _read(cls, folder: Path, precision: Precision) -> Self:
        return cls(read_cross(folder), precision=precision)

    def _write(self, folder: Path) -> dict[str, Any]:
        return write_cross(CrossParts(self.tokenizer, self.encoder, self.head, self.config), folder)

    def _facts(self) -> dict[str, Any]:
        return {"config": cross_settings(self.config), "head": self.head.facts(), **self.encoder.facts()}
