"""Long texts split into chunks of a limited number of tokens."""

from bisect import bisect_left
from collections.abc import Sequence

from tercet.records import Part
from tercet.settings.chunks import ChunkConfig
from tercet.text.sentences import sentence_starts
from tercet.text.tokenizer import WordPieces


def split_text(text: str, pieces: WordPieces, config: ChunkConfig, *, size: int) -> list[Part]:
    """The chunks of a text, in order; a text that fits is one chunk.

    Args:
        pieces: the tokens of the text.
        size: the maximum number of tokens of a chunk.
    """
    count = len(pieces.spans)
    if count <= size:
        return [Part(0, len(text))]
    words = [at for at in range(1, count) if pieces.words[at] != pieces.words[at - 1]]
    starts = [start for start, _ in pieces.spans]
    sentences = sorted({bisect_left(starts, position) for position in sentence_starts(text)} & set(words))
    preferred = sentences if config.boundary == "sentences" else words
    windows = token_windows(count, size=size, overlap=config.overlap, boundaries=(preferred, words))
    return [Part(pieces.spans[first][0], pieces.spans[end - 1][1]) for first, end in windows]


def token_windows(
    count: int, *, size: int, overlap: int, boundaries: Sequence[Sequence[int]]
) -> list[tuple[int, int]]:
    """The first token and the end of each window; together they cover all ``count`` tokens.

    A window ends at the last boundary of the first kind that it can reach, else of the second kind, else
    after ``size`` tokens. The next window starts at the first such boundary at most ``overlap`` tokens
    before that end.

    Args:
        boundaries: sorted positions at which a window may start, for each kind.
    """
    windows: list[tuple[int, int]] = []
    first = 0
    while True:
        end = count if count - first <= size else _last_boundary(boundaries, first + 1, first + size)
        windows.append((first, end))
        if end == count:
            return windows
        first = _first_boundary(boundaries, max(first + 1, end - overlap), end)


def _last_boundary(boundaries: Sequence[Sequence[int]], low: int, high: int) -> int:
    """The largest boundary from ``low`` to ``high``; ``high`` if there is none."""
    for kind in boundaries:
        position = bisect_left(kind, high + 1) - 1
        if position >= 0 and kind[position] >= low:
            return kind[position]
    return high


def _first_boundary(boundaries: Sequence[Sequence[int]], low: int, high: int) -> int:
    """The smallest boundary from ``low`` to ``high``, which is always one."""
    for kind in boundaries:
        position = bisect_left(kind, low)
        if position < len(kind) and kind[position] <= high:
            return kind[position]
    return high
