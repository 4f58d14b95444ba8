"""BERTopic: a backend, because it takes only models of libraries that it knows."""

import numpy as np

from tercet.extras import require_package
from tercet.integrations.model import Model, loaded, vectors
from tercet.records import Floats

require_package("bertopic", package="bertopic", purpose="tercet.integrations.bertopic")

from bertopic.backend import BaseEmbedder  # noqa: E402


class TercetBackend(BaseEmbedder):
    """Vectors by a bi- or poly-encoder, for ``BERTopic(embedding_model=TercetBackend(...))``."""

    def __init__(self, model: Model = "bi") -> None:
        super().__init__(embedding_model=loaded(model))

    def embed(self, documents: list[str], verbose: bool = False) -> Floats:
        """``[N, D]``: the vector of each document or word; zeros if it is empty.

        BERTopic fills short lists of words with empty ones.
        """
        texts = list(documents)
        written = [position for position, text in enumerate(texts) if text.strip()]
        found = vectors(self.embedding_model, [texts[position] for position in written], side="candidate")
        filled = np.zeros((len(texts), found.shape[1]), dtype=np.float32)
        filled[written] = found
        return filled
