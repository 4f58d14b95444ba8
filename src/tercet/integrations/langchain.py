"""LangChain: embeddings, and a document compressor that reranks."""

from collections.abc import Sequence
from typing import Any

from tercet.extras import require_package
from tercet.integrations.model import Model, loaded, ranking, vectors

require_package("langchain_core", package="langchain-core", purpose="tercet.integrations.langchain")

from langchain_core.documents import BaseDocumentCompressor, Document  # noqa: E402
from langchain_core.embeddings import Embeddings  # noqa: E402
from pydantic import ConfigDict, Field, field_validator  # noqa: E402


class TercetEmbeddings(Embeddings):
    """Vectors of documents and queries by a bi-encoder."""

    def __init__(self, model: Model = "bi") -> None:
        self.model = loaded(model)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vector of each document."""
        rows: list[list[float]] = vectors(self.model, texts, side="candidate").tolist()
        return rows

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query."""
        row: list[float] = vectors(self.model, [text], side="context")[0].tolist()
        return row


class TercetReranker(BaseDocumentCompressor):
    """Keeps the ``top_n`` best documents, with their scores as ``relevance_score`` in the metadata."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    model: Any = Field(default="cross", validate_default=True)
    top_n: int = 3

    _load = field_validator("model")(loaded)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Any = None
    ) -> list[Document]:
        """The best documents, best first."""
        texts = [document.page_content for document in documents]
        return [
            documents[position].model_copy(
                update={"metadata": documents[position].metadata | {"relevance_score": score}}
            )
            for position, score in ranking(self.model, query, texts, self.top_n)
        ]
