"""Python without torch and what builds on it. A process with this folder on PYTHONPATH cannot find them."""

import sys
from collections.abc import Iterable
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder

MISSING = {"accelerate", "peft", "sentence_transformers", "tantivy", "torch", "transformers"}


class FinderWithoutTorch:
    """Finds what the usual finder finds, but not these packages."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name.partition(".")[0] in MISSING:
            return None
        return PathFinder.find_spec(name, path, target)  # type: ignore[arg-type]

    @staticmethod
    def find_distributions(
        context: DistributionFinder.Context | None = None,
    ) -> Iterable[Distribution]:
        found = PathFinder.find_distributions(context or DistributionFinder.Context())
        return (each for each in found if each.name.replace("-", "_") not in MISSING)


sys.meta_path = [FinderWithoutTorch if finder is PathFinder else finder for finder in sys.meta_path]  # type: ignore[list-item]
