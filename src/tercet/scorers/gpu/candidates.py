"""Candidates whose vectors stay on the device of a model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import ReferenceType

from tercet.errors import InputError
from tercet.records import Ints, Ranked
from tercet.scorers.gpu.vectors import DeviceVectors


@dataclass(frozen=True, slots=True, eq=False)
class DeviceCandidates(Sequence[str]):
    """Texts that a scorer has encoded, with their vectors on its device; ``rank`` and ``score`` take them.

    ``truncated`` counts the tokens of each that were truncated.
    """

    texts: tuple[str, ...]
    vectors: DeviceVectors
    truncated: Ints
    fingerprint: str
    """Identifies the model that encoded them."""
    model: ReferenceType[Any]
    """That model, whose fingerprint need not be computed again."""

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, position: int) -> str:  # type: ignore[override]
        return self.texts[position]

    def __repr__(self) -> str:
        return f"<DeviceCandidates: {self.vectors!r}>"

    def check_model(self, model: Any) -> None:
        """Raise if another model than this encoded the candidates."""
        if model is not self.model() and model.fingerprint != self.fingerprint:
            raise InputError(
                f"these candidates were encoded by model {self.fingerprint[:12]}, asked by "
                f"{model.fingerprint[:12]}: encode them again with device_candidates"
            )

    def ranked(self, position: int, score: float, *, context_truncated: int) -> Ranked:
        """A candidate in a ranking."""
        return Ranked(
            position=position,
            score=score,
            text=self.texts[position],
            context_truncated=context_truncated,
            candidate_truncated=int(self.truncated[position]),
        )
