"""Settings of training: what is learnt, in which batches, and how weights are updated."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from tercet.errors import InputError
from tercet.inputs import (
    check_choice,
    check_count,
    check_factor,
    check_flag,
    check_scale,
    check_seed,
    check_string,
)

ConcatenationPart: TypeAlias = Literal["u", "v", "difference", "product"]
Distance: TypeAlias = Literal["euclidean", "cosine", "manhattan"]
ObjectiveKind: TypeAlias = Literal[
    "softmax",
    "cosine",
    "cosent",
    "triplet",
    "in_batch",
    "margin_mse",
    "kl_divergence",
    "translation",
    "bce",
    "mse",
    "cross_entropy",
    "listwise",
]
OptimizerKind: TypeAlias = Literal["adamw", "adam", "adamax"]
Schedule: TypeAlias = Literal["linear", "constant", "inverse_sqrt", "plateau"]

CONCATENATION_PARTS: tuple[ConcatenationPart, ...] = get_args(ConcatenationPart)
DISTANCES: tuple[Distance, ...] = get_args(Distance)
OBJECTIVE_KINDS: tuple[ObjectiveKind, ...] = get_args(ObjectiveKind)
OPTIMIZERS: tuple[OptimizerKind, ...] = get_args(OptimizerKind)
SCHEDULES: tuple[Schedule, ...] = get_args(Schedule)


@dataclass(frozen=True, kw_only=True)
class ObjectiveConfig:
    """The training objective."""

    kind: ObjectiveKind
    """Bi-encoders: ``softmax`` (labels), ``cosine`` (scores), ``cosent`` (order of scores), ``triplet``. Bi-
    and poly-encoders: ``in_batch`` (answers, with in-batch negatives), ``margin_mse`` and ``kl_divergence``
    (a teacher's scores). Bi-encoders: ``translation`` (a teacher's vectors, on parallel text).
    Cross-encoders: ``bce`` and ``mse`` (scores), ``cross_entropy`` (labels), ``listwise`` (answers)."""
    concatenation: tuple[ConcatenationPart, ...] = ("u", "v", "difference")
    """``softmax``: the features of the classifier, from the two vectors."""
    num_labels: int = 3
    """``softmax``: number of labels."""
    margin: float = 1.0
    """``triplet``: how much farther the negative must be than the positive."""
    distance: Distance = "euclidean"
    """``triplet``: the distance of two vectors."""
    score_scale: float | None = None
    """``in_batch``, ``cosent``, ``margin_mse``, ``kl_divergence``, ``translation``: multiplies the scores in
    the loss. Default: 20 for cosines, whose softmax is flat without it; 1 for dot products and
    ``margin_mse``."""
    temperature: float = 1.0
    """``kl_divergence``: divides the scores of student and teacher."""
    min_score: float = 0.0
    """``cosine``, ``cosent``, ``bce`` and ``mse``: the target score of unrelated texts."""
    max_score: float = 1.0
    """``cosine``, ``cosent``, ``bce`` and ``mse``: the target score of equivalent texts."""
    cosine_weight: float = 5.0
    """``translation``: weight of 1 − cosine between a translation's vector and the teacher's vector of its
    source."""
    softmax_weight: float = 0.5
    """``translation``: weight of the cross-entropy of the right source among those of the batch."""
    source_weight: float = 5.0
    """``translation``: weight of 1 − cosine between a source's vector and the teacher's."""

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, OBJECTIVE_KINDS)
        check_choice("distance", self.distance, DISTANCES)
        check_count("num_labels", self.num_labels)
        for name in ("margin", "score_scale", "temperature"):
            if getattr(self, name) is not None:
                check_scale(name, getattr(self, name))
        if not self.concatenation:
            raise InputError(f"concatenation needs at least one of {', '.join(CONCATENATION_PARTS)}")
        for part in self.concatenation:
            check_choice("concatenation", part, CONCATENATION_PARTS)
        for name in ("cosine_weight", "softmax_weight", "source_weight"):
            check_factor(name, getattr(self, name))
        if not self.min_score < self.max_score:
            raise InputError(f"min_score must be below max_score, got {self.min_score} and {self.max_score}")


@dataclass(frozen=True, kw_only=True)
class BatchConfig:
    """How training examples form batches."""

    batch_size: int = 32
    """Examples per batch. With in-batch negatives, the other answers of the batch are the negatives."""
    max_tokens: int | None = None
    """Maximum number of tokens per batch; batches of long texts then have fewer examples."""
    bucket_batches: int = 50
    """Number of batches per bucket; examples are sorted by length within a bucket, to reduce padding."""
    mini_batch_tokens: int | None = None
    """Gradient caching: encode this many tokens at a time, and again in the backward pass. A large batch then
    needs little memory, but a third more time."""
    negatives: int = 0
    """Number of random negatives per example: answers of other examples, redrawn in every epoch. With a
    teacher they are drawn once, because it scores them. Recipes for ``listwise`` whose rows have only an
    answer default to 15."""
    seed: int = 0
    """Seed of the order of examples and of random negatives."""

    def __post_init__(self) -> None:
        check_count("batch_size", self.batch_size)
        if not isinstance(self.negatives, int) or self.negatives < 0:
            raise InputError(f"negatives must be a whole number of at least 0, got {self.negatives}")
        check_count("bucket_batches", self.bucket_batches)
        for name in ("max_tokens", "mini_batch_tokens"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Optimizer, schedule, evaluation and checkpoints."""

    epochs: int = 3
    """Number of epochs. The best checkpoint is kept, so one too many costs only time."""
    learning_rate: float = 1e-4
    """Peak learning rate. 1e-4 suits MiniLM and other small models; a BERT of 12 layers needs 2e-5."""
    vocabulary_learning_rate: float = 2e-3
    """Peak learning rate of the pieces that ``[vocabulary]`` adds, which know least."""
    optimizer: OptimizerKind = "adamw"
    """The optimizer. The paper uses ``adam`` for BERT and ``adamax`` for its Reddit weights."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Decay rates of the optimizer's moments."""
    weight_decay: float = 0.01
    """Not applied to biases and norms."""
    schedule: Schedule = "linear"
    """The learning rate after warm-up: ``linear`` to 0, ``constant``, ``inverse_sqrt`` of the steps, or
    ``plateau``: times 0.4 whenever the dev loss has not improved (Humeau et al., 2020, twice an epoch)."""
    warmup: float = 0.1
    """Warm-up: a share of all steps if below 1, else a number of steps."""
    max_grad_norm: float = 1.0
    """Gradient clipping."""
    gradient_accumulation_steps: int = 1
    """Batches per optimizer step."""
    bf16: bool = False
    """Mixed precision; weights stay in float32."""
    fp16: bool = False
    """Mixed precision for GPUs without bfloat16, with a scaled loss. Needs a GPU."""
    evals_per_epoch: int = 2
    """Evaluations on the dev data per epoch, each with a checkpoint."""
    metric_for_best_model: str = "loss"
    """Which checkpoint is kept as the model: the one with the lowest dev ``loss``, or the highest value of
    another metric such as ``recall_at_1``."""
    patience: int | None = None
    """Early stopping: the number of evaluations without improvement."""
    save_total_limit: int = 2
    """Number of checkpoints that are kept, at least 2: if the newest one is damaged, another is left."""
    dropout: float | None = None
    """Dropout of all layers. Default: the model's own, mostly 0.1. Small models, trained briefly, are
    better with 0."""
    freeze_embeddings: bool = False
    """Do not train the embeddings of words, positions and token types."""
    freeze_layers: int = 0
    """Do not train this many of the lowest layers, nor the embeddings below them."""
    last_layer_std: float | None = None
    """Before training, rescale each matrix of the last layer to this standard deviation (the Reddit recipe of
    Humeau et al., 2020)."""
    tensorboard: bool = False
    """Also log to TensorBoard."""
    seed: int = 0
    """Random seed."""

    def __post_init__(self) -> None:
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        check_choice("schedule", self.schedule, SCHEDULES)
        for name in ("epochs", "gradient_accumulation_steps", "evals_per_epoch", "save_total_limit"):
            check_count(name, getattr(self, name))
        check_seed(self.seed)
        for name in (
            "learning_rate",
            "vocabulary_learning_rate",
            "weight_decay",
            "warmup",
            "max_grad_norm",
            "freeze_layers",
        ):
            if not 0 <= getattr(self, name) < float("inf"):
                raise InputError(f"{name} must be at least 0, got {getattr(self, name)}")
        if self.patience is not None:
            check_count("patience", self.patience)
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be at least 0 and below 1, got {self.dropout}")
        if self.last_layer_std is not None:
            check_scale("last_layer_std", self.last_layer_std)
        for name in ("bf16", "fp16", "freeze_embeddings", "tensorboard"):
            check_flag(name, getattr(self, name))
        if self.bf16 and self.fp16:
            raise InputError("bf16 and fp16 exclude each other: set one of them")
        check_string("metric_for_best_model", self.metric_for_best_model)
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise InputError(f"betas must be two numbers from 0 to below 1, got {self.betas}")
