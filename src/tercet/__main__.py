"""``python -m tercet``."""

from tercet.cli import main

main()
