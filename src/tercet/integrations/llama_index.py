"""LlamaIndex: embeddings, and a node postprocessor that reranks."""

from asyncio import to_thread
from typing import Any

from tercet.errors import InputError
from tercet.extras import require_package
from tercet.integrations.model import loaded, ranking, vectors

require_package("llama_index.core", package="llama-index-core", purpose="tercet.integrations.llama_index")

from llama_index.core.base.embeddings.base import BaseEmbedding  # noqa: E402
from llama_index.core.bridge.pydantic import Field, field_validator  # noqa: E402
from llama_index.core.postprocessor.types import BaseNodePostprocessor  # noqa: E402
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle  # noqa: E402


class TercetEmbedding(BaseEmbedding):
    """Vectors of texts and queries by a bi-encoder."""

    model: Any = Field(default="bi", validate_default=True, exclude=True)
    embed_batch_size: int = Field(default=256, gt=0, le=2048)

    _load = field_validator("model")(loaded)

    @classmethod
    def class_name(cls) -> str:
        """The name in LlamaIndex's events."""
        return "TercetEmbedding"

    def _get_query_embedding(self, query: str) -> list[float]:
        row: list[float] = vectors(self.model, [query], side="context")[0].tolist()
        return row

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await to_thread(self._get_query_embedding, query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        rows: list[list[float]] = vectors(self.model, texts, side="candidate").tolist()
        return rows


class TercetReranker(BaseNodePostprocessor):
    """Keeps the ``top_n`` nodes with the best scores."""

    model: Any = Field(default="cross", validate_default=True, exclude=True)
    top_n: int = 3

    _load = field_validator("model")(loaded)

    @classmethod
    def class_name(cls) -> str:
        """The name in LlamaIndex's events."""
        return "TercetReranker"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise InputError("a reranker needs the query: pass query_str or query_bundle")
        texts = [each.node.get_content(metadata_mode=MetadataMode.EMBED) for each in nodes]
        found = ranking(self.model, query_bundle.query_str, texts, self.top_n)
        return [NodeWithScore(node=nodes[position].node, score=score) for position, score in found]
