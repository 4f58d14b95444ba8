"""How hard negatives are mined."""

from dataclasses import dataclass
from math import isfinite
from typing import Literal, TypeAlias, get_args

from tercet.errors import InputError
from tercet.inputs import check_choice, check_count

Miner: TypeAlias = Literal["bm25", "model"]
MINERS: tuple[Miner, ...] = get_args(Miner)


@dataclass(frozen=True, kw_only=True)
class MiningConfig:
    """Which candidates become hard negatives."""

    by: Miner = "bm25"
    """``bm25``: candidates that share words with the context. ``model``: the model's top candidates."""
    negatives: int = 4
    """Negatives per example."""
    depth: int = 50
    """Number of top-ranked candidates to choose negatives from."""
    margin: float = 0.05
    """Minimum by which the answer must outscore a negative; a closer candidate may be right too."""

    def __post_init__(self) -> None:
        check_choice("by", self.by, MINERS)
        check_count("negatives", self.negatives)
        check_count("depth", self.depth)
        if not isfinite(self.margin) or self.margin < 0:
            raise InputError(f"margin must be a number of at least 0, got {self.margin}")
