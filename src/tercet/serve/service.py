"""The models and indexes of a server, loaded and warmed up."""

import gc
from asyncio import to_thread
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tercet.errors import InputError, StaleIndexError
from tercet.formats.load import load
from tercet.formats.sources import stored_model
from tercet.index.opening import display, open_store
from tercet.inputs import SHOWN_CHARACTERS, shortened
from tercet.retrieve import Retriever
from tercet.scorers.cross_scorer import CrossScorer
from tercet.serve.engine import Engine
from tercet.serve.explaining import Explainer
from tercet.serve.indexes import ServedIndex
from tercet.serve.models import ServedDual, served
from tercet.serve.observer import Observer
from tercet.serve.scoring import score_all
from tercet.settings.serve import DEFAULT_MODELS, ServerConfig, named_source
from tercet.text.readable import readable_scripts

if TYPE_CHECKING:
    from tercet.scorers.loaded import LoadedScorer

WARM_UP = ("a short text", "a text of a few dozen words " * 8, "a long text that fills the model " * 60)


class UnknownIndexError(InputError):
    """No index of that name is served."""


class Service:
    """Everything that the routes need. Create and use it in one event loop."""

    def __init__(self, config: ServerConfig, observer: Observer | None = None) -> None:
        self.config = config
        self.engine = Engine(config.engine, observer, answer_seconds=config.limits.request_seconds)
        self.indexes: dict[str, ServedIndex] = {}
        self.fingerprints: dict[str, str] = {}
        self.scripts: dict[str, list[str]] = {}
        self.ready = False
        self.explainer = Explainer(self.engine)

    async def start(self) -> None:
        """Load the models, open the indexes, and run a few texts through each model."""
        serve = self.config.serve
        for name, source in (serve.models or self._default_models()).items():
            await self._load(name, source)
        if serve.reranker is not None:
            name, source = named_source(serve.reranker)
            if name not in self.engine.names:
                await self._load(name, source)
        for name, folder in serve.indexes.items():
            await self._open(name, folder)
        for name in self.engine.names:
            await score_all(self.engine, name, list(WARM_UP), list(WARM_UP))
        for index in self.indexes.values():
            await index.search(self.engine, WARM_UP[0], 1)
        await to_thread(_keep_for_good)
        self.ready = True

    async def close(self) -> None:
        """Stop the engine and close the indexes."""
        self.ready = False
        self.explainer.close()
        await self.engine.close()
        for index in self.indexes.values():
            index.retriever.close()

    def scorer(self, name: str) -> "LoadedScorer":
        """The scorer of a loaded model."""
        scorer: LoadedScorer = self.engine.model(name).scorer
        return scorer

    def index(self, name: str) -> ServedIndex:
        """An index."""
        found = self.indexes.get(name)
        if found is None:
            known = ", ".join(self.indexes) or "none"
            given = shortened(repr(name), SHOWN_CHARACTERS)
            raise UnknownIndexError(f"there is no index {given}: indexes are {known}")
        return found

    async def missing_indexes(self) -> list[str]:
        """The names of the indexes whose folders were moved, deleted or replaced."""
        indexes = list(self.indexes.values())
        return await to_thread(lambda: [index.name for index in indexes if index.is_missing()])

    def default_model(self, *, with_vectors: bool = False) -> str:
        """The first model, or the first bi- or poly-encoder."""
        for name in self.engine.names:
            if not with_vectors or isinstance(self.engine.model(name), ServedDual):
                return name
        raise InputError("no loaded model has vectors: start the server with --model bi")

    def default_reranker(self) -> str:
        """The model that reranks by default: the reranker, or the first model."""
        return self._reranker() or self.engine.names[0]

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
        scorer: Any = self.scorer(name)
        self.fingerprints[name] = await to_thread(lambda: scorer.fingerprint)
        self.scripts[name] = await to_thread(readable_scripts, scorer.tokenizer.spans)

    async def _open(self, name: str, folder: str) -> None:
        """Open an index with the loaded model that built it, or load that model too."""
        fingerprint, source = await to_thread(_built_by, folder)
        model = next((each for each, known in self.fingerprints.items() if known == fingerprint), None)
        if model is None:
            model = f"{name}-model" if source is None else Path(str(source)).name
            if source is None or model in self.engine.names:
                raise StaleIndexError(
                    f"no loaded model built the index {display(folder)} (its fingerprint is {fingerprint}): "
                    "give that model with --model NAME=FOLDER"
                )
            await self._load(model, str(stored_model(source, stored_in=display(folder), option="--model")))
        retriever = await to_thread(Retriever.open, folder, self.scorer(model))
        self.indexes[name] = ServedIndex(name, retriever, model=model, reranker=self._reranker())

    def _reranker(self) -> str | None:
        """The configured reranker, or the first cross-encoder."""
        if self.config.serve.reranker is not None:
            return named_source(self.config.serve.reranker)[0]
        crosses = (name for name in self.engine.names if isinstance(self.scorer(name), CrossScorer))
        return next(crosses, None)


def _keep_for_good() -> None:
    """Exempt what is loaded from garbage collection: looking through it takes a tenth of a second, during
    which no request is answered."""
    gc.collect()
    gc.freeze()


def _built_by(folder: str) -> tuple[str, str | None]:
    """The fingerprint and the source of the model that built an index."""
    store = open_store(folder)
    try:
        return store.metadata("fingerprint"), store.metadata("model")
    finally:
        store.close()
