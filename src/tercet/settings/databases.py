"""Options of an index in a database. An address sets them: ``postgresql://host/database/faq?ef_search=200``."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self, get_args, get_type_hints

from tercet.errors import InputError
from tercet.inputs import check_choice, check_count

CONFIGURATION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)?")
MEMORY = re.compile(r"\d+(kB|MB|GB)")


@dataclass(frozen=True, kw_only=True)
class DatabaseOptions:
    """The options that all databases have."""

    timeout_seconds: int = 60
    """Maximum time of one statement of a search or a write, and of the wait for another writer."""
    ef_search: int | None = None
    """How many vectors of the HNSW graph a search visits per code. Default: 256 for one code, fewer per code
    if a context has many."""

    def __post_init__(self) -> None:
        check_count("timeout_seconds", self.timeout_seconds)
        if self.ef_search is not None:
            check_count("ef_search", self.ef_search)

    @classmethod
    def taken_from(cls, options: Mapping[str, str]) -> tuple[Self, dict[str, str]]:
        """The options that an address sets, and the others, which are the driver's."""
        types = {each.name: get_type_hints(cls)[each.name] for each in fields(cls)}
        own = {name: _value(name, text, types[name]) for name, text in options.items() if name in types}
        return cls(**own), {name: text for name, text in options.items() if name not in types}


@dataclass(frozen=True, kw_only=True)
class PostgresOptions(DatabaseOptions):
    """Options of an index in PostgreSQL."""

    text_search: str = "english"
    """The text search configuration that splits texts into words, such as ``german`` or ``simple``. It is
    chosen when the index is built."""
    build_memory: str = ""
    """``maintenance_work_mem`` while the HNSW graph is built, such as ``1GB``. Default: the server's."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not CONFIGURATION.fullmatch(self.text_search):
            raise InputError(
                f"text_search must be the name of a text search configuration, got {self.text_search!r}"
            )
        if self.build_memory and not MEMORY.fullmatch(self.build_memory):
            raise InputError(f"build_memory must be a size such as 512MB, got {self.build_memory!r}")


@dataclass(frozen=True, kw_only=True)
class QdrantOptions(DatabaseOptions):
    """Options of an index in Qdrant."""

    https: str = "false"
    """``true`` for a connection by TLS."""
    api_key: str = ""
    """The key of the server. Default: the environment variable ``QDRANT_API_KEY``."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("https", self.https, ("true", "false"))


def _value(name: str, text: str, kind: Any) -> Any:
    if kind is not int and int not in get_args(kind):
        return text
    if not text.isascii() or not text.isdigit():
        raise InputError(f"{name} must be a whole number, got {text!r}")
    return int(text)
