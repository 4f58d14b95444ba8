"""Retrieval data sets in the format of BEIR: corpus, queries and qrels (relevance judgements)."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from tercet.data.columns import check_column, filled, number
from tercet.data.problems import Problems
from tercet.data.reservoir import reservoir_sample
from tercet.data.rows import Row
from tercet.errors import DataError
from tercet.inputs import check_text
from tercet.records import Example
from tercet.settings.data import READER_COLUMNS

DEFAULTS = READER_COLUMNS["retrieval"]

ALIASES = {
    "id": ("id",),
    "query_id": ("query_id", "qid"),
    "document_id": ("corpus_id", "doc_id", "docid"),
    "relevance": ("relevance", "rel", "label", "grade"),
}
"""Other names under which the column of a role is looked up, in upper or lower case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalColumns:
    """The column names of the three files; ``settings.data.READER_COLUMNS`` has the defaults."""

    id: str
    """Corpus and queries: the id of a document or a query."""
    text: str
    """Corpus and queries: the text."""
    title: str
    """Corpus: prepended to the text if there is one."""
    query_id: str
    """Qrels: the query that was judged."""
    document_id: str
    """Qrels: the document that was judged."""
    relevance: str
    """Qrels: how relevant the document is; 0 is irrelevant. A file with no third column needs none."""

    def name(self, role: str) -> str:
        """The column of a role, as it is given."""
        given: str = getattr(self, role)
        return given

    def is_chosen(self, role: str) -> bool:
        """Whether the column of a role is another one than by default, so that it must exist."""
        return self.name(role) != DEFAULTS[role]

    def present(self, row: Row, role: str) -> str:
        """The column of a role that a row has; the given name if it has none.

        The defaults and their aliases stand for each other. Ids may be called otherwise in the corpus than in
        the queries, so the name given for one file does not exclude the default names in the other.
        """
        given = self.name(role)
        if given in row.columns or (self.is_chosen(role) and role != "id"):
            return given
        folded = {column.lower(): column for column in row.columns} | {
            column: column for column in row.columns
        }
        usual = (str(DEFAULTS[role]), *ALIASES.get(role, ()))
        return next((folded[name] for name in usual if name in folded), given)


@dataclass(frozen=True, slots=True)
class RetrievalSet:
    """Documents and queries by id, and for each query the relevance of the judged documents."""

    documents: dict[str, str]
    queries: dict[str, str]
    relevance: dict[str, dict[str, float]]
    skipped: dict[str, int] = field(default_factory=dict)
    """The number of rows that were not used, by reason."""
    unrated: int = 0
    """Judgements without a relevance, which count as relevant."""

    def sample_queries(self, count: int, *, seed: int) -> "RetrievalSet":
        """The same documents with at most ``count`` random queries."""
        kept = reservoir_sample(self.queries, count, seed=seed)
        return replace(
            self,
            queries={query: self.queries[query] for query in kept},
            relevance={query: self.relevance[query] for query in kept},
        )


class Judgement(NamedTuple):
    """The relevance of a document for a query; None if the row does not say."""

    query: str
    document: str
    relevance: float | None
    location: str

    @property
    def gain(self) -> float:
        """1 without a relevance; 0 if it is negative, with which some data sets mark spam."""
        return 1.0 if self.relevance is None else max(self.relevance, 0.0)


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts by id, and the location of each row without a text."""

    by_id: dict[str, str]
    empty: dict[str, str]

    def problem(self, name: str, what: str) -> str:
        """Why the id has no text; empty if it has one."""
        if name in self.by_id:
            return ""
        if name in self.empty:
            return f"the {what} {name!r} is judged and has no text ({self.empty[name]})"
        return f"there is no {what} with the id {name!r}"


def retrieval_examples(
    corpus: Iterable[Row], queries: Iterable[Row], qrels: Iterable[Row], columns: RetrievalColumns
) -> Iterator[Example]:
    """Examples of each query with each of its relevant documents."""
    reader = _Reader(columns)
    documents, questions, judgements = reader.read(corpus, queries, qrels)
    reader.problems.raise_if_any()
    for judgement in judgements:
        if judgement.gain > 0:
            yield Example(
                context=questions.by_id[judgement.query],
                candidates=(documents.by_id[judgement.document],),
                location=judgement.location,
            )


def read_retrieval_set(
    corpus: Iterable[Row], queries: Iterable[Row], qrels: Iterable[Row], columns: RetrievalColumns
) -> RetrievalSet:
    """All documents, and the queries that have a relevant document."""
    reader = _Reader(columns)
    documents, questions, judgements = reader.read(corpus, queries, qrels)
    _check_consistent(judgements, reader.problems)
    reader.problems.raise_if_any()
    judged, skipped = _by_query(judgements, documents)
    answered = {query: gains for query, gains in judged.items() if any(gains.values())}
    skipped["queries without a relevant document"] = len(judged) - len(answered)
    skipped["queries without a judgement"] = len({*questions.by_id, *questions.empty} - judged.keys())
    return RetrievalSet(
        documents.by_id,
        {query: questions.by_id[query] for query in answered},
        answered,
        {reason: count for reason, count in skipped.items() if count},
        sum(judgement.relevance is None for judgement in judgements),
    )


def _by_query(
    judgements: Iterable[Judgement], documents: Texts
) -> tuple[dict[str, dict[str, float]], Counter[str]]:
    """For each judged query the gains of its documents, and the number of rows that were skipped."""
    judged: dict[str, dict[str, float]] = {}
    skipped = Counter({"documents without a text": len(documents.empty)})
    for judgement in judgements:
        gains = judged.setdefault(judgement.query, {})
        if judgement.document not in documents.by_id:
            skipped["judgements of missing documents as irrelevant"] += 1
        elif judgement.document in gains:
            skipped["repeated judgements"] += 1
        else:
            gains[judgement.document] = judgement.gain
    return judged, skipped


class _Reader:
    """Reads the three files and gathers their problems."""

    def __init__(self, columns: RetrievalColumns) -> None:
        self.columns = columns
        self.problems = Problems(skippable=False)
        self._missing_columns = Problems(skippable=False)
        self._firsts: list[Row] = []

    def read(
        self, corpus: Iterable[Row], queries: Iterable[Row], qrels: Iterable[Row]
    ) -> tuple[Texts, Texts, list[Judgement]]:
        """Documents, queries and judgements; ``problems`` has what is wrong with them."""
        documents = self._texts(corpus, titles=True)
        questions = self._texts(queries, titles=False)
        self._check_chosen_id()
        judgements = list(self._judgements(qrels))
        self._missing_columns.raise_if_any()
        self._check_all_rated(judgements)
        self._check_known(judgements, documents, questions)
        return documents, questions, judgements

    def _texts(self, rows: Iterable[Row], *, titles: bool) -> Texts:
        """The texts of a file by id; a document without a text may have a title."""
        texts = Texts({}, {})
        roles, existing = ("title", "text") if titles else ("text",), set[str]()
        for row in self._with_columns(rows, lambda _: ("id", "text")):
            existing.update(row.columns)
            with self.problems.gather(row.location):
                name = str(filled(row, self.columns.present(row, "id")))
                if name in texts.by_id or name in texts.empty:
                    raise DataError(f"{row.location}: the id {name!r} occurs twice: ids must be unique")
                if text := _joined(row, [self.columns.present(row, role) for role in roles]):
                    texts.by_id[name] = text
                else:
                    texts.empty[name] = row.location
        if titles and existing and self.columns.is_chosen("title") and self.columns.title not in existing:
            self._note_missing(self._firsts[-1], "title")  # in JSONL, not every row must have it
        return texts

    def _judgements(self, rows: Iterable[Row]) -> Iterator[Judgement]:
        ids = ("query_id", "document_id")
        for row in self._with_columns(
            rows, lambda row: [*ids, *(["relevance"] if self._is_rated(row) else [])]
        ):
            with self.problems.gather(row.location):
                query, document = (str(filled(row, self.columns.present(row, role))) for role in ids)
                column = self.columns.present(row, "relevance")
                relevance = number(row, column) if self._is_rated(row) else None
                yield Judgement(query, document, relevance, row.location)

    def _is_rated(self, row: Row) -> bool:
        """Whether a judgement must have a relevance: it has a third column, or the user named one."""
        return len(row.columns) > 2 or self.columns.is_chosen("relevance")

    def _with_columns(self, rows: Iterable[Row], needed: Callable[[Row], Sequence[str]]) -> Iterator[Row]:
        """The rows; none if the first lacks the column of a role that ``needed`` names for it."""
        remaining = iter(rows)
        for first in remaining:
            self._firsts.append(first)
            lacking = [
                role for role in needed(first) if self.columns.present(first, role) not in first.columns
            ]
            for role in lacking:
                self._note_missing(first, role)
            if not lacking:
                yield from chain([first], remaining)
            return

    def _check_chosen_id(self) -> None:
        """Note that the name given for ids is neither in the corpus nor in the queries."""
        if self.columns.is_chosen("id") and not any(self.columns.id in row.columns for row in self._firsts):
            for row in self._firsts:
                if self.columns.present(row, "id") in row.columns:  # otherwise it is noted already
                    self._note_missing(row, "id")

    def _note_missing(self, row: Row, role: str) -> None:
        names = ", ".join(map(repr, row.columns)) or "none"
        self._missing_columns.add_location(
            row.location,
            f"column {self.columns.name(role)!r} is missing; the columns are {names}: rename one, or use "
            f"--column {role}=NAME (columns in TOML)",
        )

    def _check_all_rated(self, judgements: Sequence[Judgement]) -> None:
        """Note each judgement without a relevance if others have one."""
        if any(judgement.relevance is not None for judgement in judgements):
            for judgement in judgements:
                if judgement.relevance is None:
                    self.problems.add_location(
                        judgement.location,
                        f"the judgement has no {self.columns.relevance!r}, and others have one: add it",
                    )

    def _check_known(self, judgements: Iterable[Judgement], documents: Texts, queries: Texts) -> None:
        """Note each judged query, and each relevant document, that has no text; each id once."""
        noted: set[str] = set()
        for judgement in judgements:
            reasons = [queries.problem(judgement.query, "query")]
            if judgement.gain > 0:  # a missing document that is irrelevant changes no metric
                reasons.append(documents.problem(judgement.document, "document"))
            for reason in reasons:
                if reason and reason not in noted:
                    noted.add(reason)
                    self.problems.add_location(judgement.location, reason)


def _check_consistent(judgements: Iterable[Judgement], problems: Problems) -> None:
    """Note each document that is judged twice for a query, with different relevance."""
    seen: dict[tuple[str, str], float] = {}
    for judgement in judgements:
        pair = judgement.query, judgement.document
        if seen.setdefault(pair, judgement.gain) != judgement.gain:
            problems.add_location(
                judgement.location,
                f"the document {pair[1]!r} has another relevance for the query {pair[0]!r} in an earlier "
                "row: keep one",
            )


def _joined(row: Row, columns: Iterable[str]) -> str:
    """The texts in columns, one per line; empty ones are left out."""
    values = {column: row.columns.get(column) for column in columns}
    given = [column for column, value in values.items() if value is not None and str(value).strip()]
    return "\n".join(check_column(row, column, check_text) for column in given)
