"""A model's name to a folder on this machine; the hub comes last, and only for names that the user gives."""

import warnings
from difflib import get_close_matches
from os import PathLike
from pathlib import Path

from tercet.errors import ModelError, NetworkWarning
from tercet.files.paths import looks_like_path, lookup_problem
from tercet.formats.backbone import backbone_folder, check_backbone
from tercet.formats.manifest import NAME as MANIFEST
from tercet.inputs import SHOWN_CHARACTERS, shortened

PACKAGED = ("bi", "bi-ko", "poly", "cross")
"""Models that are installed with tercet."""

ALIASES = {
    "all-MiniLM-L6-v2": "bi",
    "sentence-transformers/all-MiniLM-L6-v2": "bi",
    "poly-ko": "poly",
    "cross-ko": "cross",
}
"""Other names of the packaged models: hub ids that need no download, because ``bi`` is this model, file for
file; and names like that of ``bi-ko`` for those that read Korean anyway."""

OWN_MODELS = Path(__file__).parents[1] / "weights"

WANTED = ("*.json", "*.safetensors", "*.txt", "*.model")
"""Files that are downloaded from the hub: no pickled weights, no code."""

MAX_NAME = 1000

RUN_MODEL = "model"
"""The folder of the best model in the folder of a run."""


def _is_run(folder: Path) -> bool:
    return (folder / RUN_MODEL / MANIFEST).is_file() and not (folder / MANIFEST).is_file()


def resolve_model(source: str | PathLike[str]) -> Path:
    """The folder of a packaged model (``bi``, ``poly``, ``cross``), a path, or a hub id (``org/name``).

    The folder of a run means the best model in it.
    A hub id of the packaged weights (``ALIASES``) means these, unless there is a folder of that name.
    Only ``org/name`` is sought on the hub, unless it looks like a path; a ``NetworkWarning`` precedes each
    download. A name without an organization must be in the Hugging Face cache: it is usually a mistyped one.
    """
    folder = _local_folder(source)
    if folder is not None:
        return folder
    if _is_hub_id(source):
        return _hub_folder(str(source)) if "/" in str(source) else _bare_folder(str(source))
    raise ModelError(
        f"there is no folder {source}: check the path, or give one of {', '.join(PACKAGED)} or a hub id "
        "(org/name, which is a path if there is a folder org)"
    )


def stored_model(source: object, *, stored_in: str | PathLike[str], option: str = "") -> Path:
    """The folder of the model that an index or a model folder names; the hub is never contacted.

    A hub id must be in the Hugging Face cache: a name in a file is not a name that the user gave.

    Args:
        stored_in: the index or model folder, for errors.
        option: how the user can give the model instead, such as ``--model``.
    """
    folder = _local_folder(source)
    if folder is None and _is_hub_id(source):
        folder = _cached_folder(str(source))
    if folder is not None:
        return folder
    is_hub_id = _is_hub_id(source)
    get = f'run "hf download {source}"' if is_hub_id else "restore that folder"
    give = f", or pass the model ({option} {source if is_hub_id else 'FOLDER'})" if option else ""
    raise ModelError(
        f"{stored_in} was made with the model {source}, which is not on this machine: {get}{give}"
    )


def _local_folder(source: object) -> Path | None:
    """The folder of a packaged model or a path; None if there is none."""
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
    if problem := lookup_problem(path):
        raise ModelError(f"cannot look up the model {shortened(name, SHOWN_CHARACTERS)}: {problem}: check it")
    if path.is_dir():
        return path / RUN_MODEL if _is_run(path) else path
    if path.exists():
        raise ModelError(f"{path} is a file: a model is a folder")
    if isinstance(source, str) and name in ALIASES:
        return _packaged_folder(ALIASES[name])
    return None


def _is_hub_id(source: object) -> bool:
    if not isinstance(source, str) or looks_like_path(source):
        return False
    from huggingface_hub.errors import HFValidationError  # the import takes a third of a second
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(source)
    except HFValidationError:
        return False
    return True


def names_of(folder: Path) -> list[str]:
    """The names by which ``resolve_model`` finds a packaged model; none for other folders."""
    names = [*PACKAGED, *ALIASES]
    return [name for name in names if _packaged_folder(ALIASES.get(name, name)) == folder]


def absolute_source(source: str | PathLike[str]) -> str:
    """The source in a form that is valid in any working directory."""
    if _is_packaged(source) or not Path(source).is_dir():
        return str(source)
    return str(Path(source).resolve())


def _is_packaged(source: object) -> bool:
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
    found = backbone_folder()
    check_backbone(found)
    return found


def _cached_folder(name: str) -> Path | None:
    """The local copy of a hub model, if there is a complete one."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, allow_patterns=list(WANTED), local_files_only=True))
    except LocalEntryNotFoundError:
        return None
    return folder if _is_complete(folder) else None


def _bare_folder(name: str) -> Path:
    """The local copy of a hub model without an organization; the hub is not contacted."""
    folder = _cached_folder(name)
    if folder is not None:
        return folder
    known = [*PACKAGED, *(alias for alias in ALIASES if "/" not in alias)]
    closest = get_close_matches(name.lower(), known, n=1)
    meant = f" (did you mean {closest[0]}?)" if closest else ""
    raise ModelError(
        f"there is no model {name}{meant}: give one of {', '.join(known)}, a folder, or a hub id (org/name); "
        f'for a hub id without an organization, run "hf download {name}" first'
    )


def _hub_folder(name: str) -> Path:
    """The local copy of a hub model, which is downloaded if there is none."""
    from huggingface_hub import constants, snapshot_download

    folder = _cached_folder(name)
    if folder is not None:
        return folder
    missing = f"{name} is neither a folder nor in the Hugging Face cache"
    if constants.HF_HUB_OFFLINE:
        raise ModelError(f"{missing}, and cannot be downloaded (offline mode is on): {_offline(name)}")
    warnings.warn(f"{missing}: contacting {constants.ENDPOINT}", NetworkWarning, stacklevel=4)
    try:
        return Path(snapshot_download(name, allow_patterns=list(WANTED)))
    except Exception as error:  # no network, no such model, no permission: each has its own kind
        raise ModelError(f"{missing}, and cannot be downloaded {_reason(error, name)}") from error


def _offline(name: str) -> str:
    return (
        f'on a connected machine, run "hf download {name} --local-dir FOLDER" and pass the folder; '
        f"{', '.join(PACKAGED)} work offline"
    )


def _reason(error: Exception, name: str) -> str:
    """Why a download failed, in brackets, and what to do."""
    from huggingface_hub import constants
    from huggingface_hub.errors import GatedRepoError, LocalEntryNotFoundError, RepositoryNotFoundError

    if isinstance(error, GatedRepoError):
        return f'(it is gated): accept its terms on {constants.ENDPOINT}/{name} and run "hf auth login"'
    if isinstance(error, RepositoryNotFoundError):
        return '(the hub has no such model, or it is private): check the name, or run "hf auth login"'
    if isinstance(error, (LocalEntryNotFoundError, ConnectionError, TimeoutError)):
        return f"(no network): {_offline(name)}"
    lines = str(error).strip().splitlines()
    return f"({lines[0] if lines else type(error).__name__}): {_offline(name)}"


def _is_complete(folder: Path) -> bool:
    return any((folder / name).exists() for name in ("config.json", "modules.json", "tercet.json"))
