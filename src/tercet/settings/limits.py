"""Limits on what files may ask for, so that a damaged or hostile one is an error and not a full memory."""

import os
from dataclasses import dataclass, fields
from functools import lru_cache

from tercet.errors import InputError

PREFIX = "TERCET_"
"""Starts the environment variable of a limit, which is its name in capital letters."""

ALWAYS_ALLOWED = 1 << 16
"""Every limit on the length of a text allows at least this many characters."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits. An environment variable, such as ``TERCET_MAX_LINE_BYTES``, replaces the default.

    This module imports nothing of tercet but ``errors``: every other package may read the limits.
    """

    max_line_bytes: int = 64 << 20
    """Bytes of a line, of a CSV row, whose quoted cells may have several lines, and of a value in Parquet,
    where each value within a list counts 8 bytes more."""
    max_unpacked_bytes: int = 64 << 30
    """Bytes of a ``.gz`` or Parquet file after decompression. Its lines are read one at a time."""
    max_page_bytes: int = 512 << 20
    """Bytes of a page of a Parquet file after decompression. A page is decoded as a whole."""
    max_json_bytes: int = 256 << 20
    """Bytes of a JSON file, which is read as a whole. JSON Lines have no such limit."""
    max_toml_bytes: int = 1 << 20
    """Bytes of a recipe or a task."""
    max_text_characters: int = 4_000_000
    """Characters of a text, of each turn of a dialogue, and of each cell that is read. Tokenizing that many
    takes about 5 seconds and 1 GB of memory."""
    max_depth: int = 100
    """Lists and objects inside each other in JSON, arrays and tables inside each other in TOML."""
    max_key_characters: int = 10_000
    """Characters of a key in JSON or TOML, and of the name of a column."""
    max_layers: int = 1_000
    """Layers in the ``config.json`` of a model."""
    max_width: int = 100_000
    """Hidden, intermediate and embedding sizes in ``config.json``."""
    max_labels: int = 100_000
    """Classes in ``config.json``."""
    max_token_id: int = 10_000_000
    """Ids of tokens in ``tokenizer.json``."""
    max_tokenizer_steps: int = 64
    """Normalizers, pre-tokenizers and post-processors in ``tokenizer.json``, those in sequences included."""
    max_tokenizer_growth: int = 100
    """How many times longer the steps of a tokenizer can make a text."""
    max_pattern_characters: int = 10_000
    """Characters of a pattern or of its replacement in ``tokenizer.json``."""
    max_word_characters: int = 1_000
    """Characters of a word that a WordPiece tokenizer splits; the time grows with their third power."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value, least = getattr(self, each.name), 1
            if each.name == "max_text_characters":
                least = ALWAYS_ALLOWED
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise InputError(
                    f"{variable(each.name)} must be a whole number of at least {least}, got {value!r}"
                )


def current_limits() -> Limits:
    """The limits that hold now: the defaults, and what the environment variables say."""
    given = ((each.name, os.environ.get(variable(each.name))) for each in fields(Limits))
    return _limits(tuple((name, value) for name, value in given if value))


def variable(name: str) -> str:
    """The environment variable of a limit."""
    return PREFIX + name.upper()


def raise_it(name: str) -> str:
    """The end of an error about a limit: how to raise it."""
    return f"raise {variable(name)} if this is intended"


def exceeds(name: str, count: int) -> str:
    """The part of a message that says by how much a limit is exceeded, and how to raise it."""
    allowed = getattr(current_limits(), name)
    return f"{count:,}, and at most {allowed:,} are allowed: {raise_it(name)}"


@lru_cache(maxsize=8)
def _limits(given: tuple[tuple[str, str], ...]) -> Limits:
    return Limits(**{name: _number(name, value) for name, value in given})


def _number(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise InputError(f"{variable(name)} must be a whole number, got {value!r}") from None
