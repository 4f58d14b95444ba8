"""``tercet demo``: the three packaged models at work on the sample data."""

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from tercet.cli.options import open_model, waiting
from tercet.data.sample import dialogues, pairs, questions

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from tercet.models.load import AnyScorer
    from tercet.records import Context, Counts, Floats

READ = 10
"""So many of the bi-encoder's best the cross-encoder reads again: as it is used in earnest."""
SHOWN = 5
SHOWN_DIALOGUE = 12


class Ranking(NamedTuple):
    """What one scorer says of all contexts and candidates."""

    scores: "Floats"
    places: "Counts"
    """Of the right candidates."""
    seconds: float
    """Those of the bi-encoder too, where its ranking is read again."""


def demo() -> None:
    """Rank the sample data with the three models that come with tercet, and show where they differ."""
    from rich.console import Console

    from tercet.models.sources import PACKAGED

    console = Console()
    scorers = {name: open_model(name, "fp32") for name in PACKAGED}
    for scorer in scorers.values():
        scorer.score("warm", ["up"])  # or the first would pay for it
    console.print("[bold]tercet[/] ranks with the three scorers it comes with, all over MiniLM (6 layers):")
    console.print(f"bi-encoder, poly-encoder, and a cross-encoder over the bi-encoder's {READ} best.\n")
    asked = questions("en")
    contexts, answers = [each.context for each in asked], [each.answer for each in asked]
    _show("questions", contexts, _rankings(scorers, contexts, answers), console)
    talks = dialogues("en")
    turns, replies = [talk.turns[:-1] for talk in talks], [talk.turns[-1] for talk in talks]
    found = _rankings(scorers, turns, replies)
    _show("dialogues", turns, found, console)
    _show_firsts(SHOWN_DIALOGUE, turns, replies, found, console)
    _show_pairs(scorers, console)


def _rankings(
    scorers: "dict[str, AnyScorer]", contexts: "Sequence[Context]", candidates: Sequence[str]
) -> dict[str, Ranking]:
    from tercet.evaluate.metrics import places

    found: dict[str, Ranking] = {}
    for name, scorer in scorers.items():
        start = perf_counter()
        with waiting(f"{name}: {len(contexts)} contexts, {len(candidates)} candidates"):
            if scorer.kind == "cross":
                start -= found["bi"].seconds
                scores = _read_again(scorer, found["bi"].scores, contexts, candidates)
            else:
                scores = scorer.score_many(contexts, candidates)
        found[name] = Ranking(scores, places(scores, range(len(contexts))), perf_counter() - start)
    return found


def _read_again(
    scorer: "AnyScorer", first: "Floats", contexts: "Sequence[Context]", candidates: Sequence[str]
) -> "Floats":
    """``[B, C]``: the scores of each context's best candidates, and below them the others in their order."""
    from tercet.models.scorer import best

    read = [(row, place) for row, values in enumerate(first) for place in best(values, READ).tolist()]
    found = scorer.score_pairs([contexts[row] for row, _ in read], [candidates[place] for _, place in read])
    ranks = first.argsort(axis=1).argsort(axis=1).astype(first.dtype)  # from 0, the lowest
    scores: Floats = found.min() - len(candidates) + ranks
    rows, columns = zip(*read, strict=True)
    scores[rows, columns] = found
    return scores


def _show(what: str, contexts: "Sequence[Context]", found: dict[str, Ranking], console: "Console") -> None:
    """How often each has the right one first, and the contexts on which they differ most."""
    import numpy as np
    from rich.text import Text

    table = _table(f"{len(contexts)} {what}, as many candidates: how often the right one is found")
    table.add_column("")
    for column in ("first", "among 3", "seconds"):
        table.add_column(column, justify="right")
    for name, each in found.items():
        hits = (str((each.places <= most).sum()) for most in (1, 3))
        table.add_row(name, *hits, f"{each.seconds:.1f}")
    console.print(table)
    console.print()

    places = np.array([each.places for each in found.values()])
    table = _table("Where they differ most: the place of the right one")
    for name in found:
        table.add_column(name, justify="right")
    table.add_column("context")
    spread = places.max(axis=0) - places.min(axis=0)
    for row in np.argsort(-spread, kind="stable")[:SHOWN]:
        if spread[row]:
            context = contexts[row]
            last = context if isinstance(context, str) else f"... {context[-1]}"
            table.add_row(*map(str, places[:, row]), Text(last))
    console.print(table)
    console.print()


def _show_firsts(
    shown: int,
    turns: "Sequence[Sequence[str]]",
    replies: Sequence[str],
    found: dict[str, Ranking],
    console: "Console",
) -> None:
    """What each would say next in one dialogue."""
    from rich.text import Text

    table = _table("\n".join(f"- {turn}" for turn in turns[shown]))
    table.add_column("")
    table.add_column("what comes next")
    table.add_row("people", Text(replies[shown]), end_section=True)
    for name, each in found.items():
        first = int(each.scores[shown].argmax())
        table.add_row(name, Text(replies[first], style="green" if first == shown else ""))
    console.print(table)
    console.print()


def _show_pairs(scorers: "dict[str, AnyScorer]", console: "Console") -> None:
    from rich.text import Text

    graded = sorted(pairs("en"), key=lambda pair: -pair.score)[::24]
    contexts, candidates = [pair.context for pair in graded], [pair.candidate for pair in graded]
    table = _table("How alike are two sentences?")
    for column in ("person (0-5)", *scorers):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("sentences")
    scored = [scorer.score_pairs(contexts, candidates) for scorer in scorers.values()]
    for place, pair in enumerate(graded):
        figures = (f"{values[place]:.2f}" for values in scored)
        table.add_row(
            f"{pair.score:.1f}", *figures, Text(f"{pair.context}\n{pair.candidate}"), end_section=True
        )
    console.print(table)


def _table(title: str) -> "Table":
    from rich.table import Table
    from rich.text import Text

    return Table(title=Text(title), title_justify="left", title_style="bold")
