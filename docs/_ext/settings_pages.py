"""Tables of the settings, made from the dataclasses of ``tercet.settings`` and their docstrings."""

from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from tercet.files.structured import read_toml
from tercet.settings import (
    augment,
    bulk,
    chunks,
    data,
    databases,
    encoding,
    engine,
    files,
    interchange,
    limits,
    mining,
    models,
    pretrain,
    serve,
    tasks,
    training,
    vocabulary,
)
from tercet.settings.field_docs import field_docs
from tercet.settings.shipped import shipped

TRAINING = {
    "[model]": models.ModelSpec,
    '[model], kind = "bi"': models.BiConfig,
    '[model], kind = "poly"': models.PolyConfig,
    '[model], kind = "cross"': models.CrossConfig,
    "[data.train], [data.dev], [data.test]": data.DataConfig,
    "[objective]": training.ObjectiveConfig,
    "[batches]": training.BatchConfig,
    "[training]": training.TrainingConfig,
    "[adapter]": models.AdapterConfig,
    "[vocabulary]": vocabulary.VocabularyConfig,
}
PRETRAINING = {"[model] of tercet pretrain": pretrain.PretrainConfig}
AUGMENTING = {
    "[texts]": augment.TextsConfig,
    "[pairs]": augment.PairsConfig,
    "[sampling]": augment.SamplingConfig,
    "[labelling]": augment.LabellingConfig,
    "[students]": augment.StudentsConfig,
    "[words]": augment.WordsConfig,
}
TASKS = {"A task": tasks.TaskConfig}
SERVER = {"[serve]": serve.ServeConfig, "[engine]": engine.EngineConfig, "[limits]": serve.ServeLimits}
LIMITS = {"Limits on files and models": limits.Limits}
PYTHON = {
    kind.__name__: kind
    for kind in (
        models.PoolingConfig,
        chunks.ChunkConfig,
        encoding.EncodingConfig,
        files.FileConfig,
        mining.MiningConfig,
        interchange.VectorColumns,
        bulk.WorkersConfig,
        bulk.EncodeConfig,
        bulk.ScoreConfig,
        bulk.LabelConfig,
    )
}
DATABASES = {kind.__name__: kind for kind in databases.DatabaseOptions.__subclasses__()}
GROUPS: dict[str, dict[str, Any]] = {
    "training": TRAINING,
    "pretraining": PRETRAINING,
    "augmenting": AUGMENTING,
    "tasks": TASKS,
    "server": SERVER,
    "databases": DATABASES,
    "limits": LIMITS,
    "python": PYTHON,
}
HIDDEN = {(models.ModelSpec, "settings")}
"""Fields that a user never writes under their own name."""


def settings(group: str) -> str:
    """The Markdown of the tables of a group, with a heading each."""
    return "\n".join(f"### {title}\n\n{table(kind)}" for title, kind in GROUPS[group].items())


def table(kind: type[Any]) -> str:
    """The Markdown table of the fields of a dataclass."""
    name = {limits.Limits: limits.variable}.get(kind, str)
    docs, hints = documentation(kind), get_type_hints(kind)
    rows = [
        f"| `{name(each.name)}` | {_default(each)} | {_type(hints[each.name])} "
        f"| {_cell(docs.get(each.name, ''))} |"
        for each in settable(kind)
    ]
    return "\n".join(["| setting | default | value | meaning |", "|---|---|---|---|", *rows, ""])


def documentation(kind: type[Any]) -> dict[str, str]:
    """The meaning of each field of a dataclass, inherited ones included."""
    parts = [each for each in reversed(kind.__mro__) if is_dataclass(each)]
    return {name: text for part in parts for name, text in field_docs(part).items()}


def settable(kind: type[Any]) -> Iterator[Field[Any]]:
    """The fields of a dataclass that a user can set."""
    return (each for each in fields(kind) if (kind, each.name) not in HIDDEN)


def installed(kind: Literal["recipes", "tasks"]) -> str:
    """A Markdown table of the recipes or tasks that are installed, with what each says about itself."""
    rows = [f"| `{name}` | {_cell(_about(path))} |" for name, path in shipped(kind).items()]
    return "\n".join([f"| {kind.removesuffix('s')} | what it is |", "|---|---|", *rows, ""])


def _about(path: Any) -> str:
    """A recipe's own description, or the name of a task and its kind."""
    content = read_toml(path)
    return str(content.get("about") or f"{content.get('name', path.stem)} ({content.get('kind', 'recipe')})")


def _default(each: Field[Any]) -> str:
    """The default as TOML writes it."""
    value = each.default if each.default is not MISSING else None
    if each.default_factory is not MISSING:
        value = each.default_factory()
    elif each.default is MISSING:
        return "required"
    return "none" if value is None else f"`{_toml(value)}`"


def _toml(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return '"' + value.replace("\n", "\\n") + '"'
        case tuple() | list():
            return f"[{', '.join(map(_toml, value))}]"
        case dict():
            return "{}" if not value else str(value)
        case float() if value and abs(value) < 1e-3:
            return f"{value:.0e}".replace("e-0", "e-")
        case int() if value >= 10_000:
            return f"{value:_}"
    return str(value)


def _type(hint: Any) -> str:
    """The values that a setting takes, in words or as the list of choices."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return ", ".join(f"`{choice}`" for choice in inner)
    if origin is tuple:
        return f"list of {_type(inner[0])}"
    if origin is dict:
        return "table"
    if origin is not None:
        return _type(next(each for each in inner if each is not NoneType))
    names = {float: "number", int: "whole number", bool: "true or false", str: "text"}
    return names.get(hint, "text")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
