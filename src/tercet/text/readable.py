"""Whether a vocabulary can read a text: the share of letters that are unknown or taken apart."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, islice

MAX_TEXTS, MAX_CHARACTERS = 256, 500
"""How many texts with other letters than ASCII are examined at a time, and how much of each."""
MIN_EXTRA_BYTES = 1 / 8
"""Bytes of UTF-8 beyond one per character: about 1/20 in German and French, 0.8 and more in Russian."""

WHOLE = ("HANGUL SYLLABLE", "CJK", "HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA")
"""Starts of the Unicode names of characters that mean something alone: syllables and ideographs."""

SAMPLES = {
    "Latin": "a few words that many readers know",
    "Hangul": "한국어로 쓴 문장을 몇 개 읽어 보세요",
    "Han": "我們昨天在圖書館讀了一本有趣的書",
    "Hiragana": "わたしはきのうとしょかんにいきました",
    "Katakana": "コンピューターとインターネットのニュース",
    "Cyrillic": "вчера мы читали интересную книгу в библиотеке",
    "Greek": "χθες διαβάσαμε ένα ενδιαφέρον βιβλίο",
    "Arabic": "قرأنا أمس كتابا ممتعا في المكتبة",
    "Hebrew": "אתמול קראנו ספר מעניין בספרייה",
    "Devanagari": "हमने कल पुस्तकालय में एक रोचक किताब पढ़ी",
    "Thai": "เมื่อวานเราอ่านหนังสือที่ห้องสมุด",
}
"""A sentence in each script that ``readable_scripts`` tries, by the Unicode names of the scripts."""
MIN_READABLE = 0.7
"""Share of the letters of a sentence that a vocabulary must read."""


@dataclass(frozen=True, slots=True)
class TokenSpan:
    """The characters ``start`` to ``end`` of a text that a token covers, and whether the token is unknown."""

    start: int
    end: int
    unknown: bool


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The letters of the script that most unreadable texts are in, and how many of them are unreadable."""

    script: str
    letters: int
    unreadable: int

    @property
    def share(self) -> float:
        """The share of the script's letters that are unreadable."""
        return self.unreadable / self.letters


def find_unreadable(
    texts: Iterable[str], spans_of: Callable[[str], Sequence[TokenSpan]]
) -> Unreadable | None:
    """The script of the texts that a vocabulary cannot read, or None if there are hardly any.

    A text is unreadable if at least half of its letters are. Only texts that are not ASCII are examined, at
    most ``MAX_TEXTS`` of them.
    """
    all_letters: Counter[str] = Counter()
    all_unreadable: Counter[str] = Counter()
    for text in _examined(texts):
        letters, unreadable = letters_by_script(text, spans_of(text))
        if 2 * unreadable.total() >= max(letters.total(), 1):
            all_letters += letters
            all_unreadable += unreadable
    if not all_unreadable:
        return None
    script, unreadable_letters = all_unreadable.most_common(1)[0]
    return Unreadable(script, all_letters[script], unreadable_letters)


def readable_scripts(spans_of: Callable[[str], Sequence[TokenSpan]]) -> list[str]:
    """The scripts that a vocabulary reads, of those with a sample sentence: ``["Latin", "Hangul"]``."""
    found = []
    for script, text in SAMPLES.items():
        letters, unreadable = letters_by_script(text, spans_of(text))
        if letters.total() - unreadable.total() >= MIN_READABLE * letters.total():
            found.append(script)
    return found


def letters_by_script(text: str, spans: Sequence[TokenSpan]) -> tuple[Counter[str], Counter[str]]:
    """How many letters of each script a text has, and how many of them the vocabulary cannot read.

    A letter is unreadable if its token is unknown, if it has no token or is split into several, or if it is
    taken apart from its word: its token contains nothing else, though its script writes words with several
    letters. The μ of μm is not taken apart: its neighbours are of another script.
    """
    covering = _covering(text, spans)
    letters: Counter[str] = Counter()
    unreadable: Counter[str] = Counter()
    for script, run in _runs(text):
        letters[script] += len(run)
        if not all(text[position].isascii() for position in run):
            may_be_alone = script == "Latin" or len(run) == 1
            unreadable[script] += sum(
                not _is_readable(text, at, covering[at], may_be_alone=may_be_alone) for at in run
            )
    return letters, unreadable


@lru_cache(maxsize=4096)
def script_of(letter: str) -> str:
    """The script of a letter: ``Hangul``, ``Cyrillic``, ``Han`` (Chinese characters), …"""
    name = unicodedata.name(letter, "UNKNOWN")
    if "LATIN" in name:
        return "Latin"
    if name.startswith("CJK"):
        return "Han"
    return name.removeprefix("HALFWIDTH ").partition(" ")[0].capitalize()


def _examined(texts: Iterable[str]) -> Iterator[str]:
    """The beginnings of texts that may be in another script than the Latin one."""
    begun = (text[:MAX_CHARACTERS] for text in texts if not text.isascii())
    return islice((text for text in begun if _extra_bytes(text) >= MIN_EXTRA_BYTES * len(text)), MAX_TEXTS)


def _extra_bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass")) - len(text)


def _runs(text: str) -> Iterator[tuple[str, list[int]]]:
    """The positions of neighbouring letters of one script; marks, such as vowel signs, do not part them."""

    def script_at(position: int) -> str:
        return script_of(text[position]) if text[position].isalpha() else ""

    unmarked = (position for position in range(len(text)) if not _is_mark(text[position]))
    for script, positions in groupby(unmarked, key=script_at):
        if script:
            yield script, list(positions)


def _covering(text: str, spans: Sequence[TokenSpan]) -> list[list[TokenSpan]]:
    """The tokens of each character."""
    covering: list[list[TokenSpan]] = [[] for _ in text]
    for span in spans:
        for position in range(span.start, span.end):
            covering[position].append(span)
    return covering


def _is_readable(text: str, position: int, tokens: Sequence[TokenSpan], *, may_be_alone: bool) -> bool:
    if len(tokens) != 1 or tokens[0].unknown:
        return False
    if may_be_alone or unicodedata.name(text[position], "").startswith(WHOLE):
        return True
    covered = text[tokens[0].start : tokens[0].end]
    return sum(character.isalpha() or _is_mark(character) for character in covered) > 1


def _is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("M")
