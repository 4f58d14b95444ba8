"""Where a data set is, and how its rows are read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from tercet.errors import InputError
from tercet.inputs import check_choice, check_count, check_flag, check_string
from tercet.settings.files import FileConfig
from tercet.settings.tables import from_table, strings_to_lists

ReaderKind: TypeAlias = Literal[
    "pairs",
    "triplets",
    "answers",
    "choices",
    "scored",
    "dialogues",
    "documents",
    "translations",
    "retrieval",
]
READER_KINDS: tuple[ReaderKind, ...] = get_args(ReaderKind)

SAMPLE = "sample:"
"""Starts the names of sample data."""

READER_COLUMNS: dict[ReaderKind, Mapping[str, str | None]] = {
    "pairs": {"context": "context", "candidate": "candidate", "score": "score"},
    "triplets": {"context": "anchor", "answer": "positive", "negatives": "negative"},
    "answers": {"context": "context", "answer": "answer", "negatives": None},
    "choices": {"context": "context", "candidates": "candidates", "label": "label"},
    "scored": {"context": "context", "candidates": "candidates", "scores": "scores"},
    "dialogues": {"turns": "turns"},
    "documents": {"text": "text"},
    "translations": {"source": "source", "target": "target"},
    "retrieval": {
        "id": "_id",
        "text": "text",
        "title": "title",
        "query_id": "query-id",
        "document_id": "corpus-id",
        "relevance": "score",
    },
}
"""The columns of each reader by role, with their default names; None: the role is optional."""


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """A data set: its files and how they are read."""

    files: tuple[str, ...]
    """Files (relative paths are looked up in the data folder), ``sample:NAME``, or Hugging Face data sets
    (``hf:org/name@train``). Several are read one after the other. ``retrieval`` takes exactly three: corpus,
    queries and relevance judgements."""
    reader: ReaderKind = "pairs"
    """``pairs``: two texts and a score or label. ``triplets``: an anchor, a positive and a negative.
    ``answers``: a context and its answer, optionally with negatives. ``choices``: a context, candidates, and
    the index of the right one. ``scored``: a context, candidates, and a teacher's score of each.
    ``dialogues``: turns, each of which answers those before it. ``documents``: sentences, each followed by
    the next. ``translations``: a text and its translation into another language. ``retrieval``: queries with
    relevant documents."""
    columns: dict[str, str] = field(default_factory=dict)
    """Column names by role, where they differ from the reader's defaults."""
    labels: tuple[str, ...] = ()
    """For ``pairs``: the label names, in the order of their numbers. Without them the score is a number."""
    where: dict[str, str | int | float | bool] = field(default_factory=dict)
    """Read only rows with these column values, such as ``{ split = "test" }``."""
    delimiter: str = ""
    """CSV files: the character between two cells. Default: recognized from the first lines."""
    encoding: str = ""
    """The encoding of the files, such as ``cp949``. Default: UTF-8, or UTF-16 by its byte order mark."""
    skip_empty: bool = False
    """Skip rows in which a column that is read is empty. Without it, they are an error."""
    limit: int | None = None
    """Use a random sample of this many examples."""
    seed: int = 0
    """Seed of the random sample."""
    drop_overlap: bool = False
    """Remove training rows that also occur in dev or test data. Without it, overlap is an error."""
    group_column: str = ""
    """A column such as a dialogue id. If dev data is split off the training data, rows with the same value
    stay together. Examples of one row always stay together."""
    both_directions: bool = False
    """Train on each pair in both directions, for pairs of interchangeable texts."""

    def __post_init__(self) -> None:
        check_choice("reader", self.reader, READER_KINDS)
        if isinstance(self.files, str):
            object.__setattr__(self, "files", (self.files,))
        if not self.files or not all(isinstance(name, str) for name in self.files):
            raise InputError(f"files must name at least one file, got {self.files!r}")
        for role in self.columns:
            check_choice(f"a column of {self.reader}", role, tuple(READER_COLUMNS[self.reader]))
        if self.labels and self.reader != "pairs":
            raise InputError(f"labels apply to pairs, not to {self.reader}")
        check_string("group_column", self.group_column)
        _ = self.file  # checks delimiter and encoding
        if self.reader == "retrieval":
            self._check_retrieval()
        if self.reader == "translations" and self.both_directions:
            raise InputError("both_directions exchanges texts, and a source is not a translation: remove it")
        if self.limit is not None:
            check_count("limit", self.limit)
        for name in ("drop_overlap", "both_directions", "skip_empty"):
            check_flag(name, getattr(self, name))

    def _check_retrieval(self) -> None:
        if len(self.files) != 3:
            raise InputError(
                f"retrieval reads 3 files (corpus, queries, relevance judgements), got {len(self.files)}"
            )
        for name in ("where", "group_column", "skip_empty"):
            if getattr(self, name):
                raise InputError(f"{name} applies to rows of one file, and retrieval reads three")

    @property
    def file(self) -> FileConfig:
        """How the files are read."""
        return FileConfig(delimiter=self.delimiter, encoding=self.encoding)

    def column_names(self) -> dict[str, str]:
        """The column of each role that is read."""
        names = {**READER_COLUMNS[self.reader], **self.columns}
        return {role: name for role, name in names.items() if name is not None}


def data_from_table(table: Any, where: str) -> DataConfig:
    """A data set from a TOML table; a single file needs no list."""
    return from_table(DataConfig, strings_to_lists(table, ["files"]), where)
