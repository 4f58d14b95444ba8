"""BM25 over texts, by tantivy."""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tercet.errors import InputError
from tercet.extras import require
from tercet.index.base import check_ids
from tercet.records import Counts

WRITER_BYTES = 64_000_000
TEXT, NUMBER = "text", "number"
WORDS = "words"
LONGEST_WORD = 40

SPACELESS = re.compile("[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7a3]+")
"""Runs of Korean, Japanese and Chinese: endings stick to Korean words, the others have no spaces."""


class LexicalIndex:
    """Texts under ids in a folder of their own, found by their words.

    English words are found by their stems; Korean, Japanese and Chinese ones by the pairs of letters in them.
    """

    def __init__(self, folder: Path) -> None:
        self._tantivy: Any = require("tantivy", extra="lexical", purpose="searching by words")
        tantivy = self._tantivy
        self._analyzer = (
            tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
            .filter(tantivy.Filter.remove_long(LONGEST_WORD))
            .filter(tantivy.Filter.lowercase())
            .filter(tantivy.Filter.stemmer("english"))
            .build()
        )
        schema = tantivy.SchemaBuilder()
        schema.add_text_field(TEXT, stored=False, tokenizer_name=WORDS, index_option="freq")
        schema.add_unsigned_field(NUMBER, stored=False, indexed=True, fast=True)
        self._schema = schema.build()
        self._index = tantivy.Index(self._schema, path=str(folder))
        self._index.register_tokenizer(WORDS, self._analyzer)

    def __len__(self) -> int:
        return int(self._index.searcher().num_docs)

    def add(self, ids: Counts, texts: Iterable[str]) -> None:
        """Put texts under new ids."""
        self.change(ids[:0], ids, texts)

    def remove(self, ids: Counts) -> None:
        """Take out texts; ids that are not there do not matter."""
        self.change(ids, ids[:0], [])

    def change(self, removed: Counts, ids: Counts, texts: Iterable[str]) -> None:
        """Take out some texts and put in others, at once."""
        writer = self._index.writer(heap_size=WRITER_BYTES, num_threads=1)
        writer.garbage_collect_files()  # what a killed writer left would be in the way of new files
        if len(removed):  # by a query: tantivy does not delete whole numbers by a term
            numbers = check_ids(removed).tolist()
            writer.delete_documents_by_query(
                self._tantivy.Query.term_set_query(self._schema, NUMBER, numbers)
            )
        for number, text in zip(check_ids(ids).tolist(), texts, strict=True):
            document = self._tantivy.Document()
            document.add_text(TEXT, in_pairs(text))
            document.add_unsigned(NUMBER, number)
            writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()

    def search(self, text: str, k: int) -> list[tuple[int, float]]:
        """The ids and BM25 scores of the ``k`` best texts; none that shares no word."""
        if k < 1:
            raise InputError(f"k must be at least 1, got {k}")
        query = self._query(text)
        if query is None:
            return []
        searcher = self._index.searcher()
        hits = searcher.search(query, limit=k, count=False).hits
        numbers = searcher.fast_field_values(NUMBER, [address for _, address in hits])
        return [(int(number), float(score)) for number, (score, _) in zip(numbers, hits, strict=True)]

    def reload(self) -> None:
        """See what other processes have written."""
        self._index.reload()

    def words(self, text: str) -> list[str]:
        """The words of a text as they are looked for."""
        words: list[str] = self._analyzer.analyze(in_pairs(text))
        return words

    def _query(self, text: str) -> Any:
        """Any of the words, one that comes twice counting twice; None if there is no word."""
        tantivy = self._tantivy
        terms = [
            (
                tantivy.Occur.Should,
                tantivy.Query.boost_query(
                    tantivy.Query.term_query(self._schema, TEXT, word, index_option="freq"), float(times)
                ),
            )
            for word, times in Counter(self.words(text)).items()
        ]
        return tantivy.Query.boolean_query(terms) if terms else None


def in_pairs(text: str) -> str:
    """A text whose runs of Korean, Japanese or Chinese letters are the pairs of neighbours in them."""
    return SPACELESS.sub(lambda run: f" {' '.join(_pairs(run.group()))} ", text)


def _pairs(run: str) -> list[str]:
    return [run[place : place + 2] for place in range(max(1, len(run) - 1))]
