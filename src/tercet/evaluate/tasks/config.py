"""A task: what is measured on which data, as a TOML file or in one word."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from tercet.data.readers import DataConfig, ReaderKind
from tercet.errors import InputError
from tercet.inputs import check_choice, check_seed, check_types, with_tuples

TaskKind: TypeAlias = Literal["similarity", "choices", "retrieval", "pairs", "triplets", "probe", "clusters"]
TASK_KINDS: tuple[TaskKind, ...] = get_args(TaskKind)

READERS: dict[TaskKind, tuple[ReaderKind, ...]] = {
    "similarity": ("pairs",),
    "choices": ("choices", "answers", "dialogues"),
    "retrieval": ("retrieval",),
    "pairs": ("pairs",),
    "triplets": ("triplets", "answers"),
}
"""What each kind is read with; the first unless told."""

LABELLED_ROLES = ("text", "other", "label")

WORDS: dict[str, tuple[TaskKind, ReaderKind | None]] = {
    **{kind: (kind, None) for kind in TASK_KINDS if kind != "retrieval"},  # which is three files
    "answers": ("choices", "answers"),
}
"""What may stand before a file's name on the command line."""


@dataclass(frozen=True, kw_only=True)
class TaskConfig:
    """What is measured, on which data."""

    name: str
    kind: TaskKind
    """``similarity``: pairs with a score. ``choices``: a context, candidates and the right one, or answers
    (``reader = "answers"``), each among all. ``retrieval``: texts, queries and judgements. ``pairs``: matches
    and others. ``triplets``: the near one before the far one. ``probe``: a logistic regression over vectors.
    ``clusters``: k-means over vectors."""
    files: tuple[str, ...]
    """As in recipes."""
    reader: ReaderKind | None = None
    columns: dict[str, str] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    where: dict[str, str | int | float | bool] = field(default_factory=dict)
    limit: int | None = None
    seed: int = 0
    skip_empty: bool = False
    """Of ``probe`` and ``clusters``: leave out rows without a text instead of refusing them."""
    test: tuple[str, ...] = ()
    """Of ``probe``: the files it is tested on; 10 folds if there are none."""
    group: str = ""
    """Of ``similarity`` and ``pairs``: a column, such as a topic; measures are means over its values."""
    folds: int = 0
    """The same over so many folds drawn by chance."""

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, TASK_KINDS)
        for name in ("files", "test"):
            if isinstance(getattr(self, name), str):
                object.__setattr__(self, name, (getattr(self, name),))
        if self.group and self.folds:
            raise InputError(f"{self.name}: cases are grouped by a column or by folds: choose one")
        if (self.group or self.folds) and self.kind not in ("similarity", "pairs"):
            raise InputError(f"{self.name}: group and folds are for similarity and pairs, not {self.kind}")

        check_seed(self.seed)
        self._check_used()

    def _check_used(self) -> None:
        """Raise if a setting would be ignored."""
        labelled = self.kind in ("probe", "clusters")
        if labelled:
            for role in self.columns:
                check_choice(f"a column of {self.kind}", role, LABELLED_ROLES)
        elif self.reader is not None:
            check_choice(f"the reader of {self.kind}", self.reader, READERS[self.kind])
        ignored = {
            "limit": self.limit is not None and (labelled or self.kind == "retrieval"),
            "labels": bool(self.labels) and labelled,
            "reader": self.reader is not None and labelled,
            "test": bool(self.test) and self.kind != "probe",
            "skip_empty": self.skip_empty and not labelled,
        }
        for name, is_set in ignored.items():
            if is_set:
                raise InputError(f"{self.name}: {name} does nothing for {self.kind}: leave it out")

    @property
    def ranks_all(self) -> bool:
        """Whether an answer is to be found among the answers of all rows."""
        return self.reader in ("answers", "dialogues") and "negatives" not in self.columns

    def data(self, files: tuple[str, ...] | None = None) -> DataConfig:
        """What is read."""
        return DataConfig(
            files=files or self.files,
            reader=self.reader or READERS[self.kind][0],
            columns=self.columns,
            labels=self.labels,
            where=self.where,
            limit=self.limit,
            seed=self.seed,
        )


def is_task(named: str) -> bool:
    """Whether a word on the command line names a task rather than a model."""
    kind, _, file = named.partition(":")
    return named.endswith(".toml") or (kind in WORDS and bool(file))


def read_task(named: str, *, columns: Mapping[str, str] | None = None) -> TaskConfig:
    """The task that a TOML file describes, or ``KIND:FILE``."""
    kind, _, file = named.partition(":")
    if kind in WORDS and file:
        task, reader = WORDS[kind]
        return TaskConfig(name=file, kind=task, files=(file,), reader=reader, columns=dict(columns or {}))
    path = Path(named)
    if path.suffix != ".toml":
        raise InputError(
            f"{named!r} is no task: give a TOML file (tasks/ has some) or KIND:FILE, KIND being one of "
            f"{', '.join(WORDS)}"
        )
    return _from_table(path)


def _from_table(path: Path) -> TaskConfig:
    try:
        table: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no task {path}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    known = {each.name for each in fields(TaskConfig)}
    for name in table:
        if name not in known:
            raise InputError(f"{path}: there is no setting {name!r}, only {', '.join(sorted(known))}")
    for name in ("kind", "files"):
        if name not in table:
            raise InputError(f"{path}: {name} is missing")
    for name in ("files", "test"):
        if isinstance(table.get(name), str):
            table[name] = [table[name]]
    given = {"name": path.stem, **with_tuples(table)}
    check_types(TaskConfig, given, str(path))
    return TaskConfig(**given)
