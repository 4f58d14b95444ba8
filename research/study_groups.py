"""Paired tests between groups of rows, from ``study.json``.

python research/study_groups.py

The value of a case is its mean over all runs of a group. Most of these comparisons were chosen after some of
their rows had been seen. The last lines compare second trainings with the first ones.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from study_rows import Row, again_rows, rows_by_name
from study_runs import Runs, rank_matrix, sample, stored_runs

from tercet.evaluate.significance import difference

SEEDS = (0, 1, 2)
SMALLEST_P = 0.0001
FEW, MANY = (1, 4, 16), (64, 360)
CODE_KINDS = ("learnt", "first", "last")


class Comparison(NamedTuple):
    """Two groups of rows, compared on the same seeds."""

    title: str
    ours: Sequence[str]
    theirs: Sequence[str]
    seeds: Sequence[int]


def compare_rows(ours: str, theirs: str, *seeds: int) -> Comparison:
    """The comparison of one row with another."""
    return Comparison(f"{ours} against {theirs}", (ours,), (theirs,), seeds or SEEDS)


def compare_codes(many: Sequence[int], few: Sequence[int], *seeds: int) -> Comparison:
    """The comparison of two groups of code counts, over all kinds of codes."""
    ours, theirs = (", ".join(map(str, counts)) for counts in (many, few))
    title = f"{ours} codes against {theirs}; {', '.join(CODE_KINDS)}"
    return Comparison(title, _code_rows(CODE_KINDS, many), _code_rows(CODE_KINDS, few), seeds or SEEDS)


def _code_rows(kinds: Iterable[str], counts: Iterable[int]) -> list[str]:
    return [f"codes {kind} {count}" for kind in kinds for count in counts]


COMPARISONS = (
    Comparison(
        "poly- against bi-encoder on Ubuntu IRC, both trainings of each",
        ("ubuntu poly", "ubuntu poly again"),
        ("ubuntu bi", "ubuntu bi again"),
        SEEDS,
    ),
    Comparison(
        "cross- against poly-encoder on Ubuntu IRC, both trainings of the latter",
        ("ubuntu cross",),
        ("ubuntu poly", "ubuntu poly again"),
        SEEDS,
    ),
    compare_rows("ubuntu poly 255", "negatives 511"),
    compare_rows("ubuntu cross", "negatives 511"),
    compare_rows("codes learnt 360", "ubuntu bi"),
    compare_rows("codes learnt 360", "negatives 511"),
    compare_rows("ubuntu cross", "codes learnt 360"),
    compare_rows("codes learnt 1", "ubuntu bi"),
    compare_rows("convai2 bi 255", "convai2 bi", 0),
    compare_rows("convai2 bi 255", "convai2 bi", 1),
    compare_rows("convai2 poly 255", "convai2 bi 255", 0),
    compare_rows("convai2 poly 255", "convai2 poly", 0, 2),
    compare_rows("convai2 poly 255", "convai2 poly", 1),
    compare_rows("convai2 cross", "convai2 poly 255", 0, 2),
    compare_codes(MANY, FEW),
    *(compare_codes((count,), FEW, seed) for count in MANY for seed in SEEDS),
    compare_codes((16,), (1,)),
    compare_codes((64,), (16,)),
    compare_codes((360,), (64,)),
    *(compare_codes((360,), (64,), seed) for seed in SEEDS),
    compare_rows("codes learnt 360", "codes learnt 64"),
    compare_rows("codes learnt 64", "codes learnt 1"),
    Comparison(
        "first states against learnt codes, any number",
        _code_rows(("first",), (*FEW, *MANY)),
        _code_rows(("learnt",), (*FEW, *MANY)),
        SEEDS,
    ),
    compare_rows("reduction mean_first 16", "reduction first", 0, 1),
    compare_rows("self-dialogue cross longer", "self-dialogue cross", 0),
)


def correct(folders: Iterable[Path], runs: Runs) -> NDArray[np.bool_]:
    """``[runs, cases]``: whether the right candidate came first."""
    first: NDArray[np.bool_] = rank_matrix(folders, runs) == 1
    return first


def p_text(p: float) -> str:
    """A p-value; tiny ones are not shown in full."""
    return f"p {p:.4f}" if p >= SMALLEST_P else f"p < {SMALLEST_P}"


def result(comparison: Comparison, known: dict[str, Row], runs: Runs) -> str:
    """R@1 of both groups, and their difference with interval and p-value."""
    ours, theirs = (
        correct((known[name].run(seed) for name in group for seed in comparison.seeds), runs)
        for group in (comparison.ours, comparison.theirs)
    )
    test = difference(sample("R@1", ours), sample("R@1", theirs))
    gap, low, high = (f"{100 * value:+.1f}" for value in (test.value, test.low, test.high))
    return f"{100 * ours.mean():.1f} and {100 * theirs.mean():.1f}, {gap} ({low} to {high}), {p_text(test.p)}"


def repeated(second: Row, first: Row, runs: Runs) -> Iterator[str]:
    """R@1 of the first and the second training of each seed, and how many cases in a hundred differ."""
    for seed in SEEDS:
        if {first.run(seed).name, second.run(seed).name} <= runs.keys():
            before, after = correct((first.run(seed), second.run(seed)), runs)
            changed = 100 * (before != after).mean()
            yield f"{100 * before.mean():.1f} and {100 * after.mean():.1f} ({changed:.1f})"


def seed_list(seeds: Sequence[int]) -> str:
    """The seeds as part of a sentence."""
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


def main() -> None:
    runs, known = stored_runs(), rows_by_name()
    for comparison in COMPARISONS:
        print(f"{comparison.title}, {seed_list(comparison.seeds)}: {result(comparison, known, runs)}")
    print("\nR@1 of each seed, first and second training, and how many cases in a hundred differ:")
    for row in again_rows():
        if lines := list(repeated(row, known[row.name.removesuffix(" again")], runs)):
            print(f"{row.name}: {', '.join(lines)}")


if __name__ == "__main__":
    main()
