"""tercet scores a context against candidates with bi-, poly- and cross-encoders behind one interface."""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from tercet.config import BiConfig, PoolingConfig
    from tercet.errors import (
        DataError,
        InputError,
        MissingExtraError,
        ModelError,
        OutputError,
        TercetError,
        TruncationWarning,
    )
    from tercet.index.vectors import open_vectors
    from tercet.models.bi import BiEncoder
    from tercet.models.load import load
    from tercet.models.scorer import Scorer
    from tercet.records import Ranked, Scores, VectorFile

_HOMES = {
    "config": ("BiConfig", "PoolingConfig"),
    "errors": (
        "DataError",
        "InputError",
        "MissingExtraError",
        "ModelError",
        "OutputError",
        "TercetError",
        "TruncationWarning",
    ),
    "index.vectors": ("open_vectors",),
    "models.bi": ("BiEncoder",),
    "models.load": ("load",),
    "models.scorer": ("Scorer",),
    "records": ("Ranked", "Scores", "VectorFile"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "BiConfig",
    "BiEncoder",
    "DataError",
    "InputError",
    "MissingExtraError",
    "ModelError",
    "OutputError",
    "PoolingConfig",
    "Ranked",
    "Scorer",
    "Scores",
    "TercetError",
    "TruncationWarning",
    "VectorFile",
    "__version__",
    "load",
    "open_vectors",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that ``import tercet`` is instant."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'tercet' has no attribute {name!r}")
    return getattr(import_module(f"tercet.{_HOME_OF[name]}"), name)
