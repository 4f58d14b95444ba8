"""The command line: one file per command, each of which imports what it needs when it runs."""

from tercet.cli.main import main

__all__ = ["main"]
