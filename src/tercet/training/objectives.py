"""What a scorer is trained to do: each objective turns a batch into a loss with the scorer it is handed.

An objective never owns the scorer. Some have weights of their own, which training moves and no scorer keeps.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, TypeAlias, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity

from tercet.errors import InputError
from tercet.models.code_layer import CodeTensors
from tercet.models.cross import CrossEncoder
from tercet.models.dual import DualEncoder
from tercet.models.load import AnyScorer
from tercet.models.poly import PolyEncoder
from tercet.runtime.packing import moved
from tercet.training import losses
from tercet.training.encode import both_sides, filled_up, pair_outputs
from tercet.training.examples import Example, Ids
from tercet.training.gather import gathered, place_of_mine, several
from tercet.training.settings import ObjectiveConfig, ObjectiveKind

Batch: TypeAlias = Sequence[Example]
Trained = TypeVar("Trained", bound=DualEncoder | CrossEncoder)


class Objective(nn.Module, ABC, Generic[Trained]):
    """A loss over batches."""

    trains: ClassVar[tuple[str, ...]]
    """The kinds of scorer it is for."""

    distinct_answers: ClassVar[bool] = False
    """Whether an answer that comes twice in a batch would be its own negative."""

    def __init__(self, config: ObjectiveConfig, scorer: Trained, *, chunk_tokens: int | None = None) -> None:
        super().__init__()
        self.config = config
        self.chunk_tokens = chunk_tokens

    @abstractmethod
    def forward(self, scorer: Trained, batch: Batch) -> Tensor:
        """The loss of a batch, one number with gradients."""


class DualObjective(Objective[DualEncoder]):
    """For scorers that make vectors."""

    trains: ClassVar[tuple[str, ...]] = ("bi", "poly")

    def read(
        self, scorer: DualEncoder, contexts: Sequence[Ids], candidates: Sequence[Ids]
    ) -> tuple[CodeTensors, Tensor]:
        """The codes of contexts, and ``[C, D]``: the vectors of candidates."""
        return both_sides(scorer, contexts, candidates, chunk_tokens=self.chunk_tokens)


class SiameseObjective(DualObjective):
    """For bi-encoders, which have one vector on either side."""

    trains: ClassVar[tuple[str, ...]] = ("bi",)

    def columns(self, scorer: DualEncoder, batch: Batch, *, candidates: int = 1) -> list[Tensor]:
        """``[B, D]`` each: the contexts, the first candidate of each, the second..."""
        wanted = [example.candidates[place] for place in range(candidates) for example in batch]
        codes, vectors = self.read(scorer, _contexts(batch), wanted)
        return [codes.vectors[:, 0], *vectors.split(len(batch))]


class Softmax(SiameseObjective):
    """Classes of pairs, from a linear layer over what the concatenation names (Sentence-BERT on NLI)."""

    def __init__(
        self, config: ObjectiveConfig, scorer: DualEncoder, *, chunk_tokens: int | None = None
    ) -> None:
        super().__init__(config, scorer, chunk_tokens=chunk_tokens)
        self.classifier = nn.Linear(len(config.concatenation) * scorer.width, config.classes, bias=False)

    def forward(self, scorer: DualEncoder, batch: Batch) -> Tensor:
        """The loss of a batch."""
        left, right = self.columns(scorer, batch)
        logits = self.classifier(losses.concatenate(left, right, self.config.concatenation))
        return losses.classification(logits, _targets(batch, left).long())


class Cosine(SiameseObjective):
    """Cosines that equal the targets, which are brought to 0 to 1 (Sentence-BERT on STSb)."""

    def forward(self, scorer: DualEncoder, batch: Batch) -> Tensor:
        """The loss of a batch."""
        left, right = self.columns(scorer, batch)
        return losses.regression(cosine_similarity(left, right), _between_0_and_1(batch, left, self.config))


class Order(SiameseObjective):
    """Cosines in the order of the targets, however large they are (CoSENT)."""

    def forward(self, scorer: DualEncoder, batch: Batch) -> Tensor:
        """The loss of a batch."""
        left, right = self.columns(scorer, batch)
        cosines = self.config.score_scale * cosine_similarity(left, right)
        return losses.order(cosines, _targets(batch, left))


class Triplet(SiameseObjective):
    """Answers nearer than negatives, by a margin (Sentence-BERT on Wikipedia sections)."""

    def forward(self, scorer: DualEncoder, batch: Batch) -> Tensor:
        """The loss of a batch."""
        left, right, wrong = self.columns(scorer, batch, candidates=2)
        return losses.triplet(left, right, wrong, margin=self.config.margin, distance=self.config.distance)


class InBatch(DualObjective):
    """The answer before the answers of all other rows, of all processes, and before every negative given."""

    distinct_answers = True

    def forward(self, scorer: DualEncoder, batch: Batch) -> Tensor:
        """The loss of a batch."""
        answers = [example.candidates[0] for example in batch]
        negatives = [ids for example in batch for ids in example.candidates[1:]]
        candidates = answers + negatives
        codes, vectors = self.read(scorer, _contexts(batch), candidates)
        scores = scorer.match_codes(codes, _all_of(vectors, len(batch)))
        if _is_symmetric(scorer):
            back, own = self.read(scorer, candidates, _contexts(batch))
            scores = (scores + scorer.match_codes(_all_codes(scorer, back, len(batch)), own).T) / 2
        mine = place_of_mine(len(batch), scores.device) + torch.arange(len(batch), device=scores.device)
        names = _all_of(_names(candidates, like=scores), len(batch))
        return losses.ranking(self.config.score_scale * scores, mine, _copies(names, mine))


class FromTeacher(DualObjective):
    """For rows that carry a teacher's score of each of their candidates, the right one first."""

    def rows(self, scorer: DualEncoder, batch: Batch) -> tuple[Tensor, Tensor]:
        """``[B, K]`` each: the student's scores and the teacher's."""
        counts = {len(example.candidates) for example in batch}
        if len(counts) > 1:
            raise InputError(f"a teacher's rows need equally many candidates, got {sorted(counts)}")
        candidates = [ids for example in batch for ids in example.candidates]
        codes, vectors = self.read(scorer, _contexts(batch), candidates)
        scores = scorer.match_codes(codes, vectors.unflatten(0, (len(batch), -1)))
        if _is_symmetric(scorer):
            back, own = self.read(scorer, candidates, _contexts(batch))
            rows = own.repeat_interleave(scores.shape[1], dim=0).unsqueeze(1)
            scores = (scores + scorer.match_codes(back, rows).view_as(scores)) / 2
        wanted = scores.new_tensor([example.targets for example in batch])
        return self.config.score_scale * scores, wanted


class MarginMse(FromTeacher):
    """Leads of the right candidate as large as the teacher's."""

    def forward(self, scorer: DualEncoder, batch: Batch) -> Tensor:
        """The loss of a batch."""
        return losses.margin_mse(*self.rows(scorer, batch))


class Distribution(FromTeacher):
    """The teacher's distribution over the candidates."""

    def forward(self, scorer: DualEncoder, batch: Batch) -> Tensor:
        """The loss of a batch."""
        return losses.distribution(*self.rows(scorer, batch), temperature=self.config.temperature)


class CrossObjective(Objective[CrossEncoder]):
    """For scorers that read pairs."""

    trains: ClassVar[tuple[str, ...]] = ("cross",)

    def outputs(self, scorer: CrossEncoder, batch: Batch) -> Tensor:
        """``[N, k]``: of every context with each of its candidates, row by row."""
        pairs = [
            scorer.pair_tokenizer.pair(example.context, ids)
            for example in batch
            for ids in example.candidates
        ]
        return pair_outputs(scorer, pairs, chunk_tokens=self.chunk_tokens)


class Regression(CrossObjective):
    """One output whose sigmoid equals the target, brought to 0 to 1."""

    def forward(self, scorer: CrossEncoder, batch: Batch) -> Tensor:
        """The loss of a batch."""
        outputs = self.outputs(scorer, batch)[:, 0]
        return losses.binary(outputs, _between_0_and_1(batch, outputs, self.config))


class Classes(CrossObjective):
    """An output for each class."""

    def forward(self, scorer: CrossEncoder, batch: Batch) -> Tensor:
        """The loss of a batch."""
        outputs = self.outputs(scorer, batch)
        return losses.classification(outputs, _targets(batch, outputs).long())


class Ranking(CrossObjective):
    """The first candidate before all others of its row; rows may differ in number."""

    def forward(self, scorer: CrossEncoder, batch: Batch) -> Tensor:
        """The loss of a batch."""
        outputs = self.outputs(scorer, batch)[:, 0]
        counts = torch.tensor([len(example.candidates) for example in batch])
        present = moved(torch.arange(int(counts.max())) < counts.unsqueeze(1), outputs.device)  # [B, K]
        scores = outputs.new_zeros(present.shape).masked_scatter(present, outputs)
        first = torch.zeros(len(batch), dtype=torch.long, device=outputs.device)
        return losses.ranking(scores, first, ~present)


DUAL_OBJECTIVES: dict[ObjectiveKind, type[DualObjective]] = {
    "softmax": Softmax,
    "cosine": Cosine,
    "order": Order,
    "triplet": Triplet,
    "in_batch": InBatch,
    "margin_mse": MarginMse,
    "distribution": Distribution,
}
CROSS_OBJECTIVES: dict[ObjectiveKind, type[CrossObjective]] = {
    "regression": Regression,
    "classes": Classes,
    "ranking": Ranking,
}


def make_objective(
    config: ObjectiveConfig, scorer: AnyScorer, *, chunk_tokens: int | None = None
) -> DualObjective | CrossObjective:
    """The objective that ``config`` names, if it is for this kind of scorer."""
    known: dict[ObjectiveKind, type[DualObjective] | type[CrossObjective]]
    known = {**DUAL_OBJECTIVES, **CROSS_OBJECTIVES}
    if scorer.kind not in known[config.kind].trains:
        fitting = ", ".join(name for name, each in known.items() if scorer.kind in each.trains)
        raise InputError(f"{config.kind} does not train a {scorer.kind}-encoder: choose one of {fitting}")
    if not isinstance(scorer, CrossEncoder):
        return DUAL_OBJECTIVES[config.kind](config, scorer, chunk_tokens=chunk_tokens)
    if config.kind != "classes" and scorer.config.outputs != 1:
        raise InputError(f"{config.kind} needs a cross-encoder with 1 output, got {scorer.config.outputs}")
    return CROSS_OBJECTIVES[config.kind](config, scorer, chunk_tokens=chunk_tokens)


def _contexts(batch: Batch) -> list[Ids]:
    return [example.context for example in batch]


def _is_symmetric(scorer: DualEncoder) -> bool:
    return isinstance(scorer, PolyEncoder) and scorer.config.symmetric


def _targets(batch: Batch, like: Tensor) -> Tensor:
    """``[B]``: the one target of each row."""
    return torch.tensor([example.targets[0] for example in batch], dtype=torch.float32, device=like.device)


def _between_0_and_1(batch: Batch, like: Tensor, config: ObjectiveConfig) -> Tensor:
    return (_targets(batch, like) - config.lowest) / (config.highest - config.lowest)


def _all_of(rows: Tensor, answers: int) -> Tensor:
    """The answers of all processes, then the negatives of all; ``rows`` are ours, answers first."""
    return torch.cat([gathered(rows[:answers]), gathered(rows[answers:])])


def _all_codes(scorer: DualEncoder, codes: CodeTensors, answers: int) -> CodeTensors:
    """As ``_all_of``, of codes, of which every process has a number of its own."""
    most = scorer.most_codes if several() else codes.mask.shape[1]
    vectors, mask = (_all_of(filled_up(part, most), answers) for part in (codes.vectors, codes.mask.float()))
    return CodeTensors(vectors, mask.bool())


def _names(ids: Sequence[Ids], like: Tensor) -> Tensor:
    """``[C]``: a number for each text, the same in every process; equal texts have equal ones."""
    return torch.tensor([hash(tuple(text)) for text in ids], dtype=torch.int64, device=like.device)


def _copies(names: Tensor, mine: Tensor) -> Tensor:
    """``[B, C]``: true where a candidate is the answer of the row once more, and not the answer itself."""
    same = names[mine].unsqueeze(1) == names.unsqueeze(0)
    return same & (mine.unsqueeze(1) != torch.arange(len(names), device=names.device))
