"""Model folders in and out. Importing this package registers its storage and its loaders."""

from tercet.formats import adapters, delta, storage

__all__ = ["adapters", "delta", "storage"]
