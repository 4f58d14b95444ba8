"""Stores by name: a folder, or the address of an index in a database."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from tercet.index.backends import BACKENDS, WITH_WORDS
from tercet.index.backends.address import is_address, parse_address
from tercet.index.dtypes import STORAGES
from tercet.index.folder import FolderStore, check_new
from tercet.index.lexical import has_tantivy
from tercet.index.protocol import CandidateStore
from tercet.index.store import DATABASE
from tercet.inputs import check_choice
from tercet.settings.index import Storage

__all__ = [
    "create_store",
    "display",
    "has_index",
    "has_lexical_search",
    "is_address",
    "migration",
    "open_store",
]


def open_store(name: str | PathLike[str]) -> CandidateStore:
    """The store in a folder or at an address, which must exist."""
    if not is_address(name):
        return FolderStore(Path(name))
    address = parse_address(str(name))
    return BACKENDS[address.scheme]().open(address)


def create_store(
    name: str | PathLike[str],
    width: int,
    *,
    storage: Storage = "float32",
    lexical: bool | None = None,
    chunked: bool = False,
    metadata: Mapping[str, Any] | None = None,
) -> CandidateStore:
    """An empty store in a new folder, or at an address where there is none yet.

    Args:
        lexical: whether to search words too. Default: if that is possible.
        chunked: whether a candidate has a vector for each of its chunks, instead of one.
        metadata: values to store with the index, such as the model.
    """
    lexical = has_lexical_search(name) if lexical is None else lexical
    if is_address(name):
        address = parse_address(str(name))
        backend = BACKENDS[address.scheme]()
        return backend.create(
            address, width, storage=storage, lexical=lexical, chunked=chunked, metadata=metadata
        )
    check_choice("storage", storage, tuple(STORAGES))
    check_new(Path(name))
    return FolderStore.create(
        Path(name), width, storage=storage, lexical=lexical, chunked=chunked, metadata=metadata
    )


def has_lexical_search(name: str | PathLike[str]) -> bool:
    """Whether words can be searched: some databases can, a folder needs tantivy."""
    return parse_address(str(name)).scheme in WITH_WORDS if is_address(name) else has_tantivy()


def has_index(name: str | PathLike[str]) -> bool:
    """Whether there is an index in a folder or at an address. Tables that were never used do not count."""
    if not is_address(name):
        return (Path(name) / DATABASE).is_file()
    address = parse_address(str(name))
    return BACKENDS[address.scheme]().exists(address)


def migration(name: str, width: int, *, storage: Storage, lexical: bool, chunked: bool) -> str:
    """What creates the tables of an index, for a person who runs it."""
    address = parse_address(name)
    backend = BACKENDS[address.scheme]()
    return backend.migration(address, width, storage=storage, lexical=lexical, chunked=chunked)


def display(name: str | PathLike[str]) -> str:
    """A folder, or an address without its secrets."""
    return str(parse_address(str(name))) if is_address(name) else str(name)
