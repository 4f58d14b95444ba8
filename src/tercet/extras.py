"""Optional dependencies, imported when they are first needed."""

from importlib import import_module
from types import ModuleType

from tercet.errors import MissingExtraError


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """The module, or an error with the line that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{purpose} needs {error.name}, which is not installed: pip install 'tercet[{extra}]'"
        ) from error
