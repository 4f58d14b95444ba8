"""Limits of ``tokenizer.json``, checked before the Rust library reads it.

The library has no limits of its own: forty normalizers that double a letter ask for a terabyte.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

from tercet.errors import FileError, ModelError
from tercet.files.structured import read_json
from tercet.settings.limits import current_limits, exceeds

Step: TypeAlias = dict[str, Any]

SECTIONS = ("normalizer", "pre_tokenizer", "post_processor")
"""What a text passes through; decoders are not used."""

MAY_BE_EMPTY = re.compile(r"[*?^$]|\{[0,]|\\[AbBzZG]|\|\||^\||\|$|\(\||\|\)|\(\)")
"""Parts of a pattern that can match between two characters, where a replacement is an insertion."""

BYTES_PER_CHARACTER = 4
LONGEST_MAPPING = 8
"""Characters that a precompiled map makes of one, about."""


def check_tokenizer(file: Path) -> None:
    """Raise if a ``tokenizer.json`` is malformed, or its steps are too many, too long or an expansion."""
    try:
        content = read_json(file)
        _check_steps(file, [step for name in SECTIONS for step in _steps(content.get(name))])
        _check_word_length(file, content.get("model"))
        _check_ids(file, content)
    except FileError as error:
        raise ModelError(f"{error}: copy the tokenizer again") from None
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ModelError(f"a setting in {file} is missing or invalid: {error}") from error


def _check_steps(file: Path, steps: list[Step]) -> None:
    limits = current_limits()
    if len(steps) > limits.max_tokenizer_steps:
        counted = exceeds("max_tokenizer_steps", len(steps))
        raise ModelError(f"the number of steps in {file} is {counted}")
    for step in steps:
        longest = max((len(text) for text in _texts(step)), default=0)
        if longest > limits.max_pattern_characters:
            counted = exceeds("max_pattern_characters", longest)
            raise ModelError(f"the length of a pattern in {file} is {counted}")
    growth = prod(map(_growth, steps))
    if growth > limits.max_tokenizer_growth:
        counted = exceeds("max_tokenizer_growth", growth)
        raise ModelError(f"the factor by which the steps in {file} can lengthen a text is {counted}")


def _check_word_length(file: Path, model: Step | None) -> None:
    longest, largest = (model or {}).get("max_input_chars_per_word", 0), current_limits().max_word_characters
    if longest > largest:
        counted = exceeds("max_word_characters", longest)
        raise ModelError(f"max_input_chars_per_word in {file} is {counted}")


def _check_ids(file: Path, content: dict[str, Any]) -> None:
    vocabulary = (content.get("model") or {}).get("vocab")
    added = [token["id"] for token in content.get("added_tokens") or ()]
    ids = [*(vocabulary.values() if isinstance(vocabulary, dict) else ()), *added]
    highest = max(ids, default=0)
    if highest > current_limits().max_token_id:
        counted = exceeds("max_token_id", highest)
        raise ModelError(f"the highest id of a token in {file} is {counted}")


def _steps(section: Any) -> Iterator[Step]:
    """All steps of a section, those of nested sequences included."""
    if isinstance(section, dict):
        if "type" in section:
            yield section
        for value in section.values():
            yield from _steps(value)
    elif isinstance(section, list):
        for value in section:
            yield from _steps(value)


def _texts(step: Step) -> Iterator[str]:
    """The pattern of a step, and what replaces it."""
    pattern = step.get("pattern")
    values = pattern.values() if isinstance(pattern, dict) else (pattern,)
    yield from (text for text in (*values, step.get("content"), step.get("prepend")) if isinstance(text, str))


def _growth(step: Step) -> int:
    """How many characters, or tokens, a step can make of one, at most."""
    measure = GROWTH.get(step["type"])
    return 1 if measure is None else max(1, measure(step))


def _replaced(step: Step) -> int:
    content = len(step["content"])
    pattern = step["pattern"]
    if "String" in pattern:
        return -(-content // max(1, len(pattern["String"])))
    return content + 1 if MAY_BE_EMPTY.search(pattern["Regex"]) else content


def _repeated(step: Step) -> int:
    """How often a template repeats a text."""
    templates = [step[name] for name in ("single", "pair") if isinstance(step.get(name), list)]
    counts = [
        Counter(str(piece["Sequence"]["id"]) for piece in template if "Sequence" in piece)
        for template in templates
    ]
    return max((most for count in counts for most in count.values()), default=1)


GROWTH: dict[str, Callable[[Step], int]] = {
    "ByteLevel": lambda step: BYTES_PER_CHARACTER,
    "Precompiled": lambda step: LONGEST_MAPPING,
    "Prepend": lambda step: 1 + len(step["prepend"]),
    "Replace": _replaced,
    "TemplateProcessing": _repeated,
}
"""The growth of each type of step; other types keep the length of a text, or add a little once."""
