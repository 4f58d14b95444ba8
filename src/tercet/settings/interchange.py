"""How files of vectors are read."""

from dataclasses import dataclass

from tercet.inputs import check_string


@dataclass(frozen=True, kw_only=True)
class VectorColumns:
    """The columns of a Parquet file with vectors. Other columns are metadata, as is ``metadata``."""

    id: str = "id"
    """The id of a candidate, a string or a whole number."""
    text: str = "text"
    """Its text."""
    vector: str = "vector"
    """Its vector: a list of numbers."""

    def __post_init__(self) -> None:
        for name in ("id", "text", "vector"):
            check_string(f"the column of {name}", getattr(self, name))
