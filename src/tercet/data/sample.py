"""Sample data that is installed with tercet, in English (``en``) and Korean (``ko``)."""

import random
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from tercet.data.rows import Row, read_rows
from tercet.errors import InputError
from tercet.inputs import check_choice
from tercet.records import Context, Dialogue, Pair, Question, as_text

Language: TypeAlias = Literal["en", "ko"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
KINDS = ("faq", "chats", "dialogues", "pairs")
RETRIEVAL_SETS = ("abstracts.en",)
"""Folders with a corpus, queries and judgements, in the shape of BEIR."""
PARALLEL = "parallel.en-ko"
"""Sentences with their translations."""
NAMES = (
    *(f"{kind}.{language}" for kind in KINDS for language in LANGUAGES),
    PARALLEL,
    *(f"{name}/{part}" for name in RETRIEVAL_SETS for part in ("corpus", "queries")),
)

_FOLDER = Path(str(files("tercet.data"))) / "sample"


def sample_path(name: str) -> Path:
    """The path of a sample, such as ``faq.en``."""
    if name in RETRIEVAL_SETS:
        raise InputError(f"the sample {name} has several files: use {name}/corpus or {name}/queries")
    check_choice("sample", name, NAMES)
    return _FOLDER / f"{name}.jsonl"


def sample_folder(name: str) -> Path:
    """The folder of a retrieval set, such as ``abstracts.en``."""
    if name in NAMES:
        raise InputError(
            f"the sample {name} is not a retrieval set: write KIND:sample:{name} with a kind of task, such "
            f"as answers:sample:faq.en, or use {', '.join(RETRIEVAL_SETS)}"
        )
    check_choice("sample", name, RETRIEVAL_SETS)
    return _FOLDER / name


def questions(language: Language = "en") -> list[Question]:
    """Entries of FAQs: a question with its answer, and how a user asks it in other words."""
    return [Question(**row.columns) for row in _rows("faq", language)]


def chats(language: Language = "en") -> list[Dialogue]:
    """Everyday chats between two people."""
    return _dialogues("chats", language)


def dialogues(language: Language = "en") -> list[Dialogue]:
    """Short dialogues between two people, in shops, at work, with neighbours."""
    return _dialogues("dialogues", language)


def pairs(language: Language = "en") -> list[Pair]:
    """Pairs of sentences with a similarity score from 0 (unrelated) to 5 (same meaning)."""
    return [Pair(**row.columns) for row in _rows("pairs", language)]


def texts(language: Language = "en") -> list[str]:
    """The texts of all samples of a language, related ones side by side; then long ones of several texts."""
    found: list[Context] = [
        text for question in questions(language) for text in (question.context, question.answer)
    ]
    found += [turn for dialogue in (*chats(language), *dialogues(language)) for turn in dialogue.turns]
    found += [text for pair in pairs(language) for text in (pair.context, pair.candidate)]
    single = [as_text(text) for text in found]
    rng = random.Random(0)
    return single + [" ".join(rng.sample(single, rng.randint(4, 20))) for _ in range(len(single) // 12)]


def _dialogues(kind: str, language: Language) -> list[Dialogue]:
    return [Dialogue(turns=tuple(row.columns["turns"])) for row in _rows(kind, language)]


def _rows(kind: str, language: Language) -> Iterator[Row]:
    check_choice("language", language, LANGUAGES)
    return read_rows(sample_path(f"{kind}.{language}"))
