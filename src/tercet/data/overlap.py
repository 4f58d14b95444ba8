"""What two data sets have in common: a model must not be measured on what it has learnt."""

from collections.abc import Collection, Hashable, Iterable, Sequence

from tercet.errors import DataError
from tercet.records import Context, Lesson, as_text


def key_of(lesson: Lesson) -> Hashable:
    """What makes a lesson the same as another: context and first candidate, but for case and white space."""
    return folded(lesson.context), folded(lesson.candidates[0])


def overlap(train: Iterable[Lesson], other: Iterable[Lesson]) -> list[int]:
    """Positions in ``train`` of the lessons that ``other`` holds too, whichever of two texts comes first."""
    held = {key for lesson in other for key in keys_both_ways(lesson)}
    return [position for position, lesson in enumerate(train) if key_of(lesson) in held]


def without_overlap(
    train: Sequence[Lesson], other: Collection[Lesson], *, name: str, drop: bool
) -> list[Lesson]:
    """``train`` less what ``other`` holds too, or an error that says how much that is."""
    shared = set(overlap(train, other))
    if shared and not drop:
        first = train[min(shared)]
        raise DataError(
            f"{len(shared)} of {len(train)} training rows are in the {name} data too, the first at "
            f"{first.where or min(shared)}: remove them, or set drop_overlap = true for the training data"
        )
    left = [lesson for position, lesson in enumerate(train) if position not in shared]
    if not left:
        raise DataError(f"all {len(train)} training rows are in the {name} data: there is nothing to learn")
    return left


def keys_both_ways(lesson: Lesson) -> tuple[Hashable, Hashable]:
    """Its key, and that of the same pair the other way round."""
    left, right = folded(lesson.context), folded(lesson.candidates[0])
    return (left, right), (right, left)


def folded(text: Context) -> str:
    """A text but for case and white space; turns in one, so that a dialogue of one turn equals its text."""
    return " ".join(as_text(text).casefold().split())
