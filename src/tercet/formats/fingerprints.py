"""The fingerprint of a model folder without loading its weights."""

from pathlib import Path

from tercet.formats.backbone import FINGERPRINT, backbone_folder
from tercet.formats.manifest import BASE, DIGEST, EXTENDS, contents_digest, read_manifest
from tercet.formats.sources import names_of, stored_model


def stored_fingerprint(folder: Path) -> str | None:
    """The fingerprint in the manifest, or None if the files may have changed since it was written.

    A model that builds on another one needs that one unchanged too: only packaged ones are certain to be.
    """
    if folder == backbone_folder():  # its files were checked
        return FINGERPRINT
    manifest = read_manifest(folder) or {}
    if DIGEST not in manifest or manifest[DIGEST] != contents_digest(folder, manifest):
        return None
    base = manifest.get(EXTENDS) or (manifest.get(BASE) or {}).get("source")
    if base is not None:
        base_folder = stored_model(base, stored_in=folder)
        if not names_of(base_folder) or stored_fingerprint(base_folder) is None:
            return None
    fingerprint = manifest.get("fingerprint")
    return str(fingerprint) if fingerprint else None
