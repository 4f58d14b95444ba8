"""Evaluation tasks: what is measured on which data, as a TOML file, ``KIND:FILE`` or a retrieval folder."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from tercet.errors import InputError
from tercet.files.beir import NEEDED, contents, is_beir_folder
from tercet.files.structured import read_toml
from tercet.inputs import check_choice, check_seed
from tercet.settings.data import SAMPLE, DataConfig, ReaderKind
from tercet.settings.files import FileConfig
from tercet.settings.models import SCORER_CONFIGS
from tercet.settings.shipped import shipped_path
from tercet.settings.tables import from_table, strings_to_lists

TaskKind: TypeAlias = Literal[
    "similarity", "choices", "retrieval", "pairs", "classes", "triplets", "probe", "clusters"
]
TASK_KINDS: tuple[TaskKind, ...] = get_args(TaskKind)

TASK_READERS: dict[TaskKind, tuple[ReaderKind, ...]] = {
    "similarity": ("pairs",),
    "choices": ("choices", "answers", "dialogues"),
    "retrieval": ("retrieval",),
    "pairs": ("pairs",),
    "classes": ("pairs",),
    "triplets": ("triplets", "answers"),
}
"""The readers of each kind, the default first. ``probe`` and ``clusters`` read labelled texts."""

LABELLED_ROLES = ("text", "other", "label")

PREFIXES: dict[str, tuple[TaskKind, ReaderKind | None]] = {
    **{kind: (kind, None) for kind in TASK_KINDS},
    "answers": ("choices", "answers"),
}
"""What ``KIND`` may be in ``KIND:FILE``; for retrieval, ``FILE`` is a folder."""

MODEL_FILES = ("config.json", "modules.json", "tercet.json")
"""A folder with one of these is a model."""


@dataclass(frozen=True, kw_only=True)
class TaskConfig:
    """What is measured, and on which data."""

    name: str
    """Title of the task. A file may leave it out: its own name is the default."""
    kind: TaskKind
    """``similarity``: correlation with scores of pairs. ``choices``: the right candidate among given ones, or
    with ``reader = "answers"`` among all answers. ``retrieval``: relevant documents in a corpus. ``pairs``:
    binary classification. ``classes``: classification into named classes, such as NLI. ``triplets``: the
    positive before the negative. ``probe``: logistic regression over vectors. ``clusters``: k-means over
    vectors."""
    files: tuple[str, ...]
    """As in recipes. ``retrieval`` takes corpus, queries and qrels, or the folder that contains them."""
    reader: ReaderKind | None = None
    """What a row is, as in recipes. Default: the first one that fits the kind."""
    columns: dict[str, str] = field(default_factory=dict)
    """Column names by role, where they differ from the defaults."""
    labels: tuple[str, ...] = ()
    """``classes`` and ``pairs``: the label names, in the order of their numbers."""
    where: dict[str, str | int | float | bool] = field(default_factory=dict)
    """Read only rows with these column values."""
    limit: int | None = None
    """Use a random sample of this many cases."""
    seed: int = 0
    """Seed of the random sample, of folds and of k-means."""
    delimiter: str = ""
    """CSV files: the character between two cells. Default: recognized from the first lines."""
    encoding: str = ""
    """The encoding of the files, such as ``cp949``. Default: UTF-8, or UTF-16 by its byte order mark."""
    skip_empty: bool = False
    """Skip rows in which a column that is read is empty. Without it, they are an error."""
    test: tuple[str, ...] = ()
    """``probe``: test files. Default: 10-fold cross-validation."""
    group: str = ""
    """``similarity`` and ``pairs``: a column such as a topic; metrics are averaged over its values."""
    folds: int = 0
    """``similarity`` and ``pairs``: metrics are averaged over this many random folds."""
    split: str = ""
    """``retrieval`` from a folder: the judgements to use, such as ``dev`` for ``qrels/dev.tsv``. Default:
    ``test``, or the only ones."""

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, TASK_KINDS)
        for name in ("files", "test"):
            if isinstance(getattr(self, name), str):
                object.__setattr__(self, name, (getattr(self, name),))
        if self.group and self.folds:
            raise InputError(f"{self.name}: give either group or folds")
        if (self.group or self.folds) and self.kind not in ("similarity", "pairs"):
            raise InputError(f"{self.name}: group and folds apply to similarity and pairs, not {self.kind}")
        check_seed(self.seed)
        _ = self.file  # checks delimiter and encoding
        self._check_used()

    def _check_used(self) -> None:
        """Raise if a setting has no effect."""
        if self.is_labelled:
            for role in self.columns:
                check_choice(f"a column of {self.kind}", role, LABELLED_ROLES)
        elif self.reader is not None:
            check_choice(f"the reader of {self.kind}", self.reader, TASK_READERS[self.kind])
        unused = {
            "limit": self.limit is not None and self.is_labelled,
            "labels": bool(self.labels) and self.is_labelled,
            "reader": self.reader is not None and self.is_labelled,
            "test": bool(self.test) and self.kind != "probe",
            "skip_empty": self.skip_empty and self.kind == "retrieval",
            "split": bool(self.split) and not self.is_folder,
        }
        for name, is_set in unused.items():
            if is_set:
                raise InputError(f"{self.name}: {name} has no effect on {self.kind}: remove it")

    @property
    def file(self) -> FileConfig:
        """How the files are read."""
        return FileConfig(delimiter=self.delimiter, encoding=self.encoding)

    @property
    def is_labelled(self) -> bool:
        """Whether the data is texts with labels."""
        return self.kind not in TASK_READERS

    @property
    def is_folder(self) -> bool:
        """Whether the data is a retrieval set in a folder."""
        return self.kind == "retrieval" and len(self.files) == 1

    @property
    def ranks_all(self) -> bool:
        """Whether each answer is ranked among the answers of all rows."""
        return self.reader in ("answers", "dialogues") and "negatives" not in self.columns

    def data(self, files: tuple[str, ...] | None = None) -> DataConfig:
        """The data set."""
        return DataConfig(
            files=files or self.files,
            reader=self.reader or TASK_READERS[self.kind][0],
            columns=self.columns,
            labels=self.labels,
            where=self.where,
            delimiter=self.delimiter,
            encoding=self.encoding,
            skip_empty=self.skip_empty,
            limit=self.limit,
            seed=self.seed,
        )


INSTALLED = "task:"
"""Starts the name of a task that is installed with tercet."""


def is_task(name: str, *, root: Path | None = None) -> bool:
    """Whether a command-line argument names a task rather than a model.

    Args:
        root: the folder in which relative paths are looked up, after the current folder.
    """
    if name.startswith(INSTALLED):
        return True
    kind, _, file = name.partition(":")
    if name.endswith(".toml") or name.startswith(SAMPLE) or (kind in PREFIXES and bool(file)):
        return True
    folder = find_folder(name, root=root)
    return folder is not None and not is_model_folder(folder) and is_beir_folder(folder)


def is_model_folder(folder: Path) -> bool:
    """Whether a folder contains a model."""
    return any((folder / name).is_file() for name in MODEL_FILES)


def find_folder(name: str, *, root: Path | None = None) -> Path | None:
    """The folder with this name, in the current folder or in ``root``; packaged models are not folders."""
    places = [Path(name), *([] if root is None else [root / name])]
    try:
        return None if name in SCORER_CONFIGS else next((path for path in places if path.is_dir()), None)
    except OSError:  # such as a name that is too long
        return None


def neither_model_nor_task(folder: Path) -> InputError:
    """The error about a folder that is neither a model nor a retrieval set."""
    return InputError(
        f"{folder} is neither a model nor a retrieval set: a model folder needs one of "
        f"{', '.join(MODEL_FILES)}; {NEEDED}; {contents(folder)}"
    )


def read_task(name: str, *, columns: Mapping[str, str] | None = None, root: Path | None = None) -> TaskConfig:
    """The task of a name on the command line.

    It is that of a TOML file, installed as ``task:NAME``, of ``KIND:FILE``, or of the retrieval set in a
    folder or ``sample:NAME``.

    Args:
        columns: for tasks other than TOML files, column names by role.
        root: the folder in which a retrieval folder is looked up, after the current folder.
    """
    if name.startswith(INSTALLED):
        name = str(shipped_path("tasks", name.removeprefix(INSTALLED)))
    kind, _, file = name.partition(":")
    if kind in PREFIXES and file:
        task, reader = PREFIXES[kind]
        return TaskConfig(name=file, kind=task, files=(file,), reader=reader, columns=dict(columns or {}))
    if not name.endswith(".toml") and is_task(name, root=root):
        shown = name.rstrip("/") or name
        return TaskConfig(name=shown, kind="retrieval", files=(name,), columns=dict(columns or {}))
    path = Path(name)
    if path.suffix != ".toml":
        folder = find_folder(name, root=root)
        if folder is not None and not is_model_folder(folder):
            raise neither_model_nor_task(folder)
        raise InputError(
            f"{name!r} is not a task: give a TOML file, task:NAME such as task:stsb, KIND:FILE with one of "
            f"{', '.join(PREFIXES)}, or the folder of a retrieval set"
        )
    table = {"name": path.stem, **strings_to_lists(read_toml(path, "task"), ("files", "test"))}
    return from_table(TaskConfig, table, str(path))
