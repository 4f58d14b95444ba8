"""Headers of every answer."""

import re
from uuid import uuid4

SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
API_HEADERS = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
)
REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


def request_id(given: bytes) -> str:
    """The client's name of a request if it has the right form, else a new one."""
    return given.decode() if REQUEST_ID.fullmatch(given) else uuid4().hex
