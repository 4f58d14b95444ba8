"""Sample data that comes with tercet, in English (``en``) and Korean (``ko``), written for it."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from tercet.data.rows import Row, read_rows
from tercet.inputs import check_choice
from tercet.records import Dialogue, Pair, Question

Language: TypeAlias = Literal["en", "ko"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
NAMES = tuple(f"{kind}.{language}" for kind in ("faq", "dialogues", "pairs") for language in LANGUAGES)


def sample_path(name: str) -> Path:
    """The file of a sample, such as ``faq.en``."""
    check_choice("sample", name, NAMES)
    return Path(str(files("tercet.data"))) / "sample" / f"{name}.jsonl"


def questions(language: Language = "en") -> list[Question]:
    """Questions that people ask shops, libraries, doctors..., each with its one right answer."""
    return [Question(**row.columns) for row in _rows("faq", language)]


def dialogues(language: Language = "en") -> list[Dialogue]:
    """Short dialogues of two speakers."""
    return [Dialogue(turns=tuple(row.columns["turns"])) for row in _rows("dialogues", language)]


def pairs(language: Language = "en") -> list[Pair]:
    """Pairs of sentences, graded from 0 (nothing in common) to 5 (same meaning)."""
    return [Pair(**row.columns) for row in _rows("pairs", language)]


def _rows(kind: str, language: Language) -> Iterator[Row]:
    check_choice("language", language, LANGUAGES)
    return read_rows(sample_path(f"{kind}.{language}"))
