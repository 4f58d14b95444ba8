"""Recipes of ``tercet pretrain``."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tercet.errors import InputError
from tercet.files.structured import read_toml
from tercet.inputs import check_count, check_flag, check_seed
from tercet.settings.data import DataConfig, data_from_table
from tercet.settings.tables import check_keys, from_table, set_value, subtable
from tercet.settings.training import BatchConfig, TrainingConfig

MIN_VOCABULARY = 100


@dataclass(frozen=True, kw_only=True)
class PretrainConfig:
    """The transformer that is pre-trained."""

    source: str = ""
    """Weights to continue from: ``bi``, a folder or a hub id. Default: a new BERT."""
    vocabulary: int = 8000
    """New model: size of the WordPiece vocabulary, learnt from the training text."""
    lowercase: bool = True
    """New model: whether text is lower-cased."""
    width: int = 256
    """New model: hidden size."""
    layers: int = 4
    """New model: number of layers."""
    heads: int = 4
    """New model: attention heads per layer."""
    max_tokens: int = 128
    """Maximum sequence length of a pair of texts."""
    mask_share: float = 0.15
    """Share of the tokens that are masked."""
    seed: int = 0
    """Seed of new weights."""

    def __post_init__(self) -> None:
        for name in ("vocabulary", "width", "layers", "heads", "max_tokens"):
            check_count(name, getattr(self, name))
        if self.vocabulary < MIN_VOCABULARY:
            raise InputError(f"vocabulary must be at least {MIN_VOCABULARY}, got {self.vocabulary}")
        check_flag("lowercase", self.lowercase)
        check_seed(self.seed)
        if self.width % self.heads:
            raise InputError(f"width must be a multiple of heads, got {self.width} and {self.heads}")
        if not 0 < self.mask_share < 1:
            raise InputError(f"mask_share must be between 0 and 1, got {self.mask_share}")


@dataclass(frozen=True, kw_only=True)
class PretrainRecipe:
    """Everything that determines the result of a pre-training."""

    model: PretrainConfig
    train: DataConfig
    dev: DataConfig | None
    batches: BatchConfig
    training: TrainingConfig
    about: str = ""


def read_pretrain_recipe(path: Path, changes: Sequence[str] = ()) -> PretrainRecipe:
    """The recipe in a TOML file.

    Args:
        changes: assignments that override the file, such as ``training.epochs=3``.
    """
    table, name = read_toml(path), str(path)
    for change in changes:
        set_value(table, change)
    check_keys(table, ("about", "model", "data", "batches", "training"), name)
    data = subtable(table, "data", name)
    check_keys(data, ("train", "dev"), f"{name}, [data]")
    if "train" not in data:
        raise InputError(f"{name} has no training data: add a table [data.train] with files = ...")
    splits = {split: data_from_table(data[split], f"{name}, [data.{split}]") for split in data}
    return PretrainRecipe(
        about=str(table.get("about", "")),
        model=from_table(PretrainConfig, subtable(table, "model", name), f"{name}, [model]"),
        train=splits["train"],
        dev=splits.get("dev"),
        batches=from_table(BatchConfig, subtable(table, "batches", name), f"{name}, [batches]"),
        training=from_table(TrainingConfig, subtable(table, "training", name), f"{name}, [training]"),
    )
