"""``tercet explain``: which words of a context carried a poly-encoder's score."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli.explain_page import cut_note, page
from tercet.cli.options import JsonOption, ModelOption, PrecisionOption, open_model, printable
from tercet.errors import InputError
from tercet.files import check_free, new_file
from tercet.inputs import check_count

if TYPE_CHECKING:
    from rich.text import Text

    from tercet.records import Explanation


def explain(
    texts: Annotated[
        list[str],
        typer.Argument(
            help="The context, as one or more turns, oldest first; last, the candidate.",
            metavar="CONTEXT... CANDIDATE",
        ),
    ],
    model: ModelOption,
    top: Annotated[int, typer.Option(help="How many codes to show.")] = 5,
    html: Annotated[
        Path | None, typer.Option(help="Draw the attention over the context into this file too.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
    precision: PrecisionOption = "fp32",
    as_json: JsonOption = False,
) -> None:
    """Show which codes and which words of a context carried the score of a candidate.

    Example: tercet explain --model my-poly "Is it raining?" "Yes, take an umbrella."
    """
    from tercet.models.poly import PolyEncoder

    if len(texts) < 2:
        raise InputError("give a context and a candidate")
    check_count("top", top)
    if html is not None:
        check_free(html, overwrite=overwrite)
    scorer = open_model(model, precision)
    if not isinstance(scorer, PolyEncoder):
        raise InputError(f"only a poly-encoder has codes to explain, and {model} is a {scorer.kind}-encoder")
    found = scorer.explain(texts[0] if len(texts) == 2 else texts[:-1], texts[-1])
    if html is not None:
        _draw(found, html, overwrite=overwrite)
    if as_json:
        typer.echo(json.dumps(asdict(found) | {"attention": found.attention.tolist()}, ensure_ascii=False))
        return
    _show(found, top=top)
    if html is not None:
        typer.echo(f"drawn in {html}")


def _draw(explanation: "Explanation", path: Path, *, overwrite: bool) -> None:
    with new_file(path, overwrite=overwrite) as file:
        file.write_text(page(explanation), encoding="utf-8")


def _show(explanation: "Explanation", *, top: int) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    console.print(Text.assemble(("score ", "bold"), f"{explanation.score:.4f}", ("  of  ", "dim")), end="")
    console.print(Text(printable(explanation.candidate)))
    console.print(_coloured(explanation))
    if explanation.context_cut or explanation.candidate_cut:
        console.print(Text(cut_note(explanation), style="yellow"))
    table = Table(title="the codes it went through", title_justify="left", title_style="bold")
    for name in ("code", "weight", "part of score"):
        table.add_column(name, justify="right")
    table.add_column("looked at")
    for code in sorted(explanation.codes, key=lambda code: -code.weight)[:top]:
        looked = sorted(
            zip(explanation.attention[code.position], explanation.tokens, strict=True),
            key=lambda pair: -pair[0],
        )
        words = ", ".join(
            f"{printable(token.text)} {share:.0%}" for share, token in looked[:3] if share >= 0.01
        )
        table.add_row(str(code.position), f"{code.weight:.1%}", f"{code.contribution:.3f}", Text(words))
    console.print(table)


def _coloured(explanation: "Explanation") -> "Text":
    """The tokens of the context, brighter the more they gave; the percentage of the attention behind each."""
    from rich.style import Style
    from rich.text import Text

    strongest = max(token.weight for token in explanation.tokens)
    line = Text()
    for token in explanation.tokens:
        share = token.weight / strongest
        colour = f"rgb({int(90 + 165 * share)},{int(90 + 90 * share)},{int(90 - 40 * share)})"
        line.append(printable(token.text), style=Style(color=colour, bold=share > 0.5))
        line.append(f" {token.weight:.0%}  " if token.weight >= 0.01 else "  ", style="dim")
    return line
