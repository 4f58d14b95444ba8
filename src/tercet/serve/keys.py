"""API keys: who may read and who may write."""

import hmac
import os
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from tercet.errors import FileError, InputError
from tercet.settings.serve import ServeConfig

Scope: TypeAlias = Literal["read", "write"]

VARIABLE = "TERCET_API_KEYS"
SHORTEST = 16
"""Characters of the shortest key that is accepted."""
FORM = "'read KEY' or 'write KEY'"


class Key(NamedTuple):
    """A key, and whether it may change indexes too."""

    secret: bytes
    scope: Scope


def read_keys(config: ServeConfig) -> list[Key]:
    """The keys of the configured file and of ``TERCET_API_KEYS``, where commas separate them.

    Without keys, a server that listens on loopback is open to this machine, and any other is an error.
    """
    lines: list[tuple[str, str]] = []
    if config.keys_file is not None:
        lines += [(line, config.keys_file) for line in _lines_of(Path(config.keys_file))]
    lines += [(part, VARIABLE) for part in os.environ.get(VARIABLE, "").split(",")]
    keys = [_key(line, where) for line, where in lines if line.strip() and not line.startswith("#")]
    if not keys and not config.is_local:
        raise InputError(
            f"a server on {config.host} needs API keys, because other machines can connect: write "
            f"{FORM} into a file and pass --keys-file FILE, or set {VARIABLE}"
        )
    return keys


def scope_of(keys: list[Key], given: bytes) -> Scope | None:
    """What the holder of a key may do; None if there is no such key.

    The comparison takes the same time for every key, so that time does not reveal a part of one.
    """
    found: Scope | None = None
    for key in keys:
        if hmac.compare_digest(key.secret, given):
            found = "write" if "write" in (key.scope, found) else "read"
    return found


def _lines_of(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"the file of API keys {path} cannot be read: {type(error).__name__}") from None


def _key(line: str, where: str) -> Key:
    """A key; errors never quote one."""
    scope, _, secret = line.strip().partition(" ")
    secret = secret.strip()
    if scope not in ("read", "write") or not secret or " " in secret:
        raise InputError(f"each key in {where} must have the form {FORM}")
    if len(secret) < SHORTEST:
        raise InputError(f"a key in {where} has {len(secret)} characters, and at least {SHORTEST} are needed")
    return Key(secret.encode(), "write" if scope == "write" else "read")
