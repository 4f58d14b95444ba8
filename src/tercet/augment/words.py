"""Changing the words of a text: replacement, insertion, deletion, swap.

A text is split into words and what is between them, so that everything else is preserved. Numbers, negations
and protected words are never changed, because they determine the meaning.
"""

import random
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from tercet.augment.silver import Silver
from tercet.data.overlap import comparison_key
from tercet.errors import InputError
from tercet.records import Example, as_text
from tercet.settings.augment import WordChange, WordsConfig

NEGATIONS = frozenset(
    [
        "no",
        "not",
        "never",
        "none",
        "nobody",
        "nothing",
        "nowhere",
        "neither",
        "nor",
        "cannot",
        "cant",
        "wont",
        "dont",
        "without",
        "hardly",
        "barely",
        "scarcely",
    ]
)
"""In addition to words that end in n't."""

NUMBERS = frozenset(
    [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
        "twenty",
        "thirty",
        "forty",
        "fifty",
        "sixty",
        "seventy",
        "eighty",
        "ninety",
        "hundred",
        "thousand",
        "million",
        "billion",
        "first",
        "second",
        "third",
        "half",
        "once",
        "twice",
        "both",
    ]
)
WORD = re.compile(r"\w+(?:['’]\w+)*")


class Proposer(Protocol):
    """Proposes words for a position in a text."""

    def replacements(self, pieces: Sequence[str], position: int) -> Sequence[str]:
        """Words that could replace the word at a position, most likely first."""

    def insertions(self, pieces: Sequence[str], position: int) -> Sequence[str]:
        """Words that could precede the word at a position."""


def changed_text(
    text: str,
    change: WordChange,
    rng: random.Random,
    *,
    rate: float,
    protected: Collection[str] = (),
    proposer: Proposer | None = None,
) -> str | None:
    """The text with a share of its words changed, or None if no word can be."""
    pieces = pieces_of(text)
    free = [position for position in words_of(pieces) if is_changeable(pieces[position], protected)]
    if change == "swap":
        return _swapped(pieces, free, rng, rate=rate)
    wanted = max(1, round(rate * len(words_of(pieces))))
    rng.shuffle(free)
    done = 0
    for position in free:
        if done == wanted:
            break
        other = _other(pieces, position, change, rng, proposer, protected)
        if other is not None:
            pieces[position] = other
            done += 1
    made = " ".join("".join(pieces).split()) if change == "deletion" else "".join(pieces)
    return made if done and WORD.search(made) and comparison_key(made) != comparison_key(text) else None


def changed_pairs(
    gold: Sequence[Example], change: WordChange, config: WordsConfig, proposer: Proposer | None
) -> Iterator[Silver]:
    """Gold pairs with words of one or both texts changed, with the gold score; reproducible by the seed."""
    protected = {word.casefold() for word in config.protected}
    for position, example in enumerate(gold):
        seen = {(comparison_key(example.context), comparison_key(example.candidates[0]))}
        for copy in range(config.copies):
            rng = random.Random(f"{config.seed} {change} {position} {copy}")
            texts = [as_text(example.context), example.candidates[0]]
            for side in rng.choice(((0,), (1,), (0, 1))):
                made = changed_text(
                    texts[side], change, rng, rate=config.rate, protected=protected, proposer=proposer
                )
                texts[side] = texts[side] if made is None else made
            key = comparison_key(texts[0]), comparison_key(texts[1])
            if key not in seen and key[0] != key[1]:  # equal texts must not keep a lower score
                seen.add(key)
                yield Silver(texts[0], texts[1], example.targets[0], change, (position, position), "")


def pieces_of(text: str) -> list[str]:
    """Words and what is between them, alternating; joined they are the text."""
    pieces: list[str] = []
    end = 0
    for found in WORD.finditer(text):
        pieces += [text[end : found.start()], found.group()]
        end = found.end()
    return [*pieces, text[end:]]


def words_of(pieces: Sequence[str]) -> list[int]:
    """The positions of the words."""
    return list(range(1, len(pieces), 2))


def is_changeable(word: str, protected: Collection[str]) -> bool:
    """Whether a word may be changed."""
    plain = word.casefold().replace("’", "'")
    fixed = plain in NEGATIONS or plain in NUMBERS or plain in protected or plain.endswith("n't")
    return not fixed and not any(map(str.isdigit, word))


def match_case(word: str, like: str) -> str:
    """The word in the case of another one: upper case, capitalized, or unchanged."""
    if len(like) > 1 and like.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if like[:1].isupper() else word


def _other(
    pieces: Sequence[str],
    position: int,
    change: WordChange,
    rng: random.Random,
    proposer: Proposer | None,
    protected: Collection[str],
) -> str | None:
    """What replaces the word at a position, or None."""
    if change == "deletion":
        return ""
    if proposer is None:
        raise InputError(f"{change} needs a proposer")
    word = pieces[position]
    proposed = (
        proposer.insertions(pieces, position)
        if change == "insertion"
        else proposer.replacements(pieces, position)
    )
    # adding a negation or a number changes the meaning as much as removing one
    found = [
        other for other in proposed if other.casefold() != word.casefold() and is_changeable(other, protected)
    ]
    if not found:
        return None
    other = rng.choice(found)
    return f"{other} {word}" if change == "insertion" else match_case(other, word)


def _swapped(pieces: list[str], free: Sequence[int], rng: random.Random, *, rate: float) -> str | None:
    """The text with adjacent words swapped."""
    before = "".join(pieces)
    neighbours = [position for position in free if position + 2 in free]
    for position in rng.sample(neighbours, min(len(neighbours), max(1, round(rate * len(free))))):
        pieces[position], pieces[position + 2] = pieces[position + 2], pieces[position]
    made = "".join(pieces)
    return made if comparison_key(made) != comparison_key(before) else None
