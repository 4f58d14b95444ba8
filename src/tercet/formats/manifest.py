"""``tercet.json``, which describes every model folder that tercet writes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tercet.errors import FileError, ModelError
from tercet.files.digest import file_digest, text_digest
from tercet.files.structured import json_text, read_json, write_json

NAME = "tercet.json"
FORMAT_VERSION = 2

DIGEST = "digest"
"""The key of the digest of the other files."""

INT8 = "int8.safetensors"
"""The file with the ranges of an int8 model."""

NO_CONTENTS = (NAME, "README.md", "calibration.json", INT8)
"""Files that do not change a score."""

ADAPTER, DELTA, EXPORT = "adapter", "delta", "export"
EXTENDS = "extends"
"""The key under which a manifest names the model whose encoder the folder extends."""

BASE = "base_model"
"""The key under which a manifest says which model an adapter or a delta applies to."""

PARTIAL = {ADAPTER: "LoRA adapters", DELTA: "a quantized delta", EXPORT: "an export for the OpenVINO runtime"}
"""Keys of folders that are not complete models, and what these contain."""


def read_manifest(folder: Path, kind: str | None = None) -> dict[str, Any] | None:
    """The manifest of a folder, or None if another library wrote the folder.

    Args:
        kind: the required kind of model. Default: any.
    """
    if not (folder / NAME).is_file():
        return None
    with reading(folder):
        manifest = read_json(folder / NAME)
    version = manifest.get("format_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ModelError(f"{folder / NAME} has no valid format_version: copy the model folder again")
    if version != FORMAT_VERSION:
        newer = version > FORMAT_VERSION
        raise ModelError(
            f"{folder} has format version {version}, and this tercet reads version {FORMAT_VERSION}: "
            + (
                "install a newer tercet"
                if newer
                else "train the model again, or use the version of tercet that saved it"
            )
        )
    if kind is not None and manifest.get("kind") != kind:
        raise ModelError(
            f"{folder} contains a model of kind {manifest.get('kind')!r}, not {kind!r}: use tercet.load, "
            "which reads every kind"
        )
    for key, name in PARTIAL.items():
        if kind is not None and key in manifest:
            raise ModelError(f"{folder} contains {name}, not a complete model: use tercet.load")
    return manifest


def write_manifest(folder: Path, *, kind: str, fingerprint: str, settings: dict[str, Any]) -> None:
    """Write what ``read_manifest`` reads."""
    manifest = {"format_version": FORMAT_VERSION, "kind": kind, "fingerprint": fingerprint, **settings}
    write_json(folder / NAME, manifest | {DIGEST: contents_digest(folder, manifest)})


def contents_digest(folder: Path, manifest: Mapping[str, Any]) -> str:
    """Changes with every file and setting that determines a score, so that a stored fingerprint can be
    trusted."""
    stated = json_text({name: value for name, value in manifest.items() if name != DIGEST})
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file.name not in NO_CONTENTS)
    lines = (f"{file.relative_to(folder).as_posix()} {file_digest(file)}" for file in files)
    return text_digest("\n".join([stated, *lines]))


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Turn errors about the JSON files of a folder into a ``ModelError`` that names the folder."""
    try:
        yield
    except FileError as error:
        raise ModelError(f"{error}: {folder} is not a model folder, or is incomplete") from None
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ModelError(f"a setting in the JSON files of {folder} is missing or invalid: {error}") from error


def check_architecture(folder: Path, manifest: dict[str, Any] | None, found: str) -> None:
    """Raise if the transformer's architecture is not the one that was saved."""
    saved = found if manifest is None else manifest.get("architecture", found)
    if saved != found:
        raise ModelError(
            f"{folder} was saved with the architecture {saved}, and its config.json says {found}"
        )
