"""Optional dependencies, imported when they are first needed."""

from importlib import import_module
from types import ModuleType
from typing import Literal

from tercet.errors import MissingExtraError


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """The imported module. If it is not installed, the error contains its ``pip install`` command.

    Args:
        extra: the extra of tercet that installs the module.
        purpose: what needs the module, as the subject of the error message.
    """
    return _imported(module, f"tercet[{extra}]", purpose)


def require_package(module: str, *, package: str, purpose: str) -> ModuleType:
    """As ``require``, for a package that you use yourself and that no extra of tercet installs."""
    return _imported(module, package, purpose)


def require_torch(purpose: str, *, extra: Literal["torch", "train", "augment"] = "torch") -> None:
    """Import torch and transformers, or raise with the ``pip install`` command. This takes seconds.

    Args:
        purpose: what needs them, as the subject of the error message.
    """
    for module in ("torch", "transformers"):
        require(module, extra=extra, purpose=purpose)


def _imported(module: str, install: str, purpose: str) -> ModuleType:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{purpose} needs {error.name}, which is not installed: pip install '{install}'"
        ) from error
