"""Texts of the dev sets, which must not be trained on."""

from collections import Counter
from collections.abc import Iterable

from tercet.data.overlap import comparison_key


class DevTexts:
    """Decides which training examples may be used, and counts the others per set.

    A text is what an encoder reads at once: a context with all its turns, or a candidate. Texts that differ
    only in case or spaces are equal.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self.keys = {comparison_key(text) for text in texts}
        self.used: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()

    def allows(self, name: str, *texts: str) -> bool:
        """Whether none of the texts is in a dev set."""
        allowed = not any(comparison_key(text) in self.keys for text in texts)
        (self.used if allowed else self.dropped)[name] += 1
        return allowed

    def report(self) -> str:
        """One line per set with dropped examples."""
        lines = [
            f"{name}: {count} of {count + self.used[name]} dropped"
            for name, count in self.dropped.most_common()
        ]
        return "\n".join(lines)
