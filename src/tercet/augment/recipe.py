"""A recipe of ``tercet augment``: what is labelled, where new pairs come from, who learns from them."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from tercet.augment.sampling import SamplingConfig
from tercet.augment.words import WordConfig
from tercet.data.readers import DataConfig
from tercet.errors import InputError
from tercet.files import read_toml
from tercet.inputs import check_choice, check_count, check_flag
from tercet.training.recipe import (
    Recipe,
    change_setting,
    check_keys,
    data_of,
    read_recipe,
    settings_of,
    table_of,
)

Labels: TypeAlias = Literal["soft", "binary"]
LABELS: tuple[Labels, ...] = get_args(Labels)

PARTS = ("about", "labeller", "student", "data", "texts", "sampling", "labelling", "learning", "words")
RECIPES = ("labeller", "student")
SETS = ("train", "dev", "test")
DISTILLED = ("margin_mse", "distribution")
SCORED = ("cosine", "order", "regression")


@dataclass(frozen=True, kw_only=True)
class TextsConfig:
    """Texts without labels, one in a row."""

    files: tuple[str, ...]
    columns: tuple[str, ...] = ("text",)
    """Each row gives the texts of these columns."""


@dataclass(frozen=True, kw_only=True)
class LabellingConfig:
    """How the cross-encoder labels."""

    seeds: int = 1
    """So many are trained, and the best on dev data labels: the paper found that some seeds fail."""
    ensemble: bool = False
    """All of them label, by their mean."""
    most_spread: float | None = None
    """Of an ensemble: leave out pairs whose scores, from 0 to 1, deviate more than this."""
    labels: Labels = "soft"
    """``soft``: scores. ``binary``: match or none, by the threshold with the best F1 on dev data."""

    def __post_init__(self) -> None:
        check_count("seeds", self.seeds)
        check_flag("ensemble", self.ensemble)
        check_choice("labels", self.labels, LABELS)
        if self.most_spread is not None and not (self.ensemble and 0 < self.most_spread < 1):
            raise InputError(
                f"most_spread is a deviation between 0 and 1 of an ensemble, got {self.most_spread}: "
                "set ensemble = true, or leave it out"
            )


@dataclass(frozen=True, kw_only=True)
class LearningConfig:
    """How the student learns."""

    seeds: int = 3
    """Students of each sampler, and of gold alone; their mean is what counts."""
    gold: bool = True
    """Learn from gold too; false where gold is of another domain than the texts."""
    rounds: int = 1
    """With 2, the first round's student looks for the pairs of the second (``semantic``), and so on."""

    def __post_init__(self) -> None:
        check_count("seeds", self.seeds)
        check_count("rounds", self.rounds)
        check_flag("gold", self.gold)


@dataclass(frozen=True, kw_only=True)
class AugmentRecipe:
    """Everything that decides what comes out of ``tercet augment``."""

    student: Recipe
    """Its data is replaced by gold, and by gold and silver."""
    train: DataConfig
    """Gold."""
    dev: DataConfig
    test: DataConfig
    labeller: Recipe | None = None
    """None where only words are changed."""
    texts: TextsConfig | None = None
    """New pairs are made of these; of gold's own texts if there are none."""
    sampling: SamplingConfig | None = None
    labelling: LabellingConfig = LabellingConfig()
    learning: LearningConfig = LearningConfig()
    words: WordConfig | None = None
    about: str = ""

    def __post_init__(self) -> None:
        if self.sampling is None and self.words is None:
            raise InputError("nothing says how pairs are made: add a table [sampling], [words], or both")
        if (self.sampling is None) != (self.labeller is None):
            raise InputError("new pairs need labels and labels pairs: give both a labeller and [sampling]")
        if self.texts is not None and self.sampling is None:
            raise InputError("texts are for new pairs: add [sampling] and a labeller, or leave [texts] out")
        if not self.learning.gold and self.words is not None:
            raise InputError("changed words are gold's words: set gold = true, or leave [words] out")
        if self.labeller is not None:
            self._check_labeller(self.labeller)
        self._check_student()

    def _check_labeller(self, labeller: Recipe) -> None:
        mine, theirs = self.student.objective, labeller.objective
        if theirs.kind != "regression":
            raise InputError(
                f"a labeller learns scores (objective regression), this one learns {theirs.kind}"
            )
        if (mine.lowest, mine.highest) != (theirs.lowest, theirs.highest):
            raise InputError(
                f"the labeller's scores go from {theirs.lowest:g} to {theirs.highest:g}, the student's from "
                f"{mine.lowest:g} to {mine.highest:g}: give both the range of gold in their [objective]"
            )
        if labeller.teachers:
            raise InputError(
                "a labeller learns from gold, not from a teacher: leave teacher out of its recipe"
            )

    def _check_student(self) -> None:
        student, known = self.student, (*SCORED, *DISTILLED)
        if student.objective.kind not in known:
            raise InputError(
                f"a student learns from scores, so its objective is one of {', '.join(known)}, not "
                f"{student.objective.kind}"
            )
        if student.teachers:
            raise InputError("a student learns from gold and silver: leave teacher out of its recipe")
        if self.distils and student.train.both_ways:
            raise InputError("a student that distils sees texts from both sides anyway: leave both_ways out")
        if self.distils and student.training.best_by == "spearman":
            raise InputError(
                'a student that distils is measured by "loss", "recall_at_1" or "mrr": set best_by'
            )
        if self.learning.rounds > 1 and not (self.sampling and "semantic" in self.sampling.samplers):
            raise InputError("a second round is for the sampler semantic, whose pairs the student searches")
        towers = student.model.settings.get("towers", 1)
        if self.learning.rounds > 1 and (student.model.kind == "poly" or towers == 2):
            raise InputError("only a bi-encoder of one tower can search for the pairs of a second round")

    @property
    def distils(self) -> bool:
        """Whether the student learns the scores of several candidates of a context against each other."""
        return self.student.objective.kind in DISTILLED

    def resolved(self) -> dict[str, Any]:
        """Every setting, as JSON can hold it."""
        table: dict[str, Any] = {"about": self.about}
        for name in ("labeller", "student"):
            part = getattr(self, name)
            table[name] = None if part is None else part.resolved()
        for name in ("train", "dev", "test", "texts", "sampling", "labelling", "learning", "words"):
            part = getattr(self, name)
            table[name] = None if part is None else asdict(part)
        return table


def read_augment_recipe(path: Path, changes: Iterable[str] = ()) -> AugmentRecipe:
    """The recipe in a TOML file; labeller and student are recipes of ``tercet train`` beside it.

    Args:
        changes: settings that differ from the file's, such as ``sampling.top_k=3``; those that begin with
            ``labeller`` or ``student`` are changes of these recipes.
    """
    table = read_toml(path)
    passed_on: dict[str, list[str]] = {name: [] for name in RECIPES}
    for change in changes:
        recipe, _, setting = change.partition(".")
        if recipe in RECIPES and setting:
            if recipe not in table:
                raise InputError(f"{change!r}: {path} names no {recipe}")
            passed_on[recipe].append(setting)
        else:
            change_setting(table, change)
    name = str(path)
    check_keys(table, PARTS, name)
    data = table_of(table, "data", name)
    check_keys(data, SETS, f"{name}, [data]")
    for each in SETS:
        if each not in data:
            raise InputError(
                f"{name} lacks [data.{each}]: gold to learn from, to choose by, and to measure with"
            )
    if not isinstance(table.get("student"), str):
        raise InputError(f"{name}: student must name a recipe of tercet train")
    parts: dict[str, Any] = {
        key: settings_of(kind, _listed(key, table_of(table, key, name)), f"{name}, [{key}]")
        for key, kind in _TABLES.items()
        if key in table
    }
    for key in RECIPES:
        if key in table:
            parts[key] = read_recipe(path.parent / str(table[key]), passed_on[key])
    for key in SETS:
        parts[key] = data_of(data[key], f"{name}, [data.{key}]")
    return AugmentRecipe(about=str(table.get("about", "")), **parts)


_TABLES: dict[str, type] = {
    "texts": TextsConfig,
    "sampling": SamplingConfig,
    "labelling": LabellingConfig,
    "learning": LearningConfig,
    "words": WordConfig,
}


def _listed(key: str, table: Mapping[str, Any]) -> Mapping[str, Any]:
    """One file or column of texts may stand alone, without a list."""
    if key != "texts":
        return table
    return {name: [value] if isinstance(value, str) else value for name, value in table.items()}
