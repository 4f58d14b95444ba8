"""What commands print: no text, file name or error message can control the terminal.

Everything that is written to standard output or standard error passes ``EscapedStream``. Only rich writes
past it, because its styles are control sequences; ``SafeConsole`` escapes the texts between the styles.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from tercet.files.escapes import ascii_only, escaped

INVISIBLE = re.compile("[\u00ad\u200b\ufeff]")
"""Soft hyphens, zero-width spaces and byte order marks, which documents contain and nobody sees."""


def one_line(text: str) -> str:
    """``text`` with single spaces instead of line breaks, without control characters."""
    return printable(" ".join(text.split()))


def printable(text: str) -> str:
    """``text`` on one line; control characters are escaped, and soft hyphens and their like left out."""
    return escaped(INVISIBLE.sub("", text)).replace("\n", "\\n")


class SafeConsole(Console):
    """A rich console that escapes control characters, and prints square brackets and colons as they are."""

    def __init__(self, *, stderr: bool = False, highlight: bool = True, soft_wrap: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=highlight, soft_wrap=soft_wrap, markup=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """The segments of ``renderable``; those that move the cursor are rich's own."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=escaped(segment.text))


class EscapedStream:
    """A text stream that escapes control characters, and what its encoding does not have."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def rich_proxied_file(self) -> TextIO:
        """The stream that rich writes to, past all proxies; rich looks for this name."""
        stream: Any = self._stream
        while (inner := getattr(stream, "rich_proxied_file", None)) is not None:
            stream = inner
        return cast("TextIO", stream)

    def write(self, text: str) -> int:
        """Write the escaped text."""
        safe = escaped(text)
        try:
            self._stream.write(safe)
        except UnicodeEncodeError:
            self._stream.write(ascii_only(safe))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write each of the lines, escaped."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # typer would write past this stream
            raise AttributeError(name)
        return getattr(self._stream, name)


@contextmanager
def escaped_streams() -> Iterator[None]:
    """Escape what is written to standard output and standard error meanwhile.

    rich redirects both while it shows a bar, and reads styles from what is written: enter this again inside.
    """
    before = {name: getattr(sys, name) for name in ("stdout", "stderr")}
    during = {name: EscapedStream(stream) for name, stream in before.items() if stream is not None}
    for name, stream in during.items():
        setattr(sys, name, stream)
    try:
        yield
    finally:
        for name, stream in during.items():
            if getattr(sys, name) is stream:  # typer replaces streams whose reader has gone
                setattr(sys, name, before[name])
