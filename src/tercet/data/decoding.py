"""Bytes of files to numbered lines of text."""

import codecs
from collections.abc import Iterable, Iterator
from io import StringIO
from itertools import chain, count
from typing import BinaryIO, TypeAlias

from tercet.errors import DataError
from tercet.settings.limits import current_limits, raise_it

Lines: TypeAlias = Iterator[tuple[int, str]]
"""Lines with their numbers, which start at 1; without line breaks."""

BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it starts with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
KOREAN = "cp949"


def raw_lines(name: str, file: BinaryIO, *, compressed: bool = False) -> Iterator[bytes]:
    """The bytes up to each line feed, never more at a time than the limits allow.

    Args:
        name: how errors call the file.
        compressed: whether the file is larger than it seems, so that all of its bytes are limited too.
    """
    limits = current_limits()
    total = 0
    for number in count(1):
        line = file.readline(limits.max_line_bytes + 2)  # a line break has one or two bytes
        if not line:
            return
        if len(line.removesuffix(b"\n").removesuffix(b"\r")) > limits.max_line_bytes:
            raise _too_long(name, number)
        total += len(line)
        if compressed and total > limits.max_unpacked_bytes:
            raise DataError(
                f"{name} has more than {limits.max_unpacked_bytes:,} bytes after decompression: "
                f"{raise_it('max_unpacked_bytes')}"
            )
        yield line


def numbered_lines(name: str, raw: Iterable[bytes], encoding: str = "") -> Lines:
    """The lines of a file.

    Args:
        name: how errors call the file.
        raw: its bytes up to each line feed.
        encoding: default: UTF-8, or what a byte order mark says.
    """
    parts = iter(raw)
    first = next(parts, b"")
    codec = encoding or marked_encoding(first) or "utf-8"
    if is_wide(codec):
        return _wide_lines(name, chain([first], parts), codec)
    if not encoding and 3 * first.count(0) > len(first):
        raise DataError(
            f"{name}: the file looks like UTF-16 without a byte order mark: give the encoding "
            "(--encoding utf-16-le or utf-16-be, or encoding in TOML)"
        )
    return _narrow_lines(name, chain([first], parts), codec)


def marked_encoding(start: bytes) -> str:
    """The encoding that a byte order mark of two or four bytes means; empty without one."""
    return next((codec for mark, codec in BYTE_ORDER_MARKS.items() if start.startswith(mark)), "")


def is_wide(encoding: str) -> bool:
    """Whether a line break has several bytes."""
    return codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))


def _narrow_lines(name: str, lines: Iterable[bytes], codec: str) -> Lines:
    for number, raw in enumerate(lines, start=1):
        try:
            line = raw.decode(codec)
        except UnicodeDecodeError as error:
            raise _undecodable(name, number, codec, error) from None
        yield number, _stripped(line, number)


def _wide_lines(name: str, parts: Iterable[bytes], codec: str) -> Lines:
    decoder = codecs.getincrementaldecoder(codec)()
    pending, number, longest = StringIO(), 1, current_limits().max_line_bytes
    for part in chain(parts, [None]):
        try:
            text = decoder.decode(b"", final=True) if part is None else decoder.decode(part)
        except UnicodeDecodeError as error:
            raise _undecodable(name, number, codec, error) from None
        except UnicodeError:  # that of utf-16 and utf-32 without an order of bytes
            known = codecs.lookup(codec).name
            raise DataError(
                f"{name} does not start with a byte order mark: give {known}-le or {known}-be, or leave out "
                "--encoding (encoding in TOML)"
            ) from None
        # A part may end in the middle of a line, because other characters contain the byte of a line feed:
        # only the new part is searched, or a line of such characters would take quadratic time.
        *complete, rest = text.split("\n")
        for end in complete:
            pending.write(end)
            yield number, _stripped(pending.getvalue(), number)
            pending, number = StringIO(), number + 1
        pending.write(rest)
        if pending.tell() > longest:
            raise _too_long(name, number)
    if last := pending.getvalue():
        yield number, _stripped(last, number)


def _stripped(line: str, number: int) -> str:
    """The line without its line break and, if it is the first, without a byte order mark."""
    line = line.removesuffix("\n").removesuffix("\r")
    return line.removeprefix("\ufeff") if number == 1 else line


def _too_long(name: str, number: int) -> DataError:
    longest = f"{current_limits().max_line_bytes:,}"
    return DataError(
        f"{name}, line {number}: the line has more than {longest} bytes: check that the file has "
        f"a text or a row on each line; {raise_it('max_line_bytes')}"
    )


def _undecodable(name: str, number: int, codec: str, error: UnicodeDecodeError) -> DataError:
    shown = codec.upper() if codec.startswith("utf") else codec
    guess = KOREAN if codec != KOREAN and _is_korean(error.object) else ""
    advice = (
        f"the line is valid {guess}: give --encoding {guess} (encoding in TOML)"
        if guess
        else "give the encoding of the file (--encoding latin-1, or encoding in TOML), or convert it"
    )
    return DataError(f"{name}, line {number}: byte {error.start + 1} is not {shown}: {advice}")


def _is_korean(raw: bytes) -> bool:
    """Whether bytes are CP949, and mostly characters of its older part, EUC-KR.

    Single accented letters of Latin-1 are also valid CP949, as rare syllables that EUC-KR does not have.
    """
    try:
        letters = [letter for letter in raw.decode(KOREAN) if not letter.isascii()]
    except UnicodeDecodeError:
        return False
    in_euc_kr = sum(len(letter.encode("euc-kr", errors="ignore")) == 2 for letter in letters)
    return 2 * in_euc_kr > len(letters)  # other syllables have eight bytes
