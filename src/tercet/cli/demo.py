"""``tercet demo``: the packaged model at work on the sample data."""

from time import perf_counter
from typing import TYPE_CHECKING

from tercet.cli.options import open_model, waiting
from tercet.data.sample import dialogues, pairs, questions

if TYPE_CHECKING:
    from rich.console import Console

    from tercet.models.scorer import Scorer
    from tercet.records import Context, Ranked

SHOWN_QUESTIONS = (27, 54, 88, 1)
SHOWN_DIALOGUE = 5


def demo() -> None:
    """Rank the sample data with the packaged model and show what comes out."""
    from rich.console import Console

    console = Console()
    scorer = open_model("bi", "fp32")
    console.print("[bold]tercet[/] ranks with the bi-encoder it comes with (MiniLM, 6 layers, 384 wide);")
    console.print("[green]✓[/] marks the right answer among all those of the sample data.\n")
    _show_questions(scorer, console)
    _show_dialogue(scorer, console)
    _show_pairs(scorer, console)


def _show_questions(scorer: "Scorer", console: "Console") -> None:
    from tercet.evaluate.metrics import places
    from tercet.models.scorer import rankings

    asked = questions("en")
    answers = [question.answer for question in asked]
    start = perf_counter()
    with waiting(f"ranking {len(answers)} answers for {len(asked)} questions"):
        scores = scorer.scores([question.context for question in asked], answers)
    seconds = perf_counter() - start
    found = rankings(scores, answers, k=3)
    for shown in SHOWN_QUESTIONS:
        _show(asked[shown].context, found[shown], right=shown, console=console)
    firsts = (places(scores.values, range(len(asked))) == 1).sum()
    console.print(
        f"Of {len(asked)} questions, {firsts} found their answer first among {len(answers)}; "
        f"{len(asked) + len(answers)} texts were read in {seconds:.1f} s.\n"
    )


def _show_dialogue(scorer: "Scorer", console: "Console") -> None:
    talks = dialogues("en")
    replies = [talk.turns[-1] for talk in talks]
    turns = talks[SHOWN_DIALOGUE].turns[:-1]
    _show(turns, scorer.rank(turns, replies, k=3), right=SHOWN_DIALOGUE, console=console)


def _show_pairs(scorer: "Scorer", console: "Console") -> None:
    from rich.table import Table

    graded = sorted(pairs("en"), key=lambda pair: -pair.score)[::24]
    scores = scorer.score_pairs([pair.context for pair in graded], [pair.candidate for pair in graded])
    table = Table(title="How alike are two sentences?", title_justify="left", title_style="bold")
    for column in ("person (0-5)", "cosine"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("sentences")
    for pair, score in zip(graded, scores, strict=True):
        table.add_row(
            f"{pair.score:.1f}", f"{score:.2f}", f"{pair.context}\n{pair.candidate}", end_section=True
        )
    console.print(table)


def _show(context: "Context", ranking: "list[Ranked]", *, right: int, console: "Console") -> None:
    from rich.table import Table
    from rich.text import Text

    title = context if isinstance(context, str) else "\n".join(f"- {turn}" for turn in context)
    table = Table(title=Text(title), title_justify="left", title_style="bold", show_header=False, expand=True)
    table.add_column(justify="right", width=6)
    table.add_column(width=1)
    table.add_column(ratio=1)
    for ranked in ranking:
        found = ranked.position == right
        table.add_row(
            f"{ranked.score:.3f}",
            "✓" if found else "",
            Text(ranked.candidate, style="green" if found else ""),
        )
    console.print(table)
    console.print()
