"""Rows of the study that say the same thing in several ways, tested together, from ``study.json``.

python benchmarks/study_groups.py

A case's value is its mean over all runs of a group. Most questions were asked after some of their rows had
been seen. Below them stands how far second trainings came out as the first.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from study_kept import Runs, all_places, kept_runs, sample
from study_report import seeds_named
from study_rows import Row, again_rows, rows_by_name

from tercet.evaluate.significance import difference

SEEDS = (0, 1, 2)
FEW, MANY = (1, 4, 16), (64, 360)
CODE_KINDS = ("learnt", "first", "last")


class Question(NamedTuple):
    """Whether the rows of one group find more than those of another, each with the same seeds."""

    asked: str
    ours: Sequence[str]
    theirs: Sequence[str]
    seeds: Sequence[int]


def about_rows(ours: str, theirs: str, *seeds: int) -> Question:
    """Whether one row finds more than another."""
    return Question(f"{ours} against {theirs}", (ours,), (theirs,), seeds or SEEDS)


def about_codes(many: Sequence[int], few: Sequence[int], *seeds: int) -> Question:
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
    about_rows("ubuntu poly 255", "negatives 511"),
    about_rows("ubuntu cross", "negatives 511"),
    about_rows("codes learnt 360", "ubuntu bi"),
    about_rows("codes learnt 360", "negatives 511"),
    about_rows("ubuntu cross", "codes learnt 360"),
    about_rows("codes learnt 1", "ubuntu bi"),
    about_rows("convai2 bi 255", "convai2 bi", 0),
    about_rows("convai2 bi 255", "convai2 bi", 1),
    about_rows("convai2 poly 255", "convai2 bi 255", 0),
    about_rows("convai2 poly 255", "convai2 poly", 0, 2),
    about_rows("convai2 poly 255", "convai2 poly", 1),
    about_rows("convai2 cross", "convai2 poly 255", 0, 2),
    about_codes(MANY, FEW),
    *(about_codes((count,), FEW, seed) for count in MANY for seed in SEEDS),
    about_codes((16,), (1,)),
    about_codes((64,), (16,)),
    about_codes((360,), (64,)),
    *(about_codes((360,), (64,), seed) for seed in SEEDS),
    about_rows("codes learnt 360", "codes learnt 64"),
    about_rows("codes learnt 64", "codes learnt 1"),
    Question(
        "first states against learnt codes, any number",
        _codes(("first",), (*FEW, *MANY)),
        _codes(("learnt",), (*FEW, *MANY)),
        SEEDS,
    ),
    about_rows("reduction mean_first 16", "reduction first", 0, 1),
    about_rows("self-dialogue cross longer", "self-dialogue cross", 0),
)


def right(names: Sequence[str], question: Question, known: dict[str, Row], runs: Runs) -> NDArray[np.bool_]:
    """``[runs, cases]``: whether the right candidate came first, in every run of a group."""
    return all_places([known[name].run(seed) for name in names for seed in question.seeds], runs) == 1


def answer(question: Question, known: dict[str, Row], runs: Runs) -> str:
    """What both groups find, and by how much the first finds more."""
    ours, theirs = (right(group, question, known, runs) for group in (question.ours, question.theirs))
    found = difference(sample("R@1", ours), sample("R@1", theirs))
    gap, low, high = (f"{100 * value:+.1f}" for value in (found.value, found.low, found.high))
    return f"{100 * ours.mean():.1f} and {100 * theirs.mean():.1f}, {gap} ({low} to {high}), p {found.p:.4f}"


def repeated(second: Row, first: Row, runs: Runs) -> Iterator[str]:
    """How far a second training of each seed came out as the first."""
    for seed in SEEDS:
        if {first.run(seed).name, second.run(seed).name} <= runs.keys():
            before, after = all_places((first.run(seed), second.run(seed)), runs) == 1
            others = 100 * (before != after).mean()
            yield f"{100 * before.mean():.1f} and {100 * after.mean():.1f} ({others:.1f})"


def main() -> None:
    runs, known = kept_runs(), rows_by_name()
    for question in QUESTIONS:
        print(f"{question.asked}, {seeds_named(question.seeds)}: {answer(question, known, runs)}")
    print("\nR@1 of each seed, first and second training, and how many cases in a hundred differ:")
    for row in again_rows():
        if twice := list(repeated(row, known[row.name.removesuffix(" again")], runs)):
            print(f"{row.name}: {', '.join(twice)}")


if __name__ == "__main__":
    main()
