"""tercet scores a context against candidates with bi-, poly- and cross-encoders behind one interface."""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from tercet.calibration import Calibration
    from tercet.config import BiConfig, CrossConfig, PolyConfig, PoolingConfig
    from tercet.errors import (
        BrokenIndexError,
        DataError,
        InputError,
        InterruptedRunError,
        LockedIndexError,
        MissingExtraError,
        ModelError,
        OutputError,
        StaleIndexError,
        TercetError,
        TrainingError,
        TruncationWarning,
    )
    from tercet.index.approximate import ApproximateIndex
    from tercet.index.exact import ExactIndex
    from tercet.index.items import Item
    from tercet.index.vectors import open_vectors
    from tercet.models.bi import BiEncoder
    from tercet.models.calibrate import calibrate
    from tercet.models.cross import CrossEncoder
    from tercet.models.load import load
    from tercet.models.match import match
    from tercet.models.poly import PolyEncoder
    from tercet.models.scorer import Scorer
    from tercet.records import (
        ClosePair,
        Codes,
        Explanation,
        Hit,
        Hits,
        Lesson,
        Pair,
        Ranked,
        Scores,
        VectorFile,
    )
    from tercet.retrieve import Retriever
    from tercet.similar import closest_pairs, groups
    from tercet.training.recipe import read_recipe
    from tercet.training.run import run_recipe

_HOMES = {
    "calibration": ("Calibration",),
    "config": ("BiConfig", "CrossConfig", "PolyConfig", "PoolingConfig"),
    "errors": (
        "BrokenIndexError",
        "DataError",
        "InputError",
        "InterruptedRunError",
        "LockedIndexError",
        "MissingExtraError",
        "ModelError",
        "OutputError",
        "StaleIndexError",
        "TercetError",
        "TrainingError",
        "TruncationWarning",
    ),
    "index.approximate": ("ApproximateIndex",),
    "index.exact": ("ExactIndex",),
    "index.items": ("Item",),
    "index.vectors": ("open_vectors",),
    "models.bi": ("BiEncoder",),
    "models.calibrate": ("calibrate",),
    "models.cross": ("CrossEncoder",),
    "models.load": ("load",),
    "models.match": ("match",),
    "models.poly": ("PolyEncoder",),
    "models.scorer": ("Scorer",),
    "records": (
        "ClosePair",
        "Codes",
        "Explanation",
        "Hit",
        "Hits",
        "Lesson",
        "Pair",
        "Ranked",
        "Scores",
        "VectorFile",
    ),
    "retrieve": ("Retriever",),
    "similar": ("closest_pairs", "groups"),
    "training.recipe": ("read_recipe",),
    "training.run": ("run_recipe",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "ApproximateIndex",
    "BiConfig",
    "BiEncoder",
    "BrokenIndexError",
    "Calibration",
    "ClosePair",
    "Codes",
    "CrossConfig",
    "CrossEncoder",
    "DataError",
    "ExactIndex",
    "Explanation",
    "Hit",
    "Hits",
    "InputError",
    "InterruptedRunError",
    "Item",
    "Lesson",
    "LockedIndexError",
    "MissingExtraError",
    "ModelError",
    "OutputError",
    "Pair",
    "PolyConfig",
    "PolyEncoder",
    "PoolingConfig",
    "Ranked",
    "Retriever",
    "Scorer",
    "Scores",
    "StaleIndexError",
    "TercetError",
    "TrainingError",
    "TruncationWarning",
    "VectorFile",
    "__version__",
    "calibrate",
    "closest_pairs",
    "groups",
    "load",
    "match",
    "open_vectors",
    "read_recipe",
    "run_recipe",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that ``import tercet`` is instant."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'tercet' has no attribute {name!r}")
    return getattr(import_module(f"tercet.{_HOME_OF[name]}"), name)
