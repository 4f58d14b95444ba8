"""Values of any reader as JSON has them."""

from base64 import b64encode
from typing import Any


def as_json(value: Any) -> Any:
    """A value of a row with strings for types that JSON does not have."""
    if isinstance(value, dict):
        return {str(key): as_json(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(each) for each in value]
    return value if value is None or isinstance(value, (str, int, float)) else as_string(value)


def as_string(value: object) -> str:
    """Base64 for bytes; the string of dates and other types, which Hugging Face data sets have."""
    return b64encode(value).decode() if isinstance(value, bytes) else str(value)
