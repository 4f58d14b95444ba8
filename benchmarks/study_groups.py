"""Rows of the study that say the same thing in several ways, tested together, from ``study.json``.

python benchmarks/study_groups.py

A case's value is its mean over all runs of a group. Most questions were asked after some of their rows had
been seen. Below them stands how far second trainings came out as the first.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from study_kept import Runs, all_places, kept_runs, sample
from study_report import seeds_named
from study_rows import PARTS, Row, again_rows

from tercet.evaluate.significance import Difference, difference

SEEDS = (0, 1, 2)
FEW, MANY = (1, 4, 16), (64, 360)
CODE_KINDS = ("learnt", "first", "last")


class Question(NamedTuple):
    """Whether the rows of one group find more than those of another, each with the same seeds."""

    asked: str
    ours: Sequence[str]
    theirs: Sequence[str]
    seeds: Sequence[int]


def rows(ours: str, theirs: str, *seeds: int) -> Question:
    """Whether one row finds more than another."""
    return Question(f"{ours} against {theirs}", (ours,), (theirs,), seeds or SEEDS)


def codes(many: Sequence[int], few: Sequence[int], *seeds: int) -> Question:
    """Whether more codes find more, whatever their kind."""
    ours, theirs = (", ".join(map(str, counts)) for counts in (many, few))
    asked = f"{ours} codes against {theirs}; {', '.join(CODE_KINDS)}"
    return Question(asked, _codes(CODE_KINDS, many), _codes(CODE_KINDS, few), seeds or SEEDS)


def _codes(kinds: Iterable[str], counts: Iterable[int]) -> list[str]:
    return [f"codes {kind} {count}" for kind in kinds for count in counts]


QUESTIONS = (
    Question(
        "poly- against bi-encoder on Ubuntu IRC, both trainings of each",
        ("ubuntu poly", "ubuntu poly again"),
        ("ubuntu bi", "ubuntu bi again"),
        SEEDS,
    ),
    Question(
        "cross- against poly-encoder on Ubuntu IRC, both trainings of the latter",
        ("ubuntu cross",),
        ("ubuntu poly", "ubuntu poly again"),
        SEEDS,
    ),
    rows("ubuntu poly 255", "negatives 511"),
    rows("ubuntu cross", "negatives 511"),
    rows("codes learnt 360", "ubuntu bi"),
    rows("codes learnt 360", "negatives 511"),
    rows("ubuntu cross", "codes learnt 360"),
    rows("codes learnt 1", "ubuntu bi"),
    rows("convai2 bi 255", "convai2 bi", 0),
    rows("convai2 poly 255", "convai2 bi 255", 0),
    rows("convai2 poly 255", "convai2 poly", 0, 2),
    rows("convai2 cross", "convai2 poly 255", 0, 2),
    codes(MANY, FEW),
    *(codes((count,), FEW, seed) for count in MANY for seed in SEEDS),
    codes((16,), (1,)),
    codes((64,), (16,)),
    codes((360,), (64,)),
    *(codes((360,), (64,), seed) for seed in SEEDS),
    rows("codes learnt 360", "codes learnt 64"),
    rows("codes learnt 64", "codes learnt 1"),
    Question(
        "first states against learnt codes, any number",
        _codes(("first",), (*FEW, *MANY)),
        _codes(("learnt",), (*FEW, *MANY)),
        SEEDS,
    ),
    rows("reduction mean_first 16", "reduction first", 0, 1),
)


def answer(question: Question, known: dict[str, Row], runs: Runs) -> Difference:
    """By how much the first group finds more."""
    ours, theirs = (
        [known[name].run(seed) for name in group for seed in question.seeds]
        for group in (question.ours, question.theirs)
    )
    return difference(*(sample("R@1", all_places(group, runs) == 1) for group in (ours, theirs)))


def repeated(second: Row, first: Row, runs: Runs) -> Iterator[str]:
    """How far a second training of each seed came out as the first."""
    for seed in SEEDS:
        if {first.run(seed).name, second.run(seed).name} <= runs.keys():
            before, after = all_places((first.run(seed), second.run(seed)), runs) == 1
            others = 100 * (before != after).mean()
            yield f"{100 * before.mean():.1f} and {100 * after.mean():.1f} ({others:.1f})"


def main() -> None:
    runs, known = kept_runs(), {row.name: row for part in PARTS.values() for row in part()}
    for question in QUESTIONS:
        found = answer(question, known, runs)
        low, high = 100 * found.low, 100 * found.high
        asked = f"{question.asked}, {seeds_named(question.seeds)}"
        print(f"{asked}: {100 * found.value:+.1f} ({low:.1f} to {high:.1f}), p {found.p:.4f}")
    print("\nR@1 of each seed, first and second training, and how many cases in a hundred differ:")
    for row in again_rows():
        if twice := list(repeated(row, known[row.name.removesuffix(" again")], runs)):
            print(f"{row.name}: {', '.join(twice)}")


if __name__ == "__main__":
    main()
