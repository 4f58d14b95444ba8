"""Indexes of vectors and texts. They know ids and vectors, and never a model."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tercet.index.approximate import ApproximateIndex
    from tercet.index.exact import ExactIndex
    from tercet.index.items import Item

_MODULES = {"ApproximateIndex": "approximate", "ExactIndex": "exact", "Item": "items"}

__all__ = ["ApproximateIndex", "ExactIndex", "Item"]


def __getattr__(name: str) -> object:
    """Import a public name on first use, so that ``import tercet.index`` stays cheap."""
    if name not in _MODULES:
        raise AttributeError(f"module 'tercet.index' has no attribute {name!r}")
    return getattr(import_module(f"tercet.index.{_MODULES[name]}"), name)
