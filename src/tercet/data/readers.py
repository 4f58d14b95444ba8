"""Which file is read, as what, and which of its columns is which."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from tercet.data.columns import check_column, filled
from tercet.data.drawing import drawn
from tercet.data.lessons import (
    answer_lessons,
    choice_lessons,
    dialogue_lessons,
    document_lessons,
    pair_lessons,
    scored_lessons,
)
from tercet.data.retrieval import RetrievalColumns, retrieval_lessons
from tercet.data.rows import Row
from tercet.data.sources import open_source
from tercet.errors import DataError, InputError
from tercet.inputs import check_choice, check_count, check_flag, check_string
from tercet.records import Lesson

ReaderKind: TypeAlias = Literal[
    "pairs", "triplets", "answers", "choices", "scored", "dialogues", "documents", "retrieval"
]
READER_KINDS: tuple[ReaderKind, ...] = get_args(ReaderKind)


class Reader(NamedTuple):
    """Rows to lessons, and the columns it looks at unless told otherwise; None: only if told."""

    read: Callable[..., Iterator[Lesson]]
    columns: Mapping[str, str | None]


READERS: dict[ReaderKind, Reader] = {
    "pairs": Reader(pair_lessons, {"context": "context", "candidate": "candidate", "target": "score"}),
    "triplets": Reader(answer_lessons, {"context": "anchor", "answer": "positive", "negatives": "negative"}),
    "answers": Reader(answer_lessons, {"context": "context", "answer": "answer", "negatives": None}),
    "choices": Reader(choice_lessons, {"context": "context", "candidates": "candidates", "label": "label"}),
    "scored": Reader(scored_lessons, {"context": "context", "candidates": "candidates", "scores": "scores"}),
    "dialogues": Reader(dialogue_lessons, {"turns": "turns"}),
    "documents": Reader(document_lessons, {"text": "text"}),
    "retrieval": Reader(
        retrieval_lessons,
        asdict(RetrievalColumns()),
    ),
}


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """A data set: where it is and how it is read."""

    files: tuple[str, ...]
    """Files (under the data folder, if their path is relative), ``sample:NAME``, or Hugging Face data sets
    (``hf:org/name@train``); several are read one after the other. ``retrieval`` takes exactly three: texts,
    queries, and which text answers which query."""
    reader: ReaderKind = "pairs"
    """``pairs``: two texts and a score or a label. ``triplets``: a text, a near and a far one. ``answers``: a
    context and its answer, perhaps with negatives. ``choices``: a context, candidates, and the place of the
    right one. ``scored``: a context, candidates, and a teacher's score of each. ``dialogues``: turns, each
    the answer to those before it. ``documents``: sentences, each with the next. ``retrieval``: see above."""
    columns: dict[str, str] = field(default_factory=dict)
    """The name of a column in the file, for each that is not called as the reader expects."""
    labels: tuple[str, ...] = ()
    """Of ``pairs``: the labels in the order of their numbers; without them the target is a number."""
    where: dict[str, str | int | float | bool] = field(default_factory=dict)
    """Only rows whose columns have these values, such as ``{ split = "test" }``."""
    limit: int | None = None
    """So many lessons only, drawn by chance."""
    seed: int = 0
    """Of that chance."""
    drop_overlap: bool = False
    """Leave out training rows that dev or test data hold too, instead of refusing to train."""
    together: str = ""
    """A column, such as the number of a dialogue: where some training lessons are held out to look at, those
    of rows with the same value there, in any of the files, stay together. Lessons of one row always do."""
    both_ways: bool = False
    """Learn each pair the other way round too, where neither text is the context of the other."""

    def __post_init__(self) -> None:
        check_choice("reader", self.reader, READER_KINDS)
        if isinstance(self.files, str):
            object.__setattr__(self, "files", (self.files,))
        if not self.files or not all(isinstance(name, str) for name in self.files):
            raise InputError(f"files must name at least one file, got {self.files!r}")
        if self.reader == "retrieval" and len(self.files) != 3:
            raise InputError(f"retrieval reads texts, queries and judgements: 3 files, got {len(self.files)}")
        known = READERS[self.reader].columns
        for role in self.columns:
            check_choice(f"a column of {self.reader}", role, tuple(known))
        if self.labels and self.reader != "pairs":
            raise InputError(f"labels are for pairs, not for {self.reader}")
        if self.where and self.reader == "retrieval":
            raise InputError("where chooses rows of one file, and retrieval reads three")
        check_string("together", self.together)
        if self.together and self.reader == "retrieval":
            raise InputError("together names a column of one file, and retrieval reads three")
        if self.limit is not None:
            check_count("limit", self.limit)
        for name in ("drop_overlap", "both_ways"):
            check_flag(name, getattr(self, name))


def read_lessons(config: DataConfig, *, root: Path | None = None) -> Iterator[Lesson]:
    """The lessons of a data set, streamed.

    Args:
        root: the folder that relative paths are looked for under.
    """
    read, usual = READERS[config.reader]
    columns = {role: name for role, name in {**usual, **config.columns}.items() if name is not None}
    options: dict[str, Any] = columns | ({"labels": config.labels} if config.labels else {})
    sources = [chosen_rows(open_source(name, root=root), config.where) for name in config.files]
    if config.reader == "retrieval":
        lessons = read(*sources, RetrievalColumns(**options))
    elif config.together:
        lessons = _grouped(chain.from_iterable(sources), config.together, partial(read, **options))
    else:
        lessons = read(chain.from_iterable(sources), **options)
    yield from lessons if config.limit is None else drawn(lessons, config.limit, seed=config.seed)


def all_lessons(config: DataConfig, *, root: Path | None = None) -> list[Lesson]:
    """The lessons of a data set, at least one."""
    lessons = list(read_lessons(config, root=root))
    if not lessons:
        raise DataError(f"{', '.join(config.files)}: there are no rows to read")
    return lessons


def _grouped(
    rows: Iterable[Row], column: str, read: Callable[[Iterable[Row]], Iterator[Lesson]]
) -> Iterator[Lesson]:
    """The lessons of each row, with the value that it shares with others."""
    for row in rows:
        group = str(filled(row, column))
        for lesson in read([row]):
            yield replace(lesson, group=group)


def chosen_rows(rows: Iterable[Row], where: Mapping[str, object]) -> Iterator[Row]:
    """The rows that have these values; a file of text, such as CSV, has them as text."""
    for row in rows:
        values = [check_column(row, column, lambda value, _: value) for column in where]
        if all(str(value) == str(wanted) for value, wanted in zip(values, where.values(), strict=True)):
            yield row
