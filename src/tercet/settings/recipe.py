"""Recipes of ``tercet train``: one TOML file with the model, the data, the objective and the settings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

from tercet.errors import InputError
from tercet.files.structured import read_toml
from tercet.inputs import describe
from tercet.settings.data import DataConfig, data_from_table
from tercet.settings.default_objective import default_negatives, default_objective, scorer_kind
from tercet.settings.models import SCORER_CONFIGS, AdapterConfig, ModelSpec
from tercet.settings.tables import check_keys, check_types, from_table, set_value, subtable
from tercet.settings.training import BatchConfig, ObjectiveConfig, TrainingConfig
from tercet.settings.vocabulary import VocabularyConfig

TABLES = (
    "about",
    "after",
    "teacher",
    "teacher_lexical_weight",
    "model",
    "data",
    "objective",
    "batches",
    "training",
    "adapter",
    "vocabulary",
)
SPLITS = ("train", "dev", "test")
SPEC_FIELDS = tuple(each.name for each in fields(ModelSpec) if each.name != "settings")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that determines the result of a training."""

    model: ModelSpec
    train: DataConfig
    dev: DataConfig | None
    """If there is none, part of the training data is held out."""
    test: DataConfig | None
    """Measured once, at the end, with the best model."""
    objective: ObjectiveConfig
    batches: BatchConfig
    training: TrainingConfig
    adapter: AdapterConfig | None = None
    vocabulary: VocabularyConfig | None = None
    """New word pieces, learnt from the translations of the training data."""
    about: str = ""
    teachers: tuple[str, ...] = ()
    """Models whose mean score replaces the targets of the data; in a file, ``teacher`` names one or a
    list."""
    teacher_lexical_weight: float = 0.0
    """Weight w of lexical overlap in the target (score + w · overlap) / (1 + w). The overlap is the
    idf-weighted share of the context's words that the candidate contains. Needs scores from -1 to 1."""
    after: "Recipe | None" = None
    """A recipe to train first. This recipe continues with the resulting model, or builds a new scorer on its
    encoder if ``[model]`` sets ``kind``."""

    def __post_init__(self) -> None:
        if self.adapter is not None and self.training.last_layer_std is not None:
            raise InputError("last_layer_std changes weights that adapters freeze: remove one of the two")
        check_types(Recipe, {"teacher_lexical_weight": self.teacher_lexical_weight}, "the recipe")
        if self.teacher_lexical_weight < 0:
            raise InputError(f"teacher_lexical_weight must be at least 0, got {self.teacher_lexical_weight}")
        if self.teacher_lexical_weight and not self.teachers:
            raise InputError("teacher_lexical_weight needs a teacher: name one")
        if self.vocabulary is not None and self.adapter is not None:
            raise InputError("adapters freeze new word pieces: remove [adapter] or [vocabulary]")

    def resolved(self) -> dict[str, Any]:
        """Every setting, as JSON can represent it."""
        table: dict[str, Any] = {
            "about": self.about,
            "teacher": one_or_list(self.teachers),
            "teacher_lexical_weight": self.teacher_lexical_weight,
            "model": self.model.resolved(),
        }
        for name in ("train", "dev", "test", "objective", "batches", "training", "adapter", "vocabulary"):
            part = getattr(self, name)
            table[name] = None if part is None else asdict(part)
        return table | {"after": None if self.after is None else self.after.resolved()}

    def with_seed(self, seed: int) -> "Recipe":
        """The same recipe with another seed for weights, batches and training."""
        return replace(
            self,
            model=replace(self.model, seed=seed),
            batches=replace(self.batches, seed=seed),
            training=replace(self.training, seed=seed),
            after=None if self.after is None else self.after.with_seed(seed),
        )


def one_or_list(names: Sequence[str]) -> str | list[str] | None:
    """The only name, or a list of several, or None."""
    return names[0] if len(names) == 1 else list(names) or None


def read_recipe(
    path: str | PathLike[str],
    changes: Iterable[str] = (),
    *,
    before: tuple[Path, ...] = (),
    default_data: Mapping[str, Any] | None = None,
) -> Recipe:
    """The recipe in a TOML file.

    Args:
        changes: assignments that override the file, such as ``training.epochs=3``.
        default_data: the table ``[data]`` of a recipe that has none.
        before: the recipes that led here through ``after``, to detect cycles.
    """
    if not isinstance(path, (str, PathLike)):
        raise InputError(f"path must name a recipe file, got {describe(path)}")
    path = Path(path)
    table = read_toml(path)
    for change in changes:
        set_value(table, change)
    if default_data is not None:
        table.setdefault("data", default_data)
    chain = (*before, path.resolve())
    after = None
    if "after" in table:
        if not isinstance(table["after"], str):
            raise InputError(f"{path}: after must name a recipe file; change its settings in that file")
        first = path.parent / table["after"]
        if first.resolve() in chain:
            raise InputError(f"{path}: after leads back to this recipe through {first}")
        after = read_recipe(first, before=chain)
    return make_recipe(table, name=str(path), after=after)


def make_recipe(table: Mapping[str, Any], *, name: str, after: Recipe | None = None) -> Recipe:
    """The recipe in nested tables; errors call it ``name``."""
    check_keys(table, TABLES, name)
    data = subtable(table, "data", name)
    check_keys(data, SPLITS, f"{name}, [data]")
    if "train" not in data:
        raise InputError(f"{name} has no training data: add a table [data.train] with files = ...")
    splits = {split: data_from_table(data[split], f"{name}, [data.{split}]") for split in data}
    adapter, vocabulary = table.get("adapter"), table.get("vocabulary")
    model = _model_spec(subtable(table, "model", name), f"{name}, [model]", trained=after is not None)
    objective = _objective(subtable(table, "objective", name), name, model, splits["train"], after)
    negatives = default_negatives(objective.kind, splits["train"])
    batches = {"negatives": negatives, **subtable(table, "batches", name)}
    return Recipe(
        about=str(table.get("about", "")),
        teachers=_teachers(table.get("teacher", []), name),
        teacher_lexical_weight=table.get("teacher_lexical_weight", 0.0),
        after=after,
        model=model,
        train=splits["train"],
        dev=splits.get("dev"),
        test=splits.get("test"),
        objective=objective,
        batches=from_table(BatchConfig, batches, f"{name}, [batches]"),
        training=from_table(TrainingConfig, subtable(table, "training", name), f"{name}, [training]"),
        adapter=None if adapter is None else from_table(AdapterConfig, adapter, f"{name}, [adapter]"),
        vocabulary=None
        if vocabulary is None
        else from_table(VocabularyConfig, vocabulary, f"{name}, [vocabulary]"),
    )


def _teachers(given: Any, where: str) -> tuple[str, ...]:
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not all(isinstance(each, str) and each.strip() for each in names):
        raise InputError(f"{where}: teacher must name a model or a list of models, got {given!r}")
    if len(set(names)) < len(names):
        raise InputError(f"{where}: a teacher is named twice: {', '.join(names)}")
    return tuple(names)


def _objective(
    table: Mapping[str, Any], name: str, model: ModelSpec, data: DataConfig, after: Recipe | None
) -> ObjectiveConfig:
    """The objective of ``[objective]``; without a kind, the one for this model and reader."""
    trained = model if after is None or model.kind != "model" else after.model
    default = default_objective(scorer_kind(trained), data)
    given = {"kind": default, **table} if default is not None else table
    return from_table(ObjectiveConfig, given, f"{name}, [objective]")


def _model_spec(table: Mapping[str, Any], where: str, *, trained: bool) -> ModelSpec:
    """The spec of ``[model]``, which also contains the settings of the scorer."""
    kind = table.get("kind", ModelSpec.kind)
    known: Mapping[Any, Any] = SCORER_CONFIGS if isinstance(kind, str) else {}  # others are refused below
    theirs = known[kind] if kind in list(known) else None
    scorer_fields = {each.name for each in fields(theirs)} if theirs is not None else set()
    own = {name: value for name, value in table.items() if name in SPEC_FIELDS and name not in scorer_fields}
    if trained and "source" in own:
        raise InputError(f"{where}: a recipe with `after` starts from that recipe's model: remove source")
    settings = {name: value for name, value in table.items() if name not in own}
    return from_table(ModelSpec, {**own, "settings": settings}, where)
