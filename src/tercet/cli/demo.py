"""``tercet demo``: the three packaged scorers on the sample data, in one screen."""

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from tercet.cli.console import SafeConsole
from tercet.cli.options import open_model, spinner
from tercet.data.sample import chats, questions

if TYPE_CHECKING:
    from rich.table import Table

    from tercet.records import Context, Floats, Ints
    from tercet.scorers.loaded import LoadedScorer

RERANKED = 10
"""Candidates that the cross-encoder reranks, as one does in practice."""
SCORERS = ("bi", "poly", "cross")
QUERY = "My card was declined"
CACHED = {
    "bi": "all candidates, 1 vector per context",
    "poly": "all candidates, 64 vectors per context",
    "cross": f"nothing; reranks the bi-encoder's best {RERANKED}",
}
NEXT_STEPS = (
    ('tercet rank "Can I bring my dog?" -c sample:faq.en --column question --show answer', "search the FAQ"),
    ("tercet index build FILE --column NAME -o my.tercet", "search your own texts"),
    ("tercet serve", "open the playground in a browser, and an HTTP API"),
    ("tercet train bi-sample", "train on your own data"),
    ("tercet --help", "all commands"),
)


class Selection(NamedTuple):
    """The scores of all contexts and candidates by one scorer."""

    scores: "Floats"
    ranks: "Ints"
    """The rank of the right candidate of each context."""
    seconds: float
    """For all contexts, with cached candidates; reranking includes the bi-encoder's time."""


def demo() -> None:
    """Search an FAQ and choose replies with the three packaged scorers.

    Example: tercet demo
    """
    console = SafeConsole(highlight=False)
    scorers = {name: open_model(name) for name in SCORERS}
    for scorer in scorers.values():
        scorer.score("warm", ["up"])  # warm up: the first call includes initialization
    _show_search(scorers["bi"], console)
    talks = chats("en")
    contexts, replies = [talk.turns[:-1] for talk in talks], [talk.turns[-1] for talk in talks]
    found = _select(scorers, contexts, replies)
    _show_selection(found, len(replies), console)
    _show_chat(_first_difference(found), contexts, replies, found, console)
    _show_next_steps(console)


def _show_search(scorer: "LoadedScorer", console: SafeConsole) -> None:
    from rich.text import Text

    entries = questions("en")
    ranking = scorer.rank(QUERY, [entry.question for entry in entries], k=3)
    table = _table(f"1. Search an FAQ of {len(entries)} questions: “{QUERY}” (bi-encoder)")
    for name in ("score", "question", "answer"):
        table.add_column(name, justify="right" if name == "score" else "left", overflow="fold")
    for ranked in ranking:
        answer = entries[ranked.position].answer
        table.add_row(f"{ranked.score:.2f}", Text(ranked.text), Text(answer, style="dim"))
    console.print(table)
    console.print()


def _select(
    scorers: "dict[str, LoadedScorer]", contexts: "Sequence[Context]", candidates: Sequence[str]
) -> dict[str, Selection]:
    from tercet.evaluate.metrics import ranks
    from tercet.scorers.dual_scorer import DualScorer

    found: dict[str, Selection] = {}
    for name, scorer in scorers.items():
        with spinner(f"{name}: {len(contexts)} contexts, {len(candidates)} candidates"):
            if isinstance(scorer, DualScorer):
                vectors = scorer.encode_candidates(candidates)
                start = perf_counter()
                scores = scorer.match(scorer.encode_contexts(contexts), vectors)
            else:
                start = perf_counter() - found["bi"].seconds
                scores = _rerank(scorer, found["bi"].scores, contexts, candidates)
        seconds = perf_counter() - start
        found[name] = Selection(scores, ranks(scores, range(len(contexts))), seconds)
    return found


def _first_difference(found: dict[str, Selection]) -> int:
    """The first context for which the scorers choose different candidates."""
    choices = [each.scores.argmax(axis=1) for each in found.values()]
    differ = (choices[0] != choices[1]) | (choices[0] != choices[2])
    return int(differ.argmax())


def _rerank(
    scorer: "LoadedScorer", first: "Floats", contexts: "Sequence[Context]", candidates: Sequence[str]
) -> "Floats":
    """``[B, C]``: new scores of each context's best candidates; the others follow in their order."""
    from tercet.arrays import top_k

    pairs = [(row, position) for row, values in enumerate(first) for position in top_k(values, RERANKED)]
    reranked = scorer.score_pairs(
        [contexts[row] for row, _ in pairs], [candidates[position] for _, position in pairs]
    )
    order = first.argsort(axis=1).argsort(axis=1).astype(first.dtype)  # 0 for the lowest score
    scores: Floats = reranked.min() - len(candidates) + order
    rows, columns = zip(*pairs, strict=True)
    scores[rows, columns] = reranked
    return scores


def _show_selection(found: dict[str, Selection], count: int, console: SafeConsole) -> None:
    table = _table(f"2. Choose the next reply in {count} chats, among {count} replies")
    table.add_column("")
    for column in ("right reply first", "among 3", "ms per chat"):
        table.add_column(column, justify="right")
    table.add_column("what is cached")
    for name, each in found.items():
        hits = (f"{(each.ranks <= most).sum()} of {count}" for most in (1, 3))
        table.add_row(name, *hits, f"{1000 * each.seconds / count:.0f}", CACHED[name])
    console.print(table)
    console.print()


def _show_chat(
    number: int,
    contexts: "Sequence[Context]",
    replies: Sequence[str],
    found: dict[str, Selection],
    console: SafeConsole,
) -> None:
    """The reply that each scorer chooses in one chat."""
    from rich.text import Text

    table = _table(
        "3. The first chat on which they differ\n" + "\n".join(f"   – {turn}" for turn in contexts[number])
    )
    table.add_column("")
    table.add_column("next turn", overflow="fold")
    table.add_row("really", Text(replies[number]), end_section=True)
    for name, each in found.items():
        best = int(each.scores[number].argmax())
        table.add_row(name, Text(replies[best], style="green" if best == number else "red"))
    console.print(table)
    console.print()


def _show_next_steps(console: SafeConsole) -> None:
    console.print("Next", style="bold")
    width = max(len(command) for command, _ in NEXT_STEPS)
    for command, purpose in NEXT_STEPS:
        console.print(f"  {command:<{width}}  # {purpose}", soft_wrap=True)


def _table(title: str) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    return Table(title=Text(title), title_justify="left", title_style="bold", box=SIMPLE_HEAD)
