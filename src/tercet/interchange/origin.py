"""Where vectors come from: the model that made them, written beside them."""

from dataclasses import asdict, dataclass, fields
from typing import Any

from tercet.errors import DataError
from tercet.files.parsing import parse_json
from tercet.files.structured import json_text
from tercet.inputs import describe


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """The model of some vectors, which are in the form that an index compares: unit vectors for cosines."""

    fingerprint: str
    kind: str
    """``bi`` or ``poly``."""
    model: str | None
    """The name or folder of the model; None if it was only in memory."""
    width: int
    storage: str = "float32"
    """How the index stored them. Vectors are exported in float32, rounded as the storage rounded them."""

    def as_text(self) -> str:
        """The origin as JSON."""
        return json_text(asdict(self))


def origin_from(text: str | bytes, location: str) -> Origin:
    """The origin in a JSON text that tercet wrote."""
    try:
        content: Any = parse_json(text.decode() if isinstance(text, bytes) else text)
    except ValueError as error:
        raise DataError(f"{location} is not valid JSON: {error}: export the vectors again") from None
    names = {field.name for field in fields(Origin)}
    if not isinstance(content, dict) or not names >= content.keys() >= names - {"storage"}:
        raise DataError(f"{location} must have the keys {', '.join(sorted(names))}, got {describe(content)}")
    return Origin(**content)
