"""KeyBERT: a backend, because it takes only models of libraries that it knows."""

from tercet.extras import require_package
from tercet.integrations.model import Model, loaded, vectors
from tercet.records import Floats

require_package("keybert", package="keybert", purpose="tercet.integrations.keybert")

from keybert.backend import BaseEmbedder  # noqa: E402


class TercetBackend(BaseEmbedder):
    """Vectors by a bi- or poly-encoder, for ``KeyBERT(model=TercetBackend(...))``."""

    def __init__(self, model: Model = "bi") -> None:
        super().__init__(embedding_model=loaded(model))

    def embed(self, documents: list[str], verbose: bool = False) -> Floats:
        """``[N, D]``: the vector of each document or word."""
        return vectors(self.embedding_model, list(documents), side="candidate")
