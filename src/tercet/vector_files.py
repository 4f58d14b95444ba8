"""Indexes to files of vectors and back: Parquet, ``.npy`` and faiss, without encoding a text again."""

import warnings
from collections.abc import Generator
from contextlib import closing
from os import PathLike
from pathlib import Path

from tercet.arrays import unit_vectors
from tercet.errors import InputError, StaleIndexError
from tercet.formats.sources import stored_model
from tercet.index.protocol import CandidateStore
from tercet.interchange.batches import ROWS_AT_ONCE, VectorBatch, VectorSource, after, checked, regrouped
from tercet.interchange.files import kind_of_file
from tercet.interchange.origin import Origin
from tercet.records import Progress
from tercet.retrieve import Retriever
from tercet.scorers.dual_scorer import DualScorer


def export_vectors(store: CandidateStore, path: str | PathLike[str], *, overwrite: bool = False) -> int:
    """Write id, text, metadata and vector of each candidate; returns how many.

    Args:
        path: ``.parquet``, ``.npy`` or ``.faiss``. The last two have the candidates in a JSONL file beside
            them.
    """
    kind = kind_of_file(Path(path))
    if store.is_chunked:
        raise InputError(f"{store.name} has a vector for each chunk: export its candidates to JSONL")
    with closing(_with_vectors(store)) as batches:
        return kind.write(Path(path), batches, origin_of(store), overwrite=overwrite)


def _with_vectors(store: CandidateStore) -> Generator[VectorBatch, None, None]:
    """All candidates with their vectors, of which there must be one."""
    is_empty = True
    for items, vectors in store.batches(with_vectors=True):
        if vectors is not None and items:
            is_empty = False
            yield VectorBatch(items, vectors)
    if is_empty:
        raise InputError(f"{store.name} has no candidates to export")


def origin_of(store: CandidateStore) -> Origin:
    """The model of an index, as a file of its vectors names it."""
    return Origin(
        fingerprint=store.metadata("fingerprint"),
        kind=store.metadata("kind"),
        model=store.metadata("model"),
        width=store.width,
        storage=store.summary()["storage"],
    )


def import_vectors(
    source: VectorSource,
    retriever: Retriever,
    *,
    name: str | None = None,
    on_progress: Progress | None = None,
) -> None:
    """Store the candidates of a file with their vectors; an interrupted import of the same file is resumed.

    Vectors whose file names their model are stored as they are. Others are normalized first if the model
    compares cosines.

    Args:
        retriever: an index of the same model.
        name: names the file and the settings of the import. Default: its path.
        on_progress: called with the number of candidates stored since the last call.
    """
    check_origin(source, retriever.scorer)
    name = name or str(source.path)
    if retriever.store.metadata("source") not in (None, name):
        raise InputError(f"{retriever.name} contains other candidates: choose another one")
    done = int(retriever.store.metadata("done") or 0)
    if on_progress is not None and done:
        on_progress(done)
    batches = checked(source.read(), source.path, retriever.scorer.width)
    for items, vectors in regrouped(after(batches, done), ROWS_AT_ONCE):
        if source.origin is None and retriever.scorer.uses_cosine:
            vectors = unit_vectors(vectors)
        done += len(items)
        retriever.store.add(items, vectors, store_metadata={"source": name, "done": done})
        if on_progress is not None:
            on_progress(len(items))


def check_origin(source: VectorSource, scorer: DualScorer) -> None:
    """Raise if another model made the vectors; warn if the file does not say which one did."""
    if source.origin is None:
        warnings.warn(
            f"{source.path} does not say which model made its vectors: that it was {scorer!r} cannot be "
            "checked",
            stacklevel=2,
        )
    elif source.origin.fingerprint != scorer.fingerprint:
        raise StaleIndexError(
            f"the vectors in {source.path} were made by the {source.origin.kind}-encoder "
            f"{source.origin.fingerprint}, got the {scorer.kind}-encoder {scorer.fingerprint}: name the "
            "model "
            "that made them (--model), or encode the texts again"
        )


def model_of(source: VectorSource, given: str | None) -> str | Path:
    """The model to open an imported index with: the given one, or the one that the file names."""
    if given is not None:
        return given
    if source.origin is None or source.origin.model is None:
        raise InputError(f"{source.path} does not name the model that made its vectors: name it (--model)")
    return stored_model(source.origin.model, stored_in=source.path, option="--model")
