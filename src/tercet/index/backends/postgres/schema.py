"""The tables of an index in PostgreSQL, as a migration that a person can read and change."""

from collections.abc import Mapping
from typing import Any

from tercet.errors import InputError
from tercet.files.structured import json_text
from tercet.index.backends.postgres.place import Place
from tercet.settings.index import Storage

FORMAT = 1
"""Version of the tables."""
LEAST_PGVECTOR = (0, 8)
"""The first version with iterative scans, which filters need."""
COLUMN_TYPES: dict[Storage, str] = {"float32": "vector", "float16": "halfvec"}
NORMS = {"vector": "vector_norm", "halfvec": "l2_norm"}
MOST_IN_A_ROW = 8000
"""Bytes of a vector that PostgreSQL can keep in the row itself, which makes scans several times faster."""
MOST_IN_A_GRAPH: dict[Storage, int] = {"float32": 2000, "float16": 4000}
"""Numbers of a vector that an HNSW graph of pgvector allows."""

TABLES = """\
-- An index of tercet, format {format}. Its candidates, their vectors and its settings are three tables.
-- You may read them, delete candidates, and add columns and indexes; write texts and vectors with tercet.
CREATE EXTENSION IF NOT EXISTS vector;
{schema}
CREATE TABLE {candidates} (
    number bigint PRIMARY KEY CHECK (number >= 0),  -- in the order of writing; never used again
    id text COLLATE "C" NOT NULL UNIQUE,
    text text NOT NULL,
    metadata jsonb NOT NULL DEFAULT '{{}}' CHECK (jsonb_typeof(metadata) = 'object'){words}
);
{words_index}
CREATE TABLE {vectors} (
    number bigint PRIMARY KEY CHECK (number >= 0),
    candidate bigint NOT NULL REFERENCES {candidates} ON DELETE CASCADE,
    start integer,  -- the characters of the text that the vector stands for; null is the whole text
    stop integer,
    embedding {type}({width}) NOT NULL,
    norm double precision GENERATED ALWAYS AS ({norm}(embedding)) STORED  -- certificates need the largest
);
{storage}
CREATE INDEX {vectors_candidate} ON {vectors} (candidate);
CREATE INDEX {vectors_norm} ON {vectors} (norm);

CREATE TABLE {settings} (name text PRIMARY KEY, value jsonb NOT NULL);
INSERT INTO {settings} (name, value) VALUES
    {values};
"""

WORDS = """,
    words tsvector GENERATED ALWAYS AS (to_tsvector('{text_search}', text)) STORED"""


def migration(
    place: Place,
    width: int,
    *,
    storage: Storage,
    lexical: bool,
    chunked: bool,
    metadata: Mapping[str, Any] | None = None,
) -> str:
    """The SQL that creates the tables of an index: the user runs it, or ``tercet index build`` does."""
    if storage not in COLUMN_TYPES:
        raise InputError(f"PostgreSQL stores vectors as {' or '.join(COLUMN_TYPES)}, got {storage}")
    kind = COLUMN_TYPES[storage]
    settings = {
        "format": FORMAT,
        "width": width,
        "storage": storage,
        "lexical": lexical,
        "chunked": chunked,
        "text_search": place.options.text_search,
        "next_number": 0,
        "next_vector": 0,
        **(metadata or {}),
    }
    in_row = width * (4 if storage == "float32" else 2) <= MOST_IN_A_ROW
    return TABLES.format(
        format=FORMAT,
        schema=f'CREATE SCHEMA IF NOT EXISTS "{place.schema}";\n' if place.schema else "",
        candidates=place.table(),
        vectors=place.table("_vectors"),
        settings=place.table("_settings"),
        words=WORDS.format(text_search=place.options.text_search) if lexical else "",
        words_index=(
            f"CREATE INDEX {place.unqualified('_words')} ON {place.table()} USING gin (words);\n"
            if lexical
            else ""
        ),
        vectors_candidate=place.unqualified("_vectors_candidate"),
        vectors_norm=place.unqualified("_vectors_norm"),
        type=kind,
        width=width,
        norm=NORMS[kind],
        storage=(
            f"ALTER TABLE {place.table('_vectors')} ALTER COLUMN embedding SET STORAGE PLAIN;\n"
            if in_row
            else ""
        ),
        values=",\n    ".join(
            f"({_literal(name)}, {_literal(json_text(v))})" for name, v in settings.items()
        ),
    )


def graph_sql(place: Place, storage: Storage) -> str:
    """The SQL that builds the HNSW graph."""
    operators = f"{COLUMN_TYPES[storage]}_ip_ops"
    return (
        f"CREATE INDEX {place.unqualified('_vectors_hnsw')} ON {place.table('_vectors')} "
        f"USING hnsw (embedding {operators}) WITH (m = 16, ef_construction = 64)"
    )


def _literal(text: str) -> str:
    """A string constant of SQL, whatever ``standard_conforming_strings`` is."""
    escaped = text.replace("'", "''")
    return f"E'{escaped.replace(chr(92), chr(92) * 2)}'" if "\\" in text else f"'{escaped}'"
