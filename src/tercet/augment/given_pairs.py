"""The pairs of a recipe's ``[pairs]``, without those that are labelled already."""

from collections.abc import Collection, Iterator
from pathlib import Path

from tercet.augment.silver import NewPair
from tercet.data.columns import check_column
from tercet.data.overlap import comparison_key
from tercet.data.reservoir import reservoir_sample
from tercet.data.sources import open_source
from tercet.errors import DataError
from tercet.inputs import check_text
from tercet.settings.augment import PairsConfig


def given_pairs(
    config: PairsConfig, title: str, *, known: Collection[tuple[str, str]], root: Path | None
) -> list[NewPair]:
    """The pairs of files, each once, in the order of its texts that comes first.

    Args:
        title: what the pairs are called in results.
        known: the keys of labelled pairs, in both directions.
    """
    found = _unlabelled(_rows(config, title, root), known)
    chosen = list(found) if config.limit is None else reservoir_sample(found, config.limit, seed=config.seed)
    if not chosen:
        raise DataError(
            f"{', '.join(config.files)}: all pairs are gold, dev or test pairs, or there is none: give others"
        )
    return chosen


def _rows(config: PairsConfig, title: str, root: Path | None) -> Iterator[NewPair]:
    """All pairs; their parents are twice the number of the row."""
    rows = (row for name in config.files for row in open_source(name, root=root))
    for number, row in enumerate(rows):
        context, candidate = (check_column(row, column, check_text) for column in config.columns)
        yield NewPair(context, candidate, title, (number, number))


def _unlabelled(pairs: Iterator[NewPair], known: Collection[tuple[str, str]]) -> Iterator[NewPair]:
    """The pairs that are not known, each once in either direction."""
    seen: set[frozenset[str]] = set()
    for pair in pairs:
        left, right = comparison_key(pair.context), comparison_key(pair.candidate)
        key = frozenset((left, right))
        if (left, right) not in known and key not in seen:
            seen.add(key)
            yield pair
