"""How long texts are split into chunks."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from tercet.errors import InputError
from tercet.inputs import check_choice, check_count, describe

Boundary: TypeAlias = Literal["words", "sentences"]
BOUNDARIES: tuple[Boundary, ...] = get_args(Boundary)


@dataclass(frozen=True, kw_only=True)
class ChunkConfig:
    """Chunks of a long text. The score of the text is that of its best chunk."""

    size: int | None = None
    """Maximum number of tokens of a chunk. Default: as many as the model reads."""
    overlap: int = 0
    """Maximum number of tokens that a chunk repeats from the one before it."""
    boundary: Boundary = "sentences"
    """Where a chunk may start. ``sentences``: at a sentence; one that is longer than a chunk is split between
    words. ``words``: at any word, so that all chunks but the last are about equally long."""

    def __post_init__(self) -> None:
        if self.size is not None:
            check_count("size", self.size)
        if isinstance(self.overlap, bool) or not isinstance(self.overlap, int) or self.overlap < 0:
            raise InputError(f"overlap must be a whole number of at least 0, got {describe(self.overlap)}")
        if self.size is not None and self.overlap >= self.size:
            raise InputError(
                f"overlap must be smaller than size, got overlap {self.overlap} and size {self.size}"
            )
        check_choice("boundary", self.boundary, BOUNDARIES)
