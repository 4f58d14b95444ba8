"""What a training run can be told; defaults live here and nowhere else."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from tercet.errors import InputError
from tercet.inputs import check_choice, check_count, check_scale

ConcatenationPart: TypeAlias = Literal["u", "v", "difference", "product"]
Distance: TypeAlias = Literal["euclidean", "cosine", "manhattan"]
ObjectiveKind: TypeAlias = Literal[
    "softmax",
    "cosine",
    "triplet",
    "in_batch",
    "regression",
    "classes",
    "ranking",
    "margin_mse",
    "distribution",
]

CONCATENATION_PARTS: tuple[ConcatenationPart, ...] = get_args(ConcatenationPart)
DISTANCES: tuple[Distance, ...] = get_args(Distance)
OBJECTIVE_KINDS: tuple[ObjectiveKind, ...] = get_args(ObjectiveKind)


@dataclass(frozen=True, kw_only=True)
class ObjectiveConfig:
    """What a model is trained to do."""

    kind: ObjectiveKind
    """For bi-encoders ``softmax``, ``cosine`` and ``triplet`` (Sentence-BERT); for bi- and poly-encoders
    ``in_batch``, and from a teacher's scores ``margin_mse`` and ``distribution``; for cross-encoders
    ``regression``, ``classes`` and ``ranking``."""
    concatenation: tuple[ConcatenationPart, ...] = ("u", "v", "difference")
    """What ``softmax`` sees of two vectors."""
    classes: int = 3
    """How many labels ``softmax`` tells apart."""
    margin: float = 1.0
    """By how much ``triplet`` wants the negative farther away."""
    distance: Distance = "euclidean"
    """How ``triplet`` measures."""
    score_scale: float = 1.0
    """What ``in_batch`` multiplies scores by: 20 suits cosines, whose softmax is flat."""
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
    bucket_batches: int = 50
    """Batches whose examples are sorted by length together, so that those of a batch are about equal."""
    chunk_tokens: int | None = None
    """Encode so many tokens at a time and again on the way back (gradient caching): a large batch then needs
    the memory of a small one, and a third more time."""
    seed: int = 0

    def __post_init__(self) -> None:
        check_count("examples", self.examples)
        check_count("bucket_batches", self.bucket_batches)
        if self.chunk_tokens is not None:
            check_count("chunk_tokens", self.chunk_tokens)
