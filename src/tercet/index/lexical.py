"""BM25 over texts, by tantivy."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tercet.errors import InputError
from tercet.extras import require

WRITER_BYTES = 64_000_000
TEXT, PLACE = "text", "place"
ENGLISH = "english"
LONGEST_WORD = 40


class LexicalIndex:
    """Texts in a folder of their own, found by their words; English words by their stems."""

    def __init__(self, folder: Path) -> None:
        self._tantivy: Any = require("tantivy", extra="lexical", purpose="searching by words")
        tantivy = self._tantivy
        self._analyzer = (
            tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
            .filter(tantivy.Filter.remove_long(LONGEST_WORD))
            .filter(tantivy.Filter.lowercase())
            .filter(tantivy.Filter.stemmer(ENGLISH))
            .build()
        )
        schema = tantivy.SchemaBuilder()
        schema.add_text_field(TEXT, stored=False, tokenizer_name=ENGLISH, index_option="freq")
        schema.add_unsigned_field(PLACE, stored=False, indexed=False, fast=True)
        self._schema = schema.build()
        self._index = tantivy.Index(self._schema, path=str(folder))
        self._index.register_tokenizer(ENGLISH, self._analyzer)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, texts: Iterable[str]) -> None:
        """Put texts behind those that are there; they are found by their place."""
        writer = self._index.writer(heap_size=WRITER_BYTES, num_threads=1)
        for text in texts:
            document = self._tantivy.Document()
            document.add_text(TEXT, text)
            document.add_unsigned(PLACE, self._count)
            writer.add_document(document)
            self._count += 1
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()

    def search(self, text: str, k: int) -> list[tuple[int, float]]:
        """The places and BM25 scores of the ``k`` best texts; none that shares no word."""
        if k < 1:
            raise InputError(f"k must be at least 1, got {k}")
        query = self._query(text)
        if query is None:
            return []
        searcher = self._index.searcher()
        hits = searcher.search(query, limit=k, count=False).hits
        places = searcher.fast_field_values(PLACE, [address for _, address in hits])
        return [(int(place), float(score)) for place, (score, _) in zip(places, hits, strict=True)]

    def _query(self, text: str) -> Any:
        """Any of the words, one that comes twice counting twice; None if there is no word."""
        tantivy = self._tantivy
        words = Counter(self._analyzer.analyze(text))
        terms = [
            (
                tantivy.Occur.Should,
                tantivy.Query.boost_query(
                    tantivy.Query.term_query(self._schema, TEXT, word, index_option="freq"), float(times)
                ),
            )
            for word, times in words.items()
        ]
        return tantivy.Query.boolean_query(terms) if terms else None
