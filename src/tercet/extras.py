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
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{purpose} needs {error.name}, which is not installed: pip install 'tercet[{extra}]'"
        ) from error
