"""Whether a program printed what a page shows: equal words, and numbers that differ by rounding at most."""

import re

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?")
BORDERS = re.compile(r"[━─═]{2,}|-{3,}")
TIMES = re.compile(r"(?<=\s)ms(?=\s)")
"""The head of a column of times."""
SHARE = 0.02
"""By how much of its value a number with decimals may differ."""


def same_output(shown: str, printed: str) -> bool:
    """Whether the words are equal, numbers with decimals nearly, and ``...`` stands for any text."""
    parts = re.split(r"^\.\.\.$\n?|\.\.\.", shown, flags=re.MULTILINE)
    if len(parts) == 1:
        return _same(shown, printed)
    pattern = r"(?s:.*?)".join(_pattern(part) for part in parts)
    found = re.fullmatch(rf"\s*{pattern}\s*", _plain(printed))
    if found is None:
        return False
    wanted = [number for part in parts for number in NUMBER.findall(_plain(part))]
    return all(_close(want, got) for want, got in zip(wanted, found.groups(), strict=True))


def _same(shown: str, printed: str) -> bool:
    if TIMES.search(shown) and TIMES.search(printed):
        shown, printed = _table_words(shown), _table_words(printed)
    one, other = _plain(shown).strip(), _plain(printed).strip()
    numbers = list(zip(NUMBER.findall(one), NUMBER.findall(other), strict=False))
    return NUMBER.sub("0", one) == NUMBER.sub("0", other) and all(_close(*pair) for pair in numbers)


def _table_words(text: str) -> str:
    """The words of a table without its column of times, in an order that does not depend on its width.

    Times differ between machines, and with the width of their column cells wrap elsewhere.
    """
    words: list[str] = []
    end = None
    for line in text.splitlines():
        header = TIMES.search(line)
        end = header.end() if header else end
        words += [word.group() for word in re.finditer(r"\S+", line) if word.end() != end or header]
    return "\n".join(sorted(words, key=_sort_key))


def _sort_key(word: str) -> tuple[str, list[float]]:
    """Equal words but for numbers are neighbours, in the order of their numbers."""
    return NUMBER.sub("0", word), [float(number.replace(",", "")) for number in NUMBER.findall(word)]


def _pattern(part: str) -> str:
    """A pattern for a part of the output, with a group for each number."""
    pieces = [re.escape(piece) for piece in NUMBER.split(_plain(part).strip())]
    return rf"\s*{f'({NUMBER.pattern})'.join(pieces)}\s*"


def _plain(text: str) -> str:
    """The text without the width of columns and lines."""
    return re.sub(r"[ \t]+", " ", BORDERS.sub("-", text)).replace(" \n", "\n")


def _close(shown: str, printed: str) -> bool:
    """Whether two numbers are equal; with decimals, within a share of the value or two units of the last."""
    if "." not in shown:
        return shown == printed
    one, other = (float(number.replace(",", "")) for number in (shown, printed))
    unit = 10.0 ** -len(re.sub(r"e.*", "", shown).partition(".")[2])
    return abs(one - other) <= max(SHARE * abs(one), 2 * unit) * (1 + 1e-9)
