"""What the engine reports while it works."""

from tercet.serve.work import Lane


class Observer:
    """Ignores every report; metrics and tests override what they need. The event loop's thread calls it."""

    def tokenized(self, model: str, texts: int, truncated: int, seconds: float) -> None:
        """Texts were tokenized, some of them truncated."""

    def waited(self, model: str, seconds: float) -> None:
        """The item of a batch that came first waited this long for its turn."""

    def computed(self, model: str, lane: Lane, texts: int, tokens: int, seconds: float) -> None:
        """A batch passed through a model."""
