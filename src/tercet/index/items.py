"""What a store keeps of a candidate beside its vector."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Item:
    """A candidate: its id, its text, and whatever else is known of it, as JSON has it."""

    id: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
