"""How the bytes of a data file become rows."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from tercet.errors import InputError
from tercet.inputs import check_choice, check_string

Format: TypeAlias = Literal["text", "jsonl", "json", "csv", "tsv", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)

ENCODINGS = ("utf-8", "utf-16", "cp949", "euc-kr", "shift_jis", "gb18030", "cp1252", "latin-1")
"""Frequent encodings, for messages."""

TAB_NAMES = ("tab", r"\t")
"""How a tab is typed in a shell."""


@dataclass(frozen=True, kw_only=True)
class FileConfig:
    """The format of a file; empty settings are recognized from its name and its first lines."""

    format: Format | None = None
    """Default: by the file name; standard input is plain text."""
    delimiter: str = ""
    """CSV and TSV: the character between two cells. Default: the one of ``,``, ``;``, tab and ``|`` that fits
    the first lines of a CSV file; a tab in TSV files."""
    encoding: str = ""
    """The encoding, such as ``cp949``. Default: UTF-8, or UTF-16 and UTF-32 by their byte order mark."""

    def __post_init__(self) -> None:
        if self.format is not None:
            check_choice("format", self.format, FORMATS)
        check_string("delimiter", self.delimiter)
        check_string("encoding", self.encoding)
        if self.delimiter.lower() in TAB_NAMES:
            object.__setattr__(self, "delimiter", "\t")
        if len(self.delimiter) > 1 or self.delimiter in ('"', "\n", "\r", "\0"):
            raise InputError(
                f"delimiter must be one character, such as ; or | or tab, got {self.delimiter!r}"
            )
        if self.encoding:
            _check_encoding(self.encoding)


def _check_encoding(name: str) -> None:
    try:
        b"text".decode(name, errors="ignore")  # also refuses codecs that are not text, such as hex
    except (LookupError, ValueError):
        raise InputError(
            f"encoding must be one that Python knows, such as {', '.join(ENCODINGS)}, got {name!r}"
        ) from None
