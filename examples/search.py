"""Store candidates in an index on disk, search it with conditions, and rerank the best."""

import tempfile
from pathlib import Path

import tercet
from tercet.data.sample import questions

with tempfile.TemporaryDirectory() as folder:
    retriever = tercet.Retriever("bi", reranker="cross", path=Path(folder) / "faq.tercet")
    retriever.add(
        {"text": entry.question, "topic": entry.topic, "answer": entry.answer} for entry in questions("en")
    )
    for hit in retriever.search("My card was declined", k=2, where={"topic": "payments"}, rerank=10):
        print(f"{hit.score:.2f} {hit.text} -> {hit.metadata['answer']}")
    print(retriever.search("My card was declined", k=2, rerank=0).certainty)
    retriever.close()
