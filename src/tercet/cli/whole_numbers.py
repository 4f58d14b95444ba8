"""The range of the whole numbers that options take."""

from collections.abc import Mapping

from tercet.errors import InputError
from tercet.inputs import describe

LARGEST = 2**63 - 1
"""Beyond it, torch, numpy, SQLite and faiss fail in ways of their own."""


def check_whole_numbers(given: Mapping[str, object]) -> None:
    """Raise if a whole number among the options of a command needs more than 64 bits.

    Args:
        given: the values of the options by the names of their parameters.
    """
    for name, value in given.items():
        for number in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(number, int) and abs(number) > LARGEST:
                option = f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"
                raise InputError(f"{option} must be from {-LARGEST:,} to {LARGEST:,}, got {describe(number)}")
