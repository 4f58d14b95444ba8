"""``tercet explain``: the contributions of words to a score."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli.console import SafeConsole, printable
from tercet.cli.options import (
    JsonOption,
    ModelOption,
    OverwriteOption,
    PrecisionOption,
    open_model,
)
from tercet.errors import InputError
from tercet.files.atomic import check_free, new_file
from tercet.files.structured import json_text
from tercet.inputs import check_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table
    from rich.text import Text

    from tercet.records import Explanation, TokenShare


def explain(
    texts: Annotated[
        list[str],
        typer.Argument(
            help="The turns of the context, oldest first, then the candidate.",
            metavar="CONTEXT... CANDIDATE",
        ),
    ],
    model: ModelOption = "poly",
    leave_one_out: Annotated[
        bool,
        typer.Option(
            "--leave-one-out",
            help="Leave out one word at a time, as for a cross-encoder. Default: exact where possible.",
        ),
    ] = False,
    top: Annotated[int, typer.Option(help="Number of codes of a poly-encoder to show.")] = 5,
    html: Annotated[
        Path | None, typer.Option("--html", "-o", help="Write an HTML page to this file.", metavar="FILE")
    ] = None,
    overwrite: OverwriteOption = False,
    precision: PrecisionOption = "fp32",
    as_json: JsonOption = False,
) -> None:
    """Show how the words of a context and of a candidate contribute to their score.

    Poly- and bi-encoders are explained exactly. Cross-encoders are explained approximately, by scoring the
    texts without each of their words.

    Example: tercet explain -m cross "Is it raining?" "Yes, take an umbrella." --html why.html
    """
    if len(texts) < 2:
        raise InputError("give a context and a candidate")
    check_count("top", top)
    if html is not None:
        check_free(html, overwrite=overwrite)
    scorer = open_model(model, precision)
    context = texts[0] if len(texts) == 2 else texts[:-1]
    explanation = scorer.explain(context, texts[-1], leave_one_out=leave_one_out)
    if html is not None:
        _write_page(explanation, html, overwrite=overwrite)
    if as_json:
        row = asdict(explanation) | {"attention": explanation.attention.tolist()}
        typer.echo(json_text(row))
        return
    _show(explanation, model, top=top)
    if html is not None:
        typer.echo(f"page: {html}")


def _write_page(explanation: "Explanation", path: Path, *, overwrite: bool) -> None:
    from tercet.cli.explain_page import page

    with new_file(path, overwrite=overwrite) as file:
        file.write_text(page(explanation), encoding="utf-8")


def _show(explanation: "Explanation", model: str, *, top: int) -> None:
    from rich.text import Text

    from tercet.cli.explain_page import METHODS, truncation_note

    console = SafeConsole()
    title = (f"{printable(model)} score ", "bold"), f"{explanation.score:.4f}", ("  of  ", "dim")
    console.print(Text.assemble(*title), end="")
    console.print(Text(printable(explanation.candidate)))
    if explanation.codes:
        console.print(_by_weight(explanation.tokens))
    else:
        for side, tokens in (("context", explanation.tokens), ("candidate", explanation.candidate_tokens)):
            console.print(Text(f"{side:9}  ", style="dim") + _by_contribution(tokens))
        console.print(Text(METHODS[explanation.method], style="dim"))
    for note in filter(None, (truncation_note(explanation), *explanation.notes)):
        console.print(Text(note, style="yellow"))
    if explanation.codes:
        console.print(_code_table(explanation, top=top))


def _code_table(explanation: "Explanation", *, top: int) -> "Table":
    from rich.table import Table
    from rich.text import Text

    from tercet.cli.explain_page import codes_title

    shown = sorted(explanation.codes, key=lambda code: -code.weight)[:top]
    table = Table(title=codes_title(explanation, len(shown)), title_justify="left", title_style="bold")
    for name in ("code", "weight", "contribution"):
        table.add_column(name, justify="right")
    table.add_column("attends to", overflow="fold")
    for code in shown:
        attention = sorted(
            zip(explanation.attention[code.position], explanation.tokens, strict=True),
            key=lambda pair: -pair[0],
        )
        words = ", ".join(
            f"{printable(token.text)} {share:.0%}" for share, token in attention[:3] if share >= 0.01
        )
        table.add_row(str(code.position), f"{code.weight:.1%}", f"{code.contribution:.3f}", Text(words))
    return table


def _by_weight(tokens: "Sequence[TokenShare]") -> "Text":
    """The tokens, brighter with more attention, each followed by its percentage."""
    from rich.style import Style
    from rich.text import Text

    weights = [token.weight or 0.0 for token in tokens]
    line = Text()
    for token, weight in zip(tokens, weights, strict=True):
        share = weight / max(weights)
        colour = f"rgb({int(90 + 165 * share)},{int(90 + 90 * share)},{int(90 - 40 * share)})"
        line.append(printable(token.text), style=Style(color=colour, bold=share > 0.5))
        line.append(f" {weight:.0%}  " if weight >= 0.01 else "  ", style="dim")
    return line


def _by_contribution(tokens: "Sequence[TokenShare]") -> "Text":
    """The words, orange if they raise the score and blue if they lower it, each with its contribution."""
    from rich.style import Style
    from rich.text import Text

    largest = max((abs(token.contribution) for token in tokens), default=0.0) or 1.0
    line = Text()
    for token in tokens:
        share = abs(token.contribution) / largest
        bright, middle, dark = int(110 + 145 * share), int(110 + 55 * share), int(110 - 60 * share)
        colour = (bright, middle, dark) if token.contribution > 0 else (dark, middle, bright)
        line.append(
            printable(token.text), style=Style(color=f"rgb{colour}".replace(" ", ""), bold=share > 0.5)
        )
        line.append(f" {token.contribution:+.3f}  ", style="dim")
    return line
