"""Rank replies, answers and documents with bi-, poly- and cross-encoders behind one interface."""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.2.0"

if TYPE_CHECKING:
    from tercet import errors, index
    from tercet.client.aio import AsyncClient
    from tercet.client.sync import Client
    from tercet.formats.load import load
    from tercet.records import Example, Hit, Pair, Ranked
    from tercet.retrieve import Retriever
    from tercet.scorers.bi import BiEncoder
    from tercet.scorers.calibrate import calibrate
    from tercet.scorers.cross import CrossEncoder
    from tercet.scorers.match import match
    from tercet.scorers.poly import PolyEncoder
    from tercet.scorers.scorer import Scorer
    from tercet.settings.models import BiConfig, CrossConfig, PolyConfig, PoolingConfig
    from tercet.settings.recipe import read_recipe
    from tercet.sharded import ShardedRetriever
    from tercet.similar import closest_pairs, clusters
    from tercet.training.run import run_recipe

_HOMES = {
    "client.aio": ("AsyncClient",),
    "client.sync": ("Client",),
    "formats.load": ("load",),
    "records": ("Example", "Hit", "Pair", "Ranked"),
    "retrieve": ("Retriever",),
    "scorers.bi": ("BiEncoder",),
    "scorers.calibrate": ("calibrate",),
    "scorers.cross": ("CrossEncoder",),
    "scorers.match": ("match",),
    "scorers.poly": ("PolyEncoder",),
    "scorers.scorer": ("Scorer",),
    "settings.models": ("BiConfig", "CrossConfig", "PolyConfig", "PoolingConfig"),
    "settings.recipe": ("read_recipe",),
    "sharded": ("ShardedRetriever",),
    "similar": ("closest_pairs", "clusters"),
    "training.run": ("run_recipe",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_NEED_TORCH = {"scorers.bi", "scorers.cross", "scorers.match", "scorers.poly", "training.run"}
_ROOMS = ("errors", "index")

__all__ = [
    "AsyncClient",
    "BiConfig",
    "BiEncoder",
    "Client",
    "CrossConfig",
    "CrossEncoder",
    "Example",
    "Hit",
    "Pair",
    "PolyConfig",
    "PolyEncoder",
    "PoolingConfig",
    "Ranked",
    "Retriever",
    "Scorer",
    "ShardedRetriever",
    "__version__",
    "calibrate",
    "closest_pairs",
    "clusters",
    "errors",
    "index",
    "load",
    "match",
    "read_recipe",
    "run_recipe",
]


def __getattr__(name: str) -> object:
    """Import a public name on first use, so that ``import tercet`` is instant."""
    if name in _ROOMS:
        return import_module(f"tercet.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'tercet' has no attribute {name!r}")
    home = _HOME_OF[name]
    if home in _NEED_TORCH:
        from tercet.extras import require_torch

        require_torch(f"tercet.{name}", extra="train" if home.startswith("training") else "torch")
    return getattr(import_module(f"tercet.{home}"), name)
