"""Where an index is in PostgreSQL: how to connect, and the names of its tables."""

import re
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from tercet.errors import InputError
from tercet.index.backends.address import Address
from tercet.settings.databases import PostgresOptions

NAME = re.compile(r"[^\W\d]\w*")
MAX_NAME_BYTES = 40
"""PostgreSQL truncates names at 63 bytes, and tables and indexes have longer names than the index."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """The names of the tables of an index, quoted, and the connection string of the driver."""

    address: Address
    conninfo: str = field(repr=False)
    options: PostgresOptions
    schema: str
    """Empty for the first schema of the user's search path."""
    name: str

    def table(self, suffix: str = "") -> str:
        """A quoted table, with its schema if one was given: ``"faq"``, ``"search"."faq_vectors"``."""
        prefix = f'"{self.schema}".' if self.schema else ""
        return f'{prefix}"{self.name}{suffix}"'

    def unqualified(self, suffix: str) -> str:
        """A quoted name without its schema, for new indexes, which are always in that of their table."""
        return f'"{self.name}{suffix}"'


def place_of(address: Address) -> Place:
    """The place of ``postgresql://user@host/database/name``, or ``.../database/schema.name``."""
    if len(address.path) != 2 or not address.path[1]:
        raise InputError(
            f"the address of an index is postgresql://USER@HOST/DATABASE/INDEX or .../DATABASE/SCHEMA.INDEX, "
            f"got {address}"
        )
    database, name = address.path
    schema, _, name = name.rpartition(".")
    for part in filter(None, (schema, name)):
        _check_name(part)
    options, others = PostgresOptions.taken_from(address.options)
    query = f"?{urlencode(others, quote_via=quote)}" if others else ""
    conninfo = f"postgresql://{address.parts.netloc}/{quote(database, safe='')}{query}"
    return Place(address=address, conninfo=conninfo, options=options, schema=schema, name=name)


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name) or len(name.encode()) > MAX_NAME_BYTES:
        raise InputError(
            f"the name of an index is a letter and then letters, digits and underscores, at most "
            f"{MAX_NAME_BYTES} bytes, got {name!r}"
        )
