"""Search results as a table: snippets, marked words and columns of metadata."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tercet.cli.console import printable
from tercet.files.structured import json_text
from tercet.records import Context, Hit, Hits, as_text
from tercet.text.matches import Analyzer, Match, equal_terms, equal_words
from tercet.text.snippet import LONG, snippet

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

MATCHED = "bold green"
WIDEST_ID = 24
"""Longer ids are folded, so that they leave room for the texts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HitsView:
    """How search results are shown."""

    searched: str
    """What was searched, such as ``120`` or ``17 with topic=cards``."""
    columns: tuple[str, ...] = ()
    """Names of the metadata to show."""
    full: bool = False
    """Show long texts in full instead of a snippet."""
    analyze: Analyzer | None = None
    """Marks the words with equal terms. Default: equal words."""


def hits_table(context: Context, hits: Hits, view: HitsView) -> "Table":
    """The table of the results for a context."""
    from rich.table import Table
    from rich.text import Text

    title = printable(context if isinstance(context, str) else " / ".join(context))
    table = Table(title=Text(title), title_justify="left", title_style="bold", caption_justify="left")
    certainty = hits.certainty.replace("_", " ")
    table.caption = Text(f"the best {len(hits)} of {printable(view.searched)}, {certainty}")
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("id", justify="right", style="dim", overflow="fold", max_width=WIDEST_ID)
    table.add_column("candidate", overflow="fold")
    for name in view.columns:
        table.add_column(Text(printable(name)), overflow="fold")
    for number, hit in enumerate(hits, start=1):
        text = candidate_text(hit, as_text(context), view)
        shown = [_value(hit.metadata, name, view) for name in view.columns]
        table.add_row(str(number), f"{hit.score:.4f}", Text(printable(hit.id)), text, *shown)
    return table


def candidate_text(hit: Hit, context: str, view: HitsView) -> "Text":
    """The text, its best chunk, or a snippet of a long one; words that match the context are marked."""
    from rich.text import Text

    text = hit.text if view.full else hit.passage
    line = printable(" ".join(text.split()))
    is_part = hit.part is not None and text != hit.text
    total = None if is_part else len(hit.text)
    shown = _part(line, _matches(line, context, view), total=total, full=view.full)
    if hit.part is None or not is_part:
        return shown
    where = f" [characters {hit.part.start:,} to {hit.part.end:,} of {len(hit.text):,}]"
    return Text.assemble(shown, (where, "dim"))


def _matches(line: str, context: str, view: HitsView) -> list[Match]:
    if view.analyze is None:
        return equal_words(line, context)
    return equal_terms(line, context, view.analyze)


def _value(metadata: Mapping[str, Any], name: str, view: HitsView) -> "Text":
    value = metadata.get(name)
    shown = value if isinstance(value, str) else json_text(value)
    line = "" if value is None else printable(" ".join(shown.split()))
    return _part(line, [], total=len(line), full=view.full)


def _part(line: str, matches: list[Match], *, total: int | None, full: bool) -> "Text":
    """The line with its matches marked, or a snippet of it and the length of the whole text."""
    from rich.text import Text

    start, end = (0, len(line)) if full or len(line) <= LONG else snippet(line, matches)
    part = Text(line[start:end])
    for match in matches:
        if match.start < end and match.end > start:
            part.stylize(MATCHED, max(match.start - start, 0), match.end - start)
    if (start, end) == (0, len(line)):
        return part
    before, after = "… " if start else "", " …" if end < len(line) else ""
    length = "" if total is None else f" [of {total:,} characters]"
    return Text.assemble(before, part, after, (length, "dim"))
