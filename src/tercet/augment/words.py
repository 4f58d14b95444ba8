"""Pairs with other words and the same score: replace, insert, leave out, exchange.

A text is cut into words and what stands between them, so that everything else stays as it was. Numbers,
negations and what the user protects are never touched: they decide what a sentence says.
"""

import random
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, get_args

from tercet.augment.silver import Silver
from tercet.data.overlap import folded
from tercet.errors import InputError
from tercet.inputs import check_choice, check_count, check_seed
from tercet.records import Lesson, as_text

Change: TypeAlias = Literal["synonyms", "substitution", "insertion", "deletion", "swap"]
CHANGES: tuple[Change, ...] = get_args(Change)

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
"""And whatever ends in n't."""

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


@dataclass(frozen=True, kw_only=True)
class WordConfig:
    """How words are changed."""

    changes: tuple[Change, ...] = ("synonyms",)
    """``synonyms`` from WordNet; ``substitution`` and ``insertion`` by a masked language model, or by the
    words nearest in an encoder's table; ``deletion``; ``swap`` of neighbours. Each makes a student."""
    rate: float = 0.1
    """The share of a text's words that are changed, at least one."""
    copies: int = 1
    """How many changed pairs are made of each gold pair."""
    protected: tuple[str, ...] = ()
    """Words that stay, beside numbers and negations."""
    wordnet: str = "/usr/share/wordnet"
    """The folder of ``synonyms``."""
    language_model: str = ""
    """The masked language model's folder; without one, the nearest words in ``encoder``'s table."""
    encoder: str = "bi"
    least_similarity: float = 0.7
    """A changed text is kept only if its cosine with the old one, by ``encoder``, is at least this; with -1
    nobody looks."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.changes:
            raise InputError(f"changes must name at least one of {', '.join(CHANGES)}")
        for change in self.changes:
            check_choice("a change", change, CHANGES)
        if not 0 < self.rate <= 1:
            raise InputError(f"rate must be above 0 and at most 1, got {self.rate}")
        check_count("copies", self.copies)
        check_seed(self.seed)
        if not -1 <= self.least_similarity <= 1:
            raise InputError(f"least_similarity must be from -1 to 1, got {self.least_similarity}")


class Proposer(Protocol):
    """Knows words that could stand in a place of a text."""

    def instead(self, pieces: Sequence[str], place: int) -> Sequence[str]:
        """Words that could stand for the word at a place, the likeliest first; perhaps none."""

    def before(self, pieces: Sequence[str], place: int) -> Sequence[str]:
        """Words that could stand before the word at a place."""


def changed_text(
    text: str,
    change: Change,
    chance: random.Random,
    *,
    rate: float,
    protected: Collection[str] = (),
    proposer: Proposer | None = None,
) -> str | None:
    """The text with a share of its words changed, or None if no word of it can be."""
    pieces = pieces_of(text)
    free = [place for place in words_of(pieces) if is_free(pieces[place], protected)]
    if change == "swap":
        return _swapped(pieces, free, chance, rate=rate)
    wanted = max(1, round(rate * len(words_of(pieces))))
    chance.shuffle(free)
    done = 0
    for place in free:
        if done == wanted:
            break
        other = _other(pieces, place, change, chance, proposer, protected)
        if other is not None:
            pieces[place] = other
            done += 1
    made = " ".join("".join(pieces).split()) if change == "deletion" else "".join(pieces)
    return made if done and WORD.search(made) and folded(made) != folded(text) else None


def changed_pairs(
    gold: Sequence[Lesson], change: Change, config: WordConfig, proposer: Proposer | None
) -> Iterator[Silver]:
    """Gold pairs with words of one or both texts changed and gold's score, the same for the same seed."""
    protected = {word.casefold() for word in config.protected}
    for place, lesson in enumerate(gold):
        seen = {(folded(lesson.context), folded(lesson.candidates[0]))}
        for copy in range(config.copies):
            chance = random.Random(f"{config.seed} {change} {place} {copy}")
            texts = [as_text(lesson.context), lesson.candidates[0]]
            for side in chance.choice(((0,), (1,), (0, 1))):
                made = changed_text(
                    texts[side], change, chance, rate=config.rate, protected=protected, proposer=proposer
                )
                texts[side] = texts[side] if made is None else made
            key = folded(texts[0]), folded(texts[1])
            if key not in seen and key[0] != key[1]:  # two equal texts would keep a lower score
                seen.add(key)
                yield Silver(texts[0], texts[1], lesson.targets[0], change, (place, place), "")


def pieces_of(text: str) -> list[str]:
    """Words and what stands between them, in turn: together they are the text."""
    pieces: list[str] = []
    end = 0
    for found in WORD.finditer(text):
        pieces += [text[end : found.start()], found.group()]
        end = found.end()
    return [*pieces, text[end:]]


def words_of(pieces: Sequence[str]) -> list[int]:
    """The places of the words."""
    return list(range(1, len(pieces), 2))


def is_free(word: str, protected: Collection[str]) -> bool:
    """Whether a word may be changed."""
    plain = word.casefold().replace("’", "'")
    fixed = plain in NEGATIONS or plain in NUMBERS or plain in protected or plain.endswith("n't")
    return not fixed and not any(map(str.isdigit, word))


def in_case_of(word: str, like: str) -> str:
    """A word written as another was: in capitals, with a capital, or as it is."""
    if len(like) > 1 and like.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if like[:1].isupper() else word


def _other(
    pieces: Sequence[str],
    place: int,
    change: Change,
    chance: random.Random,
    proposer: Proposer | None,
    protected: Collection[str],
) -> str | None:
    """What comes to a place instead of its word."""
    if change == "deletion":
        return ""
    if proposer is None:
        raise InputError(f"{change} needs someone who proposes words")
    word = pieces[place]
    proposed = proposer.before(pieces, place) if change == "insertion" else proposer.instead(pieces, place)
    # a negation or a number that comes in changes as much as one that goes
    found = [other for other in proposed if other.casefold() != word.casefold() and is_free(other, protected)]
    if not found:
        return None
    other = chance.choice(found)
    return f"{other} {word}" if change == "insertion" else in_case_of(other, word)


def _swapped(pieces: list[str], free: Sequence[int], chance: random.Random, *, rate: float) -> str | None:
    """The text after exchanges of neighbours."""
    before = "".join(pieces)
    neighbours = [place for place in free if place + 2 in free]
    for place in chance.sample(neighbours, min(len(neighbours), max(1, round(rate * len(free))))):
        pieces[place], pieces[place + 2] = pieces[place + 2], pieces[place]
    made = "".join(pieces)
    return made if folded(made) != folded(before) else None
