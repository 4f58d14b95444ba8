"""Draws the pictures of the documentation: ``make pictures``, or with names only some of them."""

import sys
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parents[1] / "src")]

from drawings import DRAWINGS  # noqa: E402
from measured import MEASURED  # noqa: E402


def main(names: list[str]) -> None:
    """Draw all pictures, or those that are named."""
    for name, draw in {**DRAWINGS, **MEASURED}.items():
        if not names or name in names:
            (FOLDER / name).write_text(draw().svg(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
