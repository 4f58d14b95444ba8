"""Recipes of ``tercet augment``: gold data, sources of new pairs, the labeller and the student."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from tercet.errors import InputError
from tercet.files.structured import read_toml
from tercet.inputs import check_choice, check_count, check_flag, check_seed
from tercet.settings.data import DataConfig, data_from_table
from tercet.settings.recipe import SPLITS, Recipe, make_recipe, read_recipe
from tercet.settings.tables import check_keys, from_table, set_value, strings_to_lists, subtable

Labels: TypeAlias = Literal["soft", "binary"]
Sampler: TypeAlias = Literal["random", "kde", "bm25", "semantic", "bm25+semantic"]
WordChange: TypeAlias = Literal["synonyms", "substitution", "insertion", "deletion", "swap"]

LABELS: tuple[Labels, ...] = get_args(Labels)
SAMPLERS: tuple[Sampler, ...] = get_args(Sampler)
WORD_CHANGES: tuple[WordChange, ...] = get_args(WordChange)


@dataclass(frozen=True, kw_only=True)
class TextsConfig:
    """Unlabelled texts that new pairs are made of."""

    files: tuple[str, ...]
    """Files, ``sample:NAME`` or ``hf:NAME@SPLIT``."""
    columns: tuple[str, ...] = ("text",)
    """Columns that contain texts."""


@dataclass(frozen=True, kw_only=True)
class PairsConfig:
    """Unlabelled pairs that are labelled as they are."""

    files: tuple[str, ...]
    """Files, ``sample:NAME`` or ``hf:NAME@SPLIT``."""
    columns: tuple[str, ...] = ("context", "candidate")
    """The two columns that contain the texts of a pair."""
    limit: int | None = None
    """Label a random sample of this many pairs."""
    seed: int = 0
    """Seed of the random sample."""

    def __post_init__(self) -> None:
        if len(self.columns) != 2 or self.columns[0] == self.columns[1]:
            raise InputError(f"columns must name the two columns of a pair, got {', '.join(self.columns)}")
        if self.limit is not None:
            check_count("limit", self.limit)
        check_seed(self.seed)


@dataclass(frozen=True, kw_only=True)
class SamplingConfig:
    """How new pairs are sampled."""

    samplers: tuple[Sampler, ...] = ("bm25",)
    """``random``: random pairs. ``kde``: random pairs, filtered so that their scores are distributed as those
    of the gold data. ``bm25``: texts that share words. ``semantic``: nearest neighbours by a bi-encoder.
    ``bm25+semantic``: the union of both. Each sampler gets its own students."""
    top_k: int = 5
    """Neighbours per text for ``bm25`` and ``semantic``."""
    pairs: int | None = None
    """Maximum number of pairs per sampler, chosen at random. Required for ``random`` and ``kde``."""
    pool: int = 10
    """``kde``: number of random pairs to label per pair that is kept."""
    searcher: str = "bi"
    """``semantic``: the bi-encoder."""
    seed: int = 0
    """Random seed."""

    def __post_init__(self) -> None:
        if not self.samplers or len(set(self.samplers)) != len(self.samplers):
            raise InputError(f"samplers must be different ones of {', '.join(SAMPLERS)}, got {self.samplers}")
        for sampler in self.samplers:
            check_choice("a sampler", sampler, SAMPLERS)
        check_count("top_k", self.top_k)
        check_count("pool", self.pool)
        check_seed(self.seed)
        if self.pairs is not None:
            check_count("pairs", self.pairs)
        elif {"random", "kde"} & set(self.samplers):
            raise InputError("random and kde need the number of pairs: set pairs")


@dataclass(frozen=True, kw_only=True)
class LabellingConfig:
    """How cross-encoders label the new pairs."""

    seeds: int = 1
    """Number of cross-encoders to train. The one with the best dev result labels: some seeds fail."""
    ensemble: bool = False
    """Label with the mean score of all of them."""
    max_disagreement: float | None = None
    """Ensemble: drop pairs whose scores, from 0 to 1, have a larger standard deviation than this."""
    labels: Labels = "soft"
    """``soft``: scores. ``binary``: match or no match, from ``threshold`` on."""
    threshold: float | None = None
    """``binary``: the lowest score of a match, in the range of the gold scores. Default: the threshold with
    the best F1 on dev data."""
    match_from: float | None = None
    """``binary`` with graded gold data: the lowest gold score that counts as a match when the threshold is
    chosen on dev data."""

    def __post_init__(self) -> None:
        check_count("seeds", self.seeds)
        check_flag("ensemble", self.ensemble)
        check_choice("labels", self.labels, LABELS)
        for name in ("threshold", "match_from"):
            if getattr(self, name) is not None and self.labels != "binary":
                raise InputError(f'{name} has no effect on scores: set labels = "binary", or remove it')
        if self.max_disagreement is not None and not (self.ensemble and 0 < self.max_disagreement < 1):
            raise InputError(
                "max_disagreement must be between 0 and 1 and needs ensemble = true, got "
                f"{self.max_disagreement}"
            )


@dataclass(frozen=True, kw_only=True)
class StudentsConfig:
    """How students are trained."""

    seeds: int = 3
    """Number of students per sampler, and on gold data alone; results are their means."""
    gold: bool = True
    """Train on gold data too. Use false if the gold data is from another domain than the texts."""
    rounds: int = 1
    """``semantic``: number of rounds; from the second on, the student of the round before finds the pairs."""

    def __post_init__(self) -> None:
        check_count("seeds", self.seeds)
        check_count("rounds", self.rounds)
        check_flag("gold", self.gold)


@dataclass(frozen=True, kw_only=True)
class WordsConfig:
    """How words of gold pairs are changed."""

    changes: tuple[WordChange, ...] = ("synonyms",)
    """``synonyms`` from WordNet; ``substitution`` and ``insertion`` by a masked language model, or by the
    nearest words in an encoder's embedding table; ``deletion``; ``swap`` of adjacent words. Each change gets
    its own students."""
    rate: float = 0.1
    """Share of the words of a text that are changed, at least one."""
    copies: int = 1
    """Changed pairs per gold pair."""
    protected: tuple[str, ...] = ()
    """Words that are never changed, in addition to numbers and negations."""
    wordnet: str = ""
    """``synonyms``: the WordNet folder. Default: that of the extra ``wordnet``, or Debian's."""
    language_model: str = ""
    """Folder of the masked language model. Default: the embedding table of ``encoder``."""
    encoder: str = "bi"
    """The bi-encoder for ``min_similarity`` and, without ``language_model``, for the embedding table."""
    min_similarity: float = 0.7
    """Keep a changed text only if its cosine with the original is at least this; -1 disables the check."""
    seed: int = 0
    """Random seed."""

    def __post_init__(self) -> None:
        if not self.changes:
            raise InputError(f"changes must name at least one of {', '.join(WORD_CHANGES)}")
        for change in self.changes:
            check_choice("a change", change, WORD_CHANGES)
        if not 0 < self.rate <= 1:
            raise InputError(f"rate must be above 0 and at most 1, got {self.rate}")
        check_count("copies", self.copies)
        check_seed(self.seed)
        if not -1 <= self.min_similarity <= 1:
            raise InputError(f"min_similarity must be from -1 to 1, got {self.min_similarity}")


@dataclass(frozen=True, kw_only=True)
class AugmentRecipe:
    """Everything that determines the result of ``tercet augment``."""

    student: Recipe
    """Its data is replaced by gold and silver pairs."""
    train: DataConfig
    """Gold data."""
    dev: DataConfig | None = None
    """If there is none, part of the training data is held out."""
    test: DataConfig | None = None
    """If there is none, part of the training data is held out."""
    labeller: Recipe | None = None
    """Not needed if only words are changed."""
    texts: TextsConfig | None = None
    """Texts that new pairs are made of. Default: the texts of the gold data."""
    pairs: PairsConfig | None = None
    """Unlabelled pairs that the labeller labels."""
    sampling: SamplingConfig | None = None
    labelling: LabellingConfig = LabellingConfig()
    students: StudentsConfig = StudentsConfig()
    words: WordsConfig | None = None
    about: str = ""

    def __post_init__(self) -> None:
        unlabelled = self.sampling is not None or self.pairs is not None
        if not unlabelled and self.words is None:
            raise InputError("the recipe produces no pairs: add [sampling], [pairs] or [words]")
        if unlabelled != (self.labeller is not None):
            raise InputError(
                "new pairs need a labeller, and a labeller needs pairs: give labeller and [sampling] or "
                "[pairs], or none of them"
            )
        if self.texts is not None and self.sampling is None:
            raise InputError("[texts] needs [sampling] and a labeller: add them, or remove [texts]")
        if not self.students.gold and self.words is not None:
            raise InputError(
                "[words] changes gold pairs, but gold = false: set gold = true, or remove [words]"
            )

    def resolved(self) -> dict[str, Any]:
        """Every setting, as JSON can represent it."""
        table: dict[str, Any] = {"about": self.about}
        for name in ("labeller", "student"):
            part = getattr(self, name)
            table[name] = None if part is None else part.resolved()
        for name in ("train", "dev", "test", *TABLES):
            part = getattr(self, name)
            table[name] = None if part is None else asdict(part)
        return table


TABLES: dict[str, type] = {
    "texts": TextsConfig,
    "pairs": PairsConfig,
    "sampling": SamplingConfig,
    "labelling": LabellingConfig,
    "students": StudentsConfig,
    "words": WordsConfig,
}
RECIPES: dict[str, dict[str, Any]] = {
    "labeller": {
        "kind": "cross",
        "source": "bi",
        "head": "compare",
        "activation": "sigmoid",
        "symmetric": True,
    },
    "student": {"kind": "bi", "source": "bi"},
}
"""The recipes within an augment recipe, and the default ``[model]`` of one that is written as a table."""


def read_augment_recipe(path: Path, changes: Iterable[str] = ()) -> AugmentRecipe:
    """The recipe in a TOML file.

    Labeller and student are tables with the settings of ``tercet train``, or name such recipes beside the
    file. Neither needs data, which is replaced.

    Args:
        changes: assignments that override the file, such as ``sampling.top_k=3``. Those that start with
            ``labeller.`` or ``student.`` apply to these recipes.
    """
    table, name = read_toml(path), str(path)
    passed_on: dict[str, list[str]] = {recipe: [] for recipe in RECIPES}
    for change in changes:
        recipe, _, setting = change.partition(".")
        if recipe in RECIPES and setting:
            if recipe not in table:
                raise InputError(f"{change!r}: {name} has no {recipe}")
            passed_on[recipe].append(setting)
        else:
            set_value(table, change)
    check_keys(table, ("about", *RECIPES, "data", *TABLES), name)
    data = subtable(table, "data", name)
    check_keys(data, SPLITS, f"{name}, [data]")
    if "train" not in data:
        raise InputError(f"{name} has no gold data: add a table [data.train] with files = ...")
    if "student" not in table:
        raise InputError(f"{name} has no student: add [student.objective], or name a recipe of tercet train")
    parts: dict[str, Any] = {
        key: from_table(kind, _listed(key, subtable(table, key, name)), f"{name}, [{key}]")
        for key, kind in TABLES.items()
        if key in table
    }
    gold = {"train": data["train"]}
    for key in RECIPES:
        if key in table:
            parts[key] = _recipe_within(key, table[key], path, changes=passed_on[key], gold=gold)
    for split in data:
        parts[split] = data_from_table(data[split], f"{name}, [data.{split}]")
    return AugmentRecipe(about=str(table.get("about", "")), **parts)


def _recipe_within(
    key: str, given: Any, path: Path, *, changes: Iterable[str], gold: Mapping[str, Any]
) -> Recipe:
    """The labeller or student: a recipe file beside ``path``, or a table in it."""
    if isinstance(given, str):
        return read_recipe(path.parent / given, changes, default_data=gold)
    name = f"{path}, [{key}]"
    if not isinstance(given, dict):
        raise InputError(f"{name} must be a table or name a recipe of tercet train, got {given!r}")
    for change in changes:
        set_value(given, change)
    if "after" in given:
        raise InputError(f"{name}: after needs a recipe file: move the table to one, and name that")
    model = {**RECIPES[key], **subtable(given, "model", name)}
    return make_recipe({"data": gold, **given, "model": model}, name=name)


def _listed(key: str, table: Any) -> Any:
    return strings_to_lists(table, ("files", "columns")) if key in ("texts", "pairs") else table
