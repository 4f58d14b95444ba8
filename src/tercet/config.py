"""Settings, one frozen dataclass per concept; defaults live here and nowhere else."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from tercet.errors import InputError
from tercet.inputs import check_choice

Precision: TypeAlias = Literal["fp32", "bf16"]
Side: TypeAlias = Literal["context", "candidate"]
Similarity: TypeAlias = Literal["cosine", "dot"]
PoolingKind: TypeAlias = Literal["first", "mean", "max", "mean_first", "mean_sqrt", "weighted_mean", "last"]

PRECISIONS: tuple[Precision, ...] = get_args(Precision)
SIDES: tuple[Side, ...] = get_args(Side)
SIMILARITIES: tuple[Similarity, ...] = get_args(Similarity)
POOLING_KINDS: tuple[PoolingKind, ...] = get_args(PoolingKind)


@dataclass(frozen=True, kw_only=True)
class PoolingConfig:
    """How the states of a text's tokens become one vector; several kinds are concatenated."""

    kinds: tuple[PoolingKind, ...] = ("mean",)
    first_tokens: int = 16
    """How many tokens ``mean_first`` averages."""
    include_prompt: bool = True
    """Whether the tokens of a prompt count."""

    def __post_init__(self) -> None:
        if not self.kinds:
            raise InputError(f"pooling needs at least one of {', '.join(POOLING_KINDS)}")
        for kind in self.kinds:
            check_choice("pooling", kind, POOLING_KINDS)
        if self.first_tokens < 1:
            raise InputError(f"first_tokens must be at least 1, got {self.first_tokens}")


@dataclass(frozen=True, kw_only=True)
class BiConfig:
    """What makes a bi-encoder out of its towers."""

    towers: int = 1
    """1: both sides share one tower (siamese). 2: each side has its own; they start equal."""
    similarity: Similarity = "cosine"
    context_prompt: str = ""
    """Put in front of every context."""
    candidate_prompt: str = ""
    """Put in front of every candidate."""
    turn_separator: str = "\n"
    """Stands between the turns of a context."""

    def __post_init__(self) -> None:
        check_choice("similarity", self.similarity, SIMILARITIES)
        for name in ("context_prompt", "candidate_prompt", "turn_separator"):
            if not isinstance(getattr(self, name), str):
                raise InputError(f"{name} must be a string, got {getattr(self, name)!r}")
        if self.towers not in (1, 2):
            raise InputError(f"towers must be 1 or 2, got {self.towers}")


@dataclass(frozen=True, kw_only=True)
class BatchConfig:
    """How much is computed at once."""

    tokens: int = 2048
    """Real tokens in one forward pass on a CPU; more is not faster and takes more memory."""
    gpu_tokens: int = 32_768
    """Real tokens in one forward pass on a GPU; fewer leave it idle, more are padded too much."""
    window_texts: int = 8192
    """Texts that are sorted by length together, and the most that a stream holds in memory."""
    window_characters: int = 4_000_000
    """Ends a window early when its texts are long."""
