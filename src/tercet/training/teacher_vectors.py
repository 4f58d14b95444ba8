"""A teacher's vectors as targets, for translations."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tercet.arrays import unit_vectors
from tercet.errors import InputError
from tercet.formats.load import load
from tercet.records import Example
from tercet.scorers.bi import BiEncoder
from tercet.training.objectives.translation import check_one_space
from tercet.training.tokenized import TokenizedExample

FLOAT32 = "f"


class TeacherVectors:
    """The unit vectors of sources, each computed and stored once."""

    def __init__(self, teacher: str, examples: Iterable[Example], *, student: BiEncoder) -> None:
        scorer = load(teacher, device=str(student.device))
        if not isinstance(scorer, BiEncoder):
            raise InputError(f"the teacher of translations must be a bi-encoder, got a {scorer.kind}-encoder")
        check_one_space(scorer, f"the teacher {teacher} must be")
        if scorer.width != student.width:
            raise InputError(
                f"the teacher {teacher} has vectors of {scorer.width} dimensions, and the model has "
                f"{student.width}: choose a model of the same width"
            )
        sources = list(dict.fromkeys(example.candidates[0] for example in examples))
        vectors = unit_vectors(scorer.encode_candidates(sources))
        self._vectors = {
            text: array(FLOAT32, vector.tobytes()) for text, vector in zip(sources, vectors, strict=True)
        }

    def as_targets(
        self, examples: Sequence[Example], tokenized: Sequence[TokenizedExample]
    ) -> list[TokenizedExample]:
        """The tokenized examples with the vectors of their sources as targets."""
        return [
            replace(tokens, targets=self._vectors[example.candidates[0]])
            for example, tokens in zip(examples, tokenized, strict=True)
        ]
