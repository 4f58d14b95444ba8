"""Importing this module registers the storage of torch scorers and the loaders of partial models."""

from tercet.formats import adapters, delta, storage

__all__ = ["adapters", "delta", "storage"]
