"""The models and indexes of a server, loaded and warmed up."""

from asyncio import Semaphore
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tercet.errors import InputError, StaleIndexError
from tercet.formats.load import load
from tercet.formats.sources import stored_model
from tercet.index.store import Store
from tercet.retrieve import Retriever
from tercet.scorers.cross import CrossEncoder
from tercet.scorers.dual import DualEncoder
from tercet.serve.engine import Engine
from tercet.serve.indexes import ServedIndex
from tercet.serve.models import ServedDual, served
from tercet.serve.observer import Observer
from tercet.serve.scoring import score_all
from tercet.settings.serve import DEFAULT_MODELS, ServerConfig

if TYPE_CHECKING:
    from tercet.scorers.kinds import AnyScorer

WARM_UP = ("a short text", "a text of a few dozen words " * 8, "a long text that fills the model " * 60)


class UnknownIndexError(InputError):
    """No index of that name is served."""


class Service:
    """Everything that the routes need. Create and use it in one event loop."""

    def __init__(self, config: ServerConfig, observer: Observer | None = None) -> None:
        self.config = config
        self.engine = Engine(config.engine, observer)
        self.indexes: dict[str, ServedIndex] = {}
        self.fingerprints: dict[str, str] = {}
        self.ready = False
        self.explaining = Semaphore(1)
        """Explanations use a model beside the engine, so there is one at a time."""

    async def start(self) -> None:
        """Load the models, open the indexes, and run a few texts through each model."""
        serve = self.config.serve
        for name, source in (serve.models or self._default_models()).items():
            await self._load(name, source)
        for name, folder in serve.indexes.items():
            await self._open(name, Path(folder))
        if serve.reranker is not None:
            self.engine.model(serve.reranker)
        for name in self.engine.names:
            await score_all(self.engine, name, list(WARM_UP), list(WARM_UP))
            self.fingerprints[name] = self.scorer(name).fingerprint
        self.ready = True

    async def close(self) -> None:
        """Stop the engine and close the indexes."""
        self.ready = False
        await self.engine.close()
        for index in self.indexes.values():
            index.retriever.close()

    def scorer(self, name: str) -> "AnyScorer":
        """The scorer of a loaded model."""
        scorer: AnyScorer = self.engine.model(name).scorer
        return scorer

    def index(self, name: str) -> ServedIndex:
        """An index."""
        found = self.indexes.get(name)
        if found is None:
            known = ", ".join(self.indexes) or "none"
            raise UnknownIndexError(f"there is no index {name!r}: indexes are {known}")
        return found

    def default_model(self, *, with_vectors: bool = False) -> str:
        """The first model, or the first bi- or poly-encoder."""
        for name in self.engine.names:
            if not with_vectors or isinstance(self.engine.model(name), ServedDual):
                return name
        raise InputError("no loaded model has vectors: start the server with --model bi")

    def default_reranker(self) -> str:
        """The model that reranks by default: the configured one, the first cross-encoder, or the first."""
        if self.config.serve.reranker is not None:
            return self.config.serve.reranker
        crosses = (name for name in self.engine.names if isinstance(self.scorer(name), CrossEncoder))
        return next(crosses, self.engine.names[0])

    def _default_models(self) -> Mapping[str, str]:
        if self.config.serve.indexes:
            return {}
        return {name: name for name in DEFAULT_MODELS}

    async def _load(self, name: str, source: str) -> None:
        serve, batch_tokens = self.config.serve, self.config.engine.batch_tokens
        await self.engine.load(
            name,
            lambda: served(
                load(source, precision=serve.precision, device=serve.device), batch_tokens=batch_tokens
            ),
        )

    async def _open(self, name: str, folder: Path) -> None:
        """Open an index with the loaded model that built it, or load that model too."""
        store = Store(folder)
        fingerprint, source = store.metadata("fingerprint"), store.metadata("model")
        store.close()
        model = self._model_with(fingerprint)
        if model is None:
            model = f"{name}-model" if source is None else Path(str(source)).name
            if source is None or model in self.engine.names:
                raise StaleIndexError(
                    f"no loaded model built the index {folder} (its fingerprint is {fingerprint}): give that "
                    "model with --model NAME=FOLDER"
                )
            await self._load(model, str(stored_model(source, stored_in=folder, option="--model")))
        retriever = Retriever.open(folder, self.scorer(model))
        reranker = self.config.serve.reranker or self._first_cross()
        self.indexes[name] = ServedIndex(name, retriever, model=model, reranker=reranker)

    def _model_with(self, fingerprint: str) -> str | None:
        """The loaded model with a fingerprint."""
        for name in self.engine.names:
            scorer = self.scorer(name)
            if isinstance(scorer, DualEncoder) and scorer.fingerprint == fingerprint:
                return name
        return None

    def _first_cross(self) -> str | None:
        crosses = (name for name in self.engine.names if isinstance(self.scorer(name), CrossEncoder))
        return next(crosses, None)
