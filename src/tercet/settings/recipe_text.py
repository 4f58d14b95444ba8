"""Recipes as commented TOML: every setting with its value and its description."""

import re
from collections.abc import Collection, Mapping
from dataclasses import MISSING, Field, fields
from textwrap import wrap
from typing import Any

from tercet.files.structured import json_text
from tercet.settings.data import DataConfig
from tercet.settings.field_docs import field_docs
from tercet.settings.models import SCORER_CONFIGS, ModelSpec, ScorerKind
from tercet.settings.training import OBJECTIVE_KINDS, BatchConfig, ObjectiveConfig, TrainingConfig

WIDTH = 98
MAX_WHOLE = 1e15
"""Whole numbers below this are written without a point or an exponent."""
BI_ONLY = ("pooling", "first_tokens")
"""Settings of ``ModelSpec`` that apply to bi-encoders."""
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def recipe_text(tables: Mapping[str, Any], *, kind: ScorerKind) -> str:
    """A recipe for a new scorer: the given settings, and the defaults of all others.

    Args:
        tables: ``about``, ``model``, ``data``, ``objective``, ``batches`` and ``training``.
    """
    model, objective = tables["model"], tables["objective"]
    parts = [
        f"about = {toml_value(tables['about'])}",
        "[model]",
        *_settings(ModelSpec, model, hidden={"settings", *(() if kind == "bi" else BI_ONLY)}),
        *_settings(SCORER_CONFIGS[kind], model),
        "[data.train]",
        *_settings(DataConfig, tables["data"]["train"]),
        "# Without [data.dev], a tenth of the training data (at most 1,000 examples) is held out.",
        "[objective]",
        *_settings(ObjectiveConfig, objective, hidden=_unrelated(objective["kind"])),
        "[batches]",
        *_settings(BatchConfig, tables.get("batches", {})),
        "[training]",
        *_settings(TrainingConfig, tables.get("training", {})),
    ]
    return "\n\n".join(parts) + "\n"


def toml_value(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {toml_value(each)}" for key, each in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, float):
        is_short = value.is_integer() and abs(value) < MAX_WHOLE
        return str(int(value)) if is_short else repr(float(value))  # Python and TOML both write inf and nan
    return json_text(value)


def _settings(settings: type, given: Mapping[str, Any], hidden: Collection[str] = ()) -> list[str]:
    """Each setting under its description; one without a value is commented out."""
    docs = field_docs(settings)
    known: tuple[Field[Any], ...] = fields(settings)
    parts = []
    for each in known:
        if each.name in hidden:
            continue
        value = given.get(each.name, None if each.default is MISSING else each.default)
        has_value = value is not None and value not in ((), {}, "")
        line = f"{each.name} = {toml_value(value)}" if has_value else f"# {each.name} ="
        comment = wrap(docs.get(each.name, ""), WIDTH, break_long_words=False, break_on_hyphens=False)
        parts.append("\n".join([*(f"# {text}" for text in comment), line]))
    return parts


def _unrelated(kind: str) -> set[str]:
    """The settings of other objectives: their descriptions start with the objectives that they apply to."""
    unrelated = set()
    for name, doc in field_docs(ObjectiveConfig).items():
        named = set(re.findall(r"\w+", doc.partition(":")[0])) & set(OBJECTIVE_KINDS)
        if name != "kind" and named and kind not in named:
            unrelated.add(name)
    return unrelated


def _key(name: str) -> str:
    return name if BARE_KEY.fullmatch(name) else json_text(name)
