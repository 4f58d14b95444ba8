"""Results that were computed before, in a limited amount of memory."""

from collections import OrderedDict
from collections.abc import Hashable

from tercet.serve.work import Result

OVERHEAD = 500
"""Bytes of an entry beside its text and its numbers."""


class ResultCache:
    """The results that were used last, by model, lane and text."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self._entries: OrderedDict[Hashable, tuple[Result, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> Result | None:
        """The result of a text, if it is here."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: Hashable, result: Result, *, characters: int) -> None:
        """Keep a result; the least recently used ones make room for it."""
        size = OVERHEAD + 4 * characters + getattr(result.value, "nbytes", 8)
        if size > self.max_bytes or key in self._entries:
            return
        self._entries[key] = result, size
        self.bytes += size
        while self.bytes > self.max_bytes:
            _, (_, freed) = self._entries.popitem(last=False)
            self.bytes -= freed

    def forget(self, model: object) -> None:
        """Remove the results of a model; keys begin with it."""
        for key in [key for key in self._entries if isinstance(key, tuple) and key[0] is model]:
            self.bytes -= self._entries.pop(key)[1]
