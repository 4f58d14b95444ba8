"""Optional dependencies, imported when they are first needed."""

from importlib import import_module
from types import ModuleType

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


def _imported(module: str, install: str, purpose: str) -> ModuleType:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{purpose} needs {error.name}, which is not installed: pip install '{install}'"
        ) from error
