"""The lexical index: BM25 by tantivy."""

from collections import Counter
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tercet.extras import require
from tercet.index.base import check_ids
from tercet.inputs import check_k
from tercet.records import Ints
from tercet.text.cjk import split_cjk

WRITER_BYTES = 64_000_000
TEXT, NUMBER = "text", "number"
TOKENIZER = "stems"
MAX_TERM = 40
"""Longer terms are not indexed."""


def has_tantivy() -> bool:
    """Whether lexical search is installed."""
    return find_spec("tantivy") is not None


class LexicalIndex:
    """Texts with ids in a folder, ranked by BM25.

    English terms are stemmed. Korean, Japanese and Chinese text is indexed by character bigrams.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tantivy: Any = require("tantivy", extra="lexical", purpose="lexical search")
        tantivy = self._tantivy
        self._analyzer = (
            tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
            .filter(tantivy.Filter.remove_long(MAX_TERM))
            .filter(tantivy.Filter.lowercase())
            .filter(tantivy.Filter.stemmer("english"))
            .build()
        )
        schema = tantivy.SchemaBuilder()
        schema.add_text_field(TEXT, stored=False, tokenizer_name=TOKENIZER, index_option="freq")
        schema.add_unsigned_field(NUMBER, stored=False, indexed=True, fast=True)
        self._schema = schema.build()
        self._index = tantivy.Index(self._schema, path=str(folder))
        self._index.register_tokenizer(TOKENIZER, self._analyzer)

    def __len__(self) -> int:
        return int(self._index.searcher().num_docs)

    def add(self, ids: Ints, texts: Iterable[str]) -> None:
        """Add texts with new ids."""
        self.change(ids[:0], ids, texts)

    def remove(self, ids: Ints) -> None:
        """Remove texts; unknown ids are ignored."""
        self.change(ids, ids[:0], [])

    def change(self, removed: Ints, ids: Ints, texts: Iterable[str]) -> None:
        """Remove some texts and add others in one commit."""
        writer = self._index.writer(heap_size=WRITER_BYTES, num_threads=1)
        writer.garbage_collect_files()  # files of a killed writer would collide with new ones
        if len(removed):  # by query, because tantivy cannot delete integers by term
            numbers = check_ids(removed).tolist()
            writer.delete_documents_by_query(
                self._tantivy.Query.term_set_query(self._schema, NUMBER, numbers)
            )
        for number, text in zip(check_ids(ids).tolist(), texts, strict=True):
            document = self._tantivy.Document()
            document.add_text(TEXT, split_cjk(text))
            document.add_unsigned(NUMBER, number)
            writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
        for name in ("meta.json", ".managed.json"):  # tantivy lets only their owner read them
            (self._folder / name).chmod(self._folder.stat().st_mode & 0o666)
        self._index.reload()

    def search(self, text: str, k: int) -> list[tuple[int, float]]:
        """The ids and BM25 scores of the ``k`` best texts; texts that share no term are left out."""
        check_k(k)
        query, searcher = self._query(text), self._index.searcher()
        k = min(k, int(searcher.num_docs))  # tantivy reserves memory for k hits
        if query is None or not k:
            return []
        hits = searcher.search(query, limit=k, count=False).hits
        numbers = searcher.fast_field_values(NUMBER, [address for _, address in hits])
        return [(int(number), float(score)) for number, (score, _) in zip(numbers, hits, strict=True)]

    def reload(self) -> None:
        """Make the commits of other processes visible."""
        self._index.reload()

    def terms(self, text: str) -> list[str]:
        """The terms of a text as they are indexed."""
        terms: list[str] = self._analyzer.analyze(split_cjk(text))
        return terms

    def _query(self, text: str) -> Any:
        """A query for any of the terms, weighted by their counts; None if the text has no terms."""
        tantivy = self._tantivy
        clauses = [
            (
                tantivy.Occur.Should,
                tantivy.Query.boost_query(
                    tantivy.Query.term_query(self._schema, TEXT, term, index_option="freq"), float(count)
                ),
            )
            for term, count in Counter(self.terms(text)).items()
        ]
        return tantivy.Query.boolean_query(clauses) if clauses else None
