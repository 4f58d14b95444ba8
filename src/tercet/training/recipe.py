"""A recipe: one TOML file that says which model learns what from which data."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, cast

from tercet.config import AdapterConfig
from tercet.data.readers import DataConfig
from tercet.errors import InputError
from tercet.files import read_toml
from tercet.inputs import check_types, with_tuples
from tercet.models.start import Start, resolved
from tercet.training.settings import BatchSettings, ObjectiveConfig, TrainSettings

Settings = TypeVar("Settings")

PARTS = (
    "about",
    "after",
    "teacher",
    "teacher_words",
    "model",
    "data",
    "objective",
    "batches",
    "training",
    "adapter",
)
SETS = ("train", "dev", "test")
START_FIELDS = tuple(each.name for each in fields(Start) if each.name != "settings")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that decides what comes out of a training."""

    model: Start
    train: DataConfig
    dev: DataConfig | None
    """Held-out training data, if there is none."""
    test: DataConfig | None
    """Measured once, at the end, with the best model."""
    objective: ObjectiveConfig
    batches: BatchSettings
    training: TrainSettings
    adapter: AdapterConfig | None = None
    about: str = ""
    teachers: tuple[str, ...] = ()
    """Models whose mean score of context and candidates is the target, instead of what the data says; in a
    file, ``teacher`` names one or a list."""
    teacher_words: float = 0.0
    """How much the share of the context's words that a candidate has, by their rarity, counts beside the
    teacher's score, which must lie between -1 and 1: a bi-encoder overlooks names and numbers that a word for
    word comparison sees. Of pairs that are learnt both ways, it is the mean of both ways."""
    after: "Recipe | None" = None
    """What is trained before; this one begins with its model, or if it names a kind, with its encoder."""

    def __post_init__(self) -> None:
        if self.adapter is not None and self.training.last_layer_std is not None:
            raise InputError("last_layer_std changes weights that adapters leave as they are: choose one")
        check_types(Recipe, {"teacher_words": self.teacher_words}, "the recipe")
        if self.teacher_words < 0:
            raise InputError(f"teacher_words must be at least 0, got {self.teacher_words}")
        if self.teacher_words and not self.teachers:
            raise InputError("teacher_words counts beside a teacher's scores: name a teacher")

    def resolved(self) -> dict[str, Any]:
        """Every setting, as JSON can hold it."""
        teacher = one_or_all(self.teachers)
        table: dict[str, Any] = {"about": self.about, "teacher": teacher, "model": resolved(self.model)}
        if self.teacher_words:
            table["teacher_words"] = self.teacher_words  # which older runs do not know
        for name in ("train", "dev", "test", "objective", "batches", "training", "adapter"):
            part = getattr(self, name)
            table[name] = None if part is None else asdict(part)
        return table | {"after": None if self.after is None else self.after.resolved()}


def one_or_all(names: Sequence[str]) -> str | list[str] | None:
    """A list only of several: so runs of before there could be several are understood."""
    return names[0] if len(names) == 1 else list(names) or None


def read_recipe(path: Path, changes: Iterable[str] = (), *, before: tuple[Path, ...] = ()) -> Recipe:
    """The recipe in a file.

    Args:
        changes: settings that differ from the file's, such as ``training.epochs=3``.
        before: recipes that this one comes after, in a chain.
    """
    table = read_toml(path)
    for change in changes:
        change_setting(table, change)
    chain = (*before, path.resolve())
    after = None
    if "after" in table:
        if not isinstance(table["after"], str):
            raise InputError(f"{path}: after must name a recipe; its settings are changed in its own file")
        first = path.parent / table["after"]
        if first.resolve() in chain:
            raise InputError(f"{path} comes after {first}, which comes after it: break the circle")
        after = read_recipe(first, before=chain)
    return make_recipe(table, name=str(path), after=after)


def make_recipe(table: Mapping[str, Any], *, name: str, after: Recipe | None = None) -> Recipe:
    """The recipe that tables of settings say."""
    check_keys(table, PARTS, name)
    data = table_of(table, "data", name)
    check_keys(data, SETS, f"{name}, [data]")
    if "train" not in data:
        raise InputError(f"{name} names no training data: add a table [data.train] with files = ...")
    sets = {each: data_of(data[each], f"{name}, [data.{each}]") for each in data}
    adapter = table.get("adapter")
    return Recipe(
        about=str(table.get("about", "")),
        teachers=_teachers(table.get("teacher", []), name),
        teacher_words=table.get("teacher_words", 0.0),
        after=after,
        model=_start(table_of(table, "model", name), f"{name}, [model]", trained=after is not None),
        train=sets["train"],
        dev=sets.get("dev"),
        test=sets.get("test"),
        objective=settings_of(ObjectiveConfig, table_of(table, "objective", name), f"{name}, [objective]"),
        batches=settings_of(BatchSettings, table_of(table, "batches", name), f"{name}, [batches]"),
        training=settings_of(TrainSettings, table_of(table, "training", name), f"{name}, [training]"),
        adapter=None if adapter is None else settings_of(AdapterConfig, adapter, f"{name}, [adapter]"),
    )


def _teachers(given: Any, where: str) -> tuple[str, ...]:
    """One may stand alone, without a list."""
    named = [given] if isinstance(given, str) else given
    if not isinstance(named, list) or not all(isinstance(each, str) and each.strip() for each in named):
        raise InputError(f"{where}: teacher names a model or a list of models, got {given!r}")
    if len(set(named)) < len(named):
        raise InputError(f"{where}: a teacher is named twice: {', '.join(named)}")
    return tuple(named)


def data_of(table: Any, where: str) -> DataConfig:
    """A data set; one file may stand alone, without a list."""
    if isinstance(table, Mapping) and isinstance(table.get("files"), str):
        table = {**table, "files": [table["files"]]}
    return settings_of(DataConfig, table, where)


def settings_of(kind: type[Settings], table: Any, where: str) -> Settings:
    """A dataclass from a table of a recipe; lists become tuples, what is unknown or missing is an error."""
    if not isinstance(table, Mapping):
        raise InputError(f"{where} must be a table, got {table!r}")
    known = fields(cast("Any", kind))
    check_keys(table, tuple(each.name for each in known), where)
    for each in known:
        if each.name not in table and each.default is MISSING and each.default_factory is MISSING:
            raise InputError(f"{where} lacks {each.name}")
    given = with_tuples(table)
    check_types(kind, given, where)
    try:
        return kind(**given)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    except TypeError as error:
        raise InputError(f"{where}: a value is of the wrong type ({error})") from None


def check_keys(table: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    """Raise if a table has a key that nobody reads."""
    strange = [key for key in table if key not in known]
    if strange:
        raise InputError(f"{where} has no setting {strange[0]!r}: it has {', '.join(known)}")


def _start(table: Mapping[str, Any], where: str, *, trained: bool) -> Start:
    """In a recipe the kind's own settings stand beside the others."""
    own = {name: value for name, value in table.items() if name in START_FIELDS}
    if trained and "source" in own:
        raise InputError(f"{where}: a recipe with `after` begins with that recipe's model, not with another")
    settings = {name: value for name, value in table.items() if name not in START_FIELDS}
    return settings_of(Start, {**own, "settings": settings}, where)


def table_of(table: Mapping[str, Any], key: str, name: str) -> Mapping[str, Any]:
    """A table of a recipe; an empty one where it is not there."""
    part = table.get(key, {})
    if not isinstance(part, Mapping):
        raise InputError(f"{name}: [{key}] must be a table, got {part!r}")
    return part


def change_setting(table: dict[str, Any], change: str) -> None:
    """Put ``training.epochs=3`` into the tables."""
    path, equals, value = change.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        raise InputError(f"a change is written as table.setting=value, got {change!r}")
    for key in keys[:-1]:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise InputError(f"{change!r}: {key} is no table")
    table[keys[-1]] = _value(value.strip())


def _value(text: str) -> Any:
    """A number, list or truth value as TOML writes it; anything else is text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
