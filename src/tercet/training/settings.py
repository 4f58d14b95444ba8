"""What a training run can be told; defaults live here and nowhere else."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from tercet.errors import InputError
from tercet.inputs import check_choice, check_count, check_flag, check_scale, check_seed, check_string

ConcatenationPart: TypeAlias = Literal["u", "v", "difference", "product"]
Distance: TypeAlias = Literal["euclidean", "cosine", "manhattan"]
ObjectiveKind: TypeAlias = Literal[
    "softmax",
    "cosine",
    "order",
    "triplet",
    "in_batch",
    "regression",
    "classes",
    "ranking",
    "margin_mse",
    "distribution",
]
Optimiser: TypeAlias = Literal["adamw", "adam", "adamax"]
Schedule: TypeAlias = Literal["linear", "constant", "inverse_sqrt", "plateau"]

CONCATENATION_PARTS: tuple[ConcatenationPart, ...] = get_args(ConcatenationPart)
DISTANCES: tuple[Distance, ...] = get_args(Distance)
OBJECTIVE_KINDS: tuple[ObjectiveKind, ...] = get_args(ObjectiveKind)
OPTIMISERS: tuple[Optimiser, ...] = get_args(Optimiser)
SCHEDULES: tuple[Schedule, ...] = get_args(Schedule)


@dataclass(frozen=True, kw_only=True)
class ObjectiveConfig:
    """What a model is trained to do."""

    kind: ObjectiveKind
    """For bi-encoders ``softmax``, ``cosine`` and ``triplet`` (Sentence-BERT), and ``order`` (CoSENT); for
    bi- and poly-encoders ``in_batch``, and from a teacher's scores ``margin_mse`` and ``distribution``; for
    cross-encoders ``regression``, ``classes`` and ``ranking``."""
    concatenation: tuple[ConcatenationPart, ...] = ("u", "v", "difference")
    """What ``softmax`` sees of two vectors."""
    classes: int = 3
    """How many labels ``softmax`` tells apart."""
    margin: float = 1.0
    """By how much ``triplet`` wants the negative farther away."""
    distance: Distance = "euclidean"
    """How ``triplet`` measures."""
    score_scale: float = 1.0
    """What ``in_batch`` and ``order`` multiply scores by: 20 suits cosines, whose softmax is flat."""
    temperature: float = 1.0
    """Of ``distribution``."""
    lowest: float = 0.0
    """The target that means nothing in common, for ``cosine`` and ``regression``."""
    highest: float = 1.0
    """The target that means the same."""

    def __post_init__(self) -> None:
        check_choice("objective", self.kind, OBJECTIVE_KINDS)
        check_choice("distance", self.distance, DISTANCES)
        check_count("classes", self.classes)
        for name in ("margin", "score_scale", "temperature"):
            check_scale(name, getattr(self, name))
        if not self.concatenation:
            raise InputError(f"concatenation needs at least one of {', '.join(CONCATENATION_PARTS)}")
        for part in self.concatenation:
            check_choice("concatenation", part, CONCATENATION_PARTS)
        if not self.lowest < self.highest:
            raise InputError(f"lowest must be below highest, got {self.lowest} and {self.highest}")


@dataclass(frozen=True, kw_only=True)
class BatchSettings:
    """Which examples are learnt from together."""

    examples: int = 32
    """In one batch; in-batch negatives are the answers of the others."""
    tokens: int | None = None
    """At most so many tokens in one batch, even if that makes it smaller."""
    bucket_batches: int = 50
    """Batches whose examples are sorted by length together, so that those of a batch are about equal."""
    chunk_tokens: int | None = None
    """Encode so many tokens at a time and again on the way back (gradient caching): a large batch then needs
    the memory of a small one, and a third more time."""
    negatives: int = 0
    """Answers of other examples to put beside an example's own candidates, drawn anew in every epoch; with a
    teacher, who has to score them, drawn once."""
    seed: int = 0

    def __post_init__(self) -> None:
        check_count("examples", self.examples)
        if not isinstance(self.negatives, int) or self.negatives < 0:
            raise InputError(f"negatives must be a whole number of at least 0, got {self.negatives}")
        check_count("bucket_batches", self.bucket_batches)
        for name in ("tokens", "chunk_tokens"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """How a model is moved towards its objective."""

    epochs: int = 1
    learning_rate: float = 5e-5
    optimiser: Optimiser = "adamw"
    betas: tuple[float, float] = (0.9, 0.999)
    """How long the optimiser remembers gradients and their squares."""
    weight_decay: float = 0.01
    """Not of biases and norms."""
    schedule: Schedule = "linear"
    """After the warm-up: ``linear`` to 0, ``constant``, ``inverse_sqrt`` of the steps, or ``plateau``: times
    0.4 whenever the loss on the dev data has not improved (Humeau et al., 2020, who look twice an epoch)."""
    warmup: float = 0.1
    """A share of all steps if below 1, else a number of steps."""
    clip: float = 1.0
    """The longest gradient."""
    accumulation: int = 1
    """Batches to one step."""
    bf16: bool = False
    """Compute in bfloat16 where that is safe; weights stay in float32."""
    looks_per_epoch: int = 2
    """How often the dev data is looked at and a checkpoint is written."""
    best_by: str = "loss"
    """What decides which look is kept: ``loss``, the lowest, or the name of a measure, the highest."""
    patience: int | None = None
    """Stop after so many looks without improvement."""
    checkpoints: int = 2
    """How many are kept."""
    dropout: float | None = None
    """The share of states that is left out while training; the model's own, mostly 0.1, by default. A small
    model that has little time to learn does better with 0."""
    freeze_embeddings: bool = False
    """Leave the word embeddings as they are."""
    freeze_layers: int = 0
    """Leave so many of the lowest layers as they are."""
    last_layer_std: float | None = None
    """Before training, bring each matrix of the last layer to this standard deviation (the Reddit recipe of
    Humeau et al., 2020)."""
    tensorboard: bool = False
    """Write what is logged for TensorBoard too."""
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("optimiser", self.optimiser, OPTIMISERS)
        check_choice("schedule", self.schedule, SCHEDULES)
        for name in ("epochs", "accumulation", "looks_per_epoch", "checkpoints"):
            check_count(name, getattr(self, name))
        check_seed(self.seed)
        for name in ("learning_rate", "weight_decay", "warmup", "clip", "freeze_layers"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise InputError(f"{name} must be at least 0, got {getattr(self, name)}")
        if self.patience is not None:
            check_count("patience", self.patience)
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be at least 0 and below 1, got {self.dropout}")
        if self.last_layer_std is not None:
            check_scale("last_layer_std", self.last_layer_std)
        for name in ("bf16", "freeze_embeddings", "tensorboard"):
            check_flag(name, getattr(self, name))
        check_string("best_by", self.best_by)
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise InputError(f"betas must be two numbers from 0 to below 1, got {self.betas}")
