"""The word pieces that a training adds to the vocabulary of a model."""

from dataclasses import dataclass

from tercet.errors import InputError
from tercet.inputs import check_count, check_flag


@dataclass(frozen=True, kw_only=True)
class VocabularyConfig:
    """New word pieces for a language that the model's vocabulary cannot read."""

    pieces: int = 20_000
    """Maximum number of new word pieces."""
    min_frequency: int = 3
    """How often a piece of several letters must occur in the translations of the training data."""
    extension: bool = False
    """Also write ``extension``: the model as what it adds to its base, quantized, in a few megabytes."""

    def __post_init__(self) -> None:
        if self.pieces == 0:
            raise InputError("pieces must be at least 1, got 0: remove [vocabulary] to keep the vocabulary")
        for name in ("pieces", "min_frequency"):
            check_count(name, getattr(self, name))
        check_flag("extension", self.extension)
