"""Addresses of indexes in databases, and their form without secrets."""

import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from tercet.errors import InputError

SCHEMES = ("postgresql", "postgres", "qdrant")
"""What an address can start with."""
SECRETS = ("password", "sslpassword", "passfile", "token", "api_key")
"""Names of options whose values are not shown."""
HIDDEN = "***"
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where an index is: ``scheme://user:password@host:port/database/index?option=value``.

    Its ``str`` and ``repr`` contain neither the password nor other secrets.
    """

    scheme: str
    path: tuple[str, ...]
    """The parts of the path, decoded."""
    options: dict[str, str]
    parts: SplitResult = field(repr=False)

    def __str__(self) -> str:
        user = f"{self.parts.username}@" if self.parts.username else ""
        port = f":{self.parts.port}" if self.parts.port else ""
        return f"{self.scheme}://{user}{unquote(self.parts.hostname or '')}{port}/{'/'.join(self.path)}"

    __repr__ = __str__

    def without_secrets(self, message: str) -> str:
        """A message of a driver without the secrets of the address."""
        secrets = [self.parts.password, *(self.options.get(name) for name in SECRETS)]
        for secret in filter(None, secrets):
            for form in {secret, unquote(secret)}:
                message = message.replace(form, HIDDEN)
        return message


def is_address(name: object) -> bool:
    """Whether a name is an address instead of a folder."""
    return isinstance(name, str) and ADDRESS.match(name) is not None


def parse_address(text: str) -> Address:
    """The address that a text spells."""
    scheme = text.partition("://")[0].lower()
    if scheme not in SCHEMES:
        raise InputError(f"an index is a folder, or an address that starts with {_known()}, got {scheme}://")
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018 - a port that is no number raises here
    except ValueError:
        raise InputError(
            f"the {scheme} address is malformed: it must be {scheme}://USER@HOST:PORT/DATABASE/INDEX"
        ) from None
    path = tuple(unquote(part) for part in parts.path.removeprefix("/").split("/"))
    return Address(scheme=scheme, path=path, options=dict(parse_qsl(parts.query)), parts=parts)


def _known() -> str:
    return " or ".join(f"{scheme}://" for scheme in SCHEMES)
