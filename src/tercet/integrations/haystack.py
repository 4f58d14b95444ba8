"""Haystack: embedders of texts and documents, and a ranker."""

from dataclasses import replace

from tercet.errors import InputError
from tercet.extras import require_package
from tercet.inputs import shortened
from tercet.integrations.model import LoadedModel, Model, loaded, ranking, vectors

require_package("haystack", package="haystack-ai", purpose="tercet.integrations.haystack")

from haystack import Document, component  # noqa: E402


class _LoadedOnce:
    """Loads a model when it is first needed: a pipeline is often built, written and read before it is run."""

    def __init__(self, model: Model) -> None:
        self._given = model
        self._loaded: LoadedModel | None = None

    def __call__(self) -> LoadedModel:
        if self._loaded is None:
            self._loaded = loaded(self._given)
        return self._loaded


@component
class TercetTextEmbedder:
    """The vector of a query by a bi-encoder."""

    def __init__(self, model: Model = "bi") -> None:
        self.model = model
        self._model = _LoadedOnce(model)

    def warm_up(self) -> None:
        """Load the model."""
        self._model()

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, list[float]]:
        """The vector."""
        return {"embedding": vectors(self._model(), [text], side="context")[0].tolist()}


@component
class TercetDocumentEmbedder:
    """Documents with their vectors by a bi-encoder."""

    def __init__(self, model: Model = "bi") -> None:
        self.model = model
        self._model = _LoadedOnce(model)

    def warm_up(self) -> None:
        """Load the model."""
        self._model()

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Copies of the documents, with vectors."""
        found = vectors(self._model(), _texts(documents), side="candidate")
        return {
            "documents": [
                replace(each, embedding=vector.tolist())
                for each, vector in zip(documents, found, strict=True)
            ]
        }


@component
class TercetRanker:
    """The ``top_k`` documents with the best scores."""

    def __init__(self, model: Model = "cross", top_k: int = 10) -> None:
        self.model = model
        self._model = _LoadedOnce(model)
        self.top_k = top_k

    def warm_up(self) -> None:
        """Load the model."""
        self._model()

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Copies of the documents, best first."""
        found = ranking(self._model(), query, _texts(documents), self.top_k if top_k is None else top_k)
        return {"documents": [replace(documents[position], score=score) for position, score in found]}


def _texts(documents: list[Document]) -> list[str]:
    """The texts of documents; raises if one has none, such as an image."""
    for position, each in enumerate(documents):
        if not each.content:
            raise InputError(
                f"every document needs content, and document {position} (id {shortened(each.id, 20)}) has "
                "none: remove it, or convert it to text first"
            )
    return [str(each.content) for each in documents]
