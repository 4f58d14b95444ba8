"""A normalizer that keeps the marks of some scripts, and treats other texts as the one it replaces.

The normalizer of BERT's uncased models takes letters apart and removes all marks: a Hangul syllable becomes
its letters, and the Japanese が becomes か.
"""

import json
import re
import unicodedata
from collections.abc import Collection, Iterable
from typing import Any, TypeAlias

from tokenizers import Regex, Tokenizer, models, normalizers

from tercet.errors import InputError
from tercet.files.structured import json_text
from tercet.text.readable import script_of

Step: TypeAlias = dict[str, Any]
"""A normalizer as ``tokenizer.json`` stores it."""

BERT = "BertNormalizer"
REPLACEABLE = (
    (BERT,),
    (BERT, "NFD", "StripAccents", "NFC", "Lowercase"),
    (BERT, "NFD", "Replace", "NFC", "Lowercase"),
    (BERT, "NFD", "Replace", "NFC"),
)
"""Types of the steps of normalizers that can be replaced: BERT's, and those of extended tokenizers."""


def keeping_marks(stored: Step | None, texts: Iterable[str], scripts: Collection[str]) -> Step | None:
    """The stored normalizer if it keeps the letters of the scripts, else one like it that does."""
    if stored is None or _keeps(stored, texts, scripts):
        return stored
    steps = _steps(stored)
    types = tuple(step["type"] for step in steps)
    if types not in REPLACEABLE or not (len(steps) > 1 or _strips_accents(stored)):
        raise InputError(
            f"the tokenizer's normalizer changes letters of {', '.join(sorted(scripts))}, and only that of "
            "BERT's uncased models can be replaced by one that keeps them: choose another model"
        )
    clean = normalizers.BertNormalizer(
        clean_text=steps[0]["clean_text"],
        handle_chinese_chars=steps[0]["handle_chinese_chars"],
        strip_accents=False,
        lowercase=False,
    )
    kept = {script for script in scripts if _is_property(script)} | _kept_scripts(steps)
    properties = "".join(rf"\p{{{script}}}" for script in ("Mn", *sorted(kept)))
    marks = normalizers.Replace(Regex(rf"(?<![{properties}])\p{{Mn}}+"), "")
    lower = [normalizers.Lowercase()] if steps[0]["lowercase"] or "Lowercase" in types else []
    rust = Tokenizer(models.WordPiece())
    rust.normalizer = normalizers.Sequence([clean, normalizers.NFD(), marks, normalizers.NFC(), *lower])
    new: Step = json.loads(rust.to_str())["normalizer"]
    return new


def _keeps(stored: Step, texts: Iterable[str], scripts: Collection[str]) -> bool:
    """Whether no letter or mark of the scripts is changed, apart from its case."""
    content = json.loads(Tokenizer(models.WordPiece()).to_str()) | {"normalizer": stored}
    normalize = Tokenizer.from_str(json_text(content)).normalizer.normalize_str
    characters = {each for text in texts for each in unicodedata.normalize("NFC", text)}
    theirs = [each for each in characters if _is_letter_or_mark(each) and script_of(each) in scripts]
    return all(normalize(each).strip() in (each, each.lower()) for each in theirs)


def _steps(stored: Step) -> list[Step]:
    return list(stored.get("normalizers", [stored]))


def _strips_accents(bert: Step) -> bool:
    return bool(bert["lowercase"] if bert["strip_accents"] is None else bert["strip_accents"])


def _kept_scripts(steps: Iterable[Step]) -> set[str]:
    """The scripts whose marks an extended normalizer keeps already."""
    patterns = [str(step.get("pattern")) for step in steps]
    return {script for pattern in patterns for script in re.findall(r"p\{(\w+)\}", pattern)} - {"Mn"}


def _is_letter_or_mark(character: str) -> bool:
    return character.isalpha() or unicodedata.category(character) == "Mn"


def _is_property(script: str) -> bool:
    """Whether patterns know the script; they do not know all that Unicode's names begin with."""
    try:
        Regex(rf"\p{{{script}}}")
    except Exception:  # the library raises nothing more particular
        return False
    return True
