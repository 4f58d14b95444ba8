"""What a store keeps of a candidate beside its vector."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Item:
    """A candidate: its id (empty: it gets a number for one), its text, and what else is known of it."""

    id: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
