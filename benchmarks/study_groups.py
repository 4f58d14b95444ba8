"""Rows of the study that say the same thing in several ways, tested together, from ``study.json``.

python benchmarks/study_groups.py

A case's value is its mean over all runs of a group. Most questions were asked after some of their rows had
been seen.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from study_kept import Runs, all_places, kept_runs, sample
from study_rows import PARTS, Row, again_rows

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


KINDS = ("learnt", "first", "last")


def many_against_few(many: Sequence[int], seeds: Sequence[int]) -> Question:
    """Whether more codes find more, whatever their kind."""
    asked = f"{' and '.join(map(str, many))} codes against 1, 4 and 16; learnt, first and last"
    return Question(asked, codes(KINDS, many), codes(KINDS, FEW), seeds)


def one(ours: str, theirs: str, seeds: Sequence[int] = SEEDS) -> Question:
    """Whether one row finds more than another."""
    return Question(f"{ours} against {theirs}", (ours,), (theirs,), seeds)


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
    one("ubuntu poly 255", "negatives 511"),
    one("ubuntu poly taught", "negatives 511"),
    one("ubuntu cross", "ubuntu poly taught"),
    one("ubuntu cross", "negatives 511"),
    one("codes learnt 360", "ubuntu bi"),
    one("codes learnt 360", "negatives 511"),
    one("ubuntu cross", "codes learnt 360"),
    one("convai2 poly 255", "convai2 bi 255", (0,)),
    one("convai2 poly 255", "convai2 poly", (0, 2)),
    one("convai2 cross", "convai2 poly 255", (0, 2)),
    many_against_few(MANY, SEEDS),
    *(many_against_few((360,), (seed,)) for seed in SEEDS),
    Question("16 codes against 1; learnt, first and last", codes(KINDS, (16,)), codes(KINDS, (1,)), SEEDS),
    Question("64 codes against 16; learnt, first and last", codes(KINDS, (64,)), codes(KINDS, (16,)), SEEDS),
    Question(
        "360 codes against 64; learnt, first and last", codes(KINDS, (360,)), codes(KINDS, (64,)), SEEDS
    ),
    one("codes learnt 360", "codes learnt 64"),
    one("codes learnt 64", "codes learnt 1"),
    Question(
        "first states against learnt codes, any number",
        codes(("first",), (*FEW, *MANY)),
        codes(("learnt",), (*FEW, *MANY)),
        SEEDS,
    ),
    one("reduction mean_first 16", "reduction first", (0, 1)),
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
        seeds = f"seed{'s' if len(question.seeds) > 1 else ''} {', '.join(map(str, question.seeds))}"
        print(
            f"{question.asked}, {seeds}: {100 * found.value:+.1f} ({low:.1f} to {high:.1f}), p {found.p:.4f}"
        )
    print("\nR@1 of each seed, first and second training, and how many cases in a hundred differ:")
    for row in again_rows():
        if twice := list(repeated(row, known[row.name.removesuffix(" again")], runs)):
            print(f"{row.name}: {', '.join(twice)}")


def repeated(second: Row, first: Row, runs: Runs) -> Iterator[str]:
    """How far a second training of each seed came out as the first."""
    for seed in SEEDS:
        if {first.run(seed).name, second.run(seed).name} <= runs.keys():
            before, after = all_places((first.run(seed), second.run(seed)), runs) == 1
            others = 100 * (before != after).mean()
            yield f"{100 * before.mean():.1f} and {100 * after.mean():.1f} ({others:.1f})"


if __name__ == "__main__":
    main()
