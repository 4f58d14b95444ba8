"""Which names mean a file or folder of this machine, and which ones the system refuses."""

from pathlib import Path


def looks_like_path(name: str) -> bool:
    """Whether a name is a path, which may not exist, and never that of a model or data set of the hub.

    ``./x``, ``/x``, ``~/x``, ``x/``, ``a/b/c`` and names with a backslash are paths; ``models/x`` is one if
    there is a folder ``models``.
    """
    if name.startswith((".", "/", "~")) or name.endswith("/") or "\\" in name:
        return True
    parent, slash, rest = name.partition("/")
    return "/" in rest or (bool(slash) and Path(parent).is_dir())


def lookup_problem(path: Path) -> str:
    """Why the system cannot look up a path, for example ``File name too long``; empty if it can."""
    try:
        path.exists()
    except OSError as error:
        return error.strerror or str(error)
    return ""
