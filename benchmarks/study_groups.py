"""Rows of the study that say the same thing in several ways, tested together, from ``study.json``.

python benchmarks/study_groups.py

A case's value is its mean over all runs of a group. Groups were chosen after rows of them had been seen.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from study_kept import all_places, kept_runs, sample
from study_rows import PARTS

from tercet.evaluate.significance import difference

SEEDS = (0, 1, 2)
FEW, MANY = (1, 4, 16), (64, 360)


class Question(NamedTuple):
    """Whether the rows of one group find more than those of another, each with the same seeds."""

    asked: str
    ours: Sequence[str]
    theirs: Sequence[str]
    seeds: Sequence[int]


def codes(kinds: Iterable[str], counts: Iterable[int]) -> list[str]:
    """The rows of some kinds and numbers of codes."""
    return [f"codes {kind} {count}" for kind in kinds for count in counts]


QUESTIONS = (
    Question(
        "poly- against bi-encoder on Ubuntu IRC, 63 negatives, both trainings of each",
        ("ubuntu poly", "ubuntu poly again"),
        ("ubuntu bi", "ubuntu bi again"),
        SEEDS,
    ),
    Question(
        "cross-encoder against poly-encoder with 63 negatives on Ubuntu IRC, both trainings of it",
        ("ubuntu cross",),
        ("ubuntu poly", "ubuntu poly again"),
        SEEDS,
    ),
    Question(
        "poly- against bi-encoder on ConvAI2, 63 negatives, both trainings of each",
        ("convai2 poly", "convai2 poly again"),
        ("convai2 bi", "convai2 bi again"),
        SEEDS,
    ),
    Question(
        "cross-encoder against poly-encoder with 63 negatives on ConvAI2, both trainings of each",
        ("convai2 cross", "convai2 cross again"),
        ("convai2 poly", "convai2 poly again"),
        SEEDS,
    ),
    Question(
        "64 and 360 codes against 1, 4 and 16; learnt, first and last",
        codes(("learnt", "first", "last"), MANY),
        codes(("learnt", "first", "last"), FEW),
        SEEDS,
    ),
    Question(
        "the same, seed 0, of which the question came",
        codes(("learnt", "first", "last"), MANY),
        codes(("learnt", "first", "last"), FEW),
        (0,),
    ),
    Question(
        "360 codes against 1, 4 and 16, seed 2, whose 360 were trained after the question was asked",
        codes(("learnt", "first"), (360,)),
        codes(("learnt", "first"), FEW),
        (2,),
    ),
    Question(
        "the same, seed 1, all trained after the question was asked",
        codes(("learnt", "first", "last"), (360,)),
        codes(("learnt", "first", "last"), FEW),
        (1,),
    ),
    Question("64 learnt codes against one", ("codes learnt 64",), ("codes learnt 1",), SEEDS),
    Question("360 learnt codes against 64", ("codes learnt 360",), ("codes learnt 64",), SEEDS),
    Question(
        "360 codes against 64; learnt, first and last",
        codes(("learnt", "first", "last"), (360,)),
        codes(("learnt", "first", "last"), (64,)),
        SEEDS,
    ),
)


def main() -> None:
    runs, known = kept_runs(), {row.name: row for part in PARTS.values() for row in part()}
    for question in QUESTIONS:
        ours, theirs = (
            [known[name].run(seed) for name in group for seed in question.seeds]
            for group in (question.ours, question.theirs)
        )
        found = difference(*(sample("R@1", all_places(group, runs) == 1) for group in (ours, theirs)))
        low, high = 100 * found.low, 100 * found.high
        print(f"{question.asked}: {100 * found.value:+.1f} ({low:.1f} to {high:.1f}), p {found.p:.4f}")


if __name__ == "__main__":
    main()
