"""Names for groups of texts: the words that set a group apart from the other texts."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, takewhile
from math import log

from tercet.inputs import shortened
from tercet.text.cjk import HAN, UNSPACED, bigrams
from tercet.text.function_words import is_function_word

WORD = re.compile(r"[^\W\d_][\w'’-]+")
HANGUL = re.compile("[\uac00-\ud7a3]+")
HAN_RUN = re.compile(f"[{HAN}]+")
KATAKANA = re.compile("[\u30a0-\u30ff]{2,}")
UNSPACED_CHARACTER = re.compile(f"[{UNSPACED}]")
HAN_WORD = 4
"""Longer runs of Han characters are several words, and are split into pairs of characters."""

PARTICLES = re.compile(
    "(?:에서는|에게서|으로는|이라고|에서|에게|한테|까지|부터|으로|처럼|보다|이나|이랑|하고|인가요|은|는|이|가|을|를|의|에|로|와|과|도|만|요)$"
)
"""Endings that Korean attaches to a noun: "날씨가" and "날씨는" are the same word."""

WORDS = 3
MAX_NAME = 40
"""Characters of a text that names its group if the group has no words."""


def group_names(texts: Sequence[str], groups: Sequence[Sequence[int]]) -> list[str]:
    """Up to three words for each group of texts, the weightiest first.

    Class-based TF-IDF: the weight of a word in a group is the number of the group's texts that contain it,
    times log((N + 1) / n) if n of all N texts contain it. Words that are common everywhere weigh little, and
    function words of English and Korean are left out.

    Args:
        groups: positions of texts. A group without words is named by its first text.
    """
    words = [set(_words(text)) for text in texts]
    frequencies = Counter(chain.from_iterable(words))
    names = []
    for group in groups:
        counts = Counter(chain.from_iterable(words[position] for position in group))
        names.append(", ".join(_weightiest(counts, frequencies, len(texts))) or _cut(texts[group[0]]))
    return names


def _weightiest(counts: Counter[str], frequencies: Counter[str], texts: int) -> list[str]:
    """The words with the largest weights; of words that start alike, only the first."""
    weights = {word: count * log((texts + 1) / frequencies[word]) for word, count in counts.items()}
    chosen: list[str] = []
    for word in sorted(weights, key=lambda word: (-weights[word], -len(word), word)):
        if len(chosen) == WORDS:
            break
        if not any(_alike(word, other) for other in chosen):
            chosen.append(word)
    return chosen


def _words(text: str) -> Iterator[str]:
    """The words of a text in lower case, without numbers and function words."""
    for found in WORD.finditer(text.lower()):
        word = found.group().rstrip("'’-")
        if UNSPACED_CHARACTER.search(word):
            yield from _unspaced(word)
        elif not is_function_word(word):
            stem = PARTICLES.sub("", word) if HANGUL.fullmatch(word) else word
            yield stem if len(stem) > 1 else word


def _unspaced(run: str) -> Iterator[str]:
    """Words of Chinese and Japanese: short runs of Han characters, pairs of longer ones, and katakana."""
    yield from KATAKANA.findall(run)
    for han in HAN_RUN.findall(run):
        yield from [han] if len(han) <= HAN_WORD else bigrams(han)


def _alike(word: str, other: str) -> bool:
    """Whether two words look like forms of one, as "verify" and "verification", or "fee" and "fees"."""
    short, long = sorted((word, other), key=len)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(short, long, strict=False)))
    if shared < len(short):
        return shared >= max(4, 0.7 * len(short))
    return (
        len(short) >= 4 or not short.isascii() or long[len(short) :] in ("s", "es") or long[len(short)] == "-"
    )


def _cut(text: str) -> str:
    return shortened(" ".join(text.split()), MAX_NAME)
