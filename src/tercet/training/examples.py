"""What a model learns from: token ids, made once, and what should come out."""

from collections.abc import Iterable
from dataclasses import dataclass

from tercet.models.load import AnyScorer
from tercet.records import Lesson


@dataclass(frozen=True, slots=True)
class Example:
    """A lesson as token ids."""

    context: list[int]
    candidates: tuple[list[int], ...]
    targets: tuple[float, ...]

    @property
    def tokens(self) -> int:
        """How long it is."""
        return len(self.context) + sum(map(len, self.candidates))


def tokenise(scorer: AnyScorer, lessons: Iterable[Lesson]) -> list[Example]:
    """The lessons as ``scorer`` reads them; a text that comes again is tokenised once and kept once."""
    lessons = list(lessons)
    contexts = list(dict.fromkeys(lesson.context for lesson in lessons))
    candidates = list(dict.fromkeys(text for lesson in lessons for text in lesson.candidates))
    left = dict(zip(contexts, scorer.token_ids(contexts, "context"), strict=True))
    right = dict(zip(candidates, scorer.token_ids(candidates, "candidate"), strict=True))
    return [
        Example(
            context=left[lesson.context],
            candidates=tuple(right[text] for text in lesson.candidates),
            targets=lesson.targets,
        )
        for lesson in lessons
    ]
