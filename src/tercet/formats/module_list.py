"""The list of modules of a sentence-transformers folder, and its poolings; no weights are read."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tercet.errors import ModelError
from tercet.files.paths import lookup_problem
from tercet.files.structured import read_json, write_json
from tercet.inputs import SHOWN_CHARACTERS, shortened
from tercet.settings.models import PoolingConfig, PoolingKind

NAMESPACE = "sentence_transformers.models."

POOLING_NAMES: dict[str, PoolingKind] = {
    "cls": "first",
    "max": "max",
    "mean": "mean",
    "mean_sqrt_len_tokens": "mean_sqrt",
    "weightedmean": "weighted_mean",
    "lasttoken": "last",
}
"""Their names to ours, in the order in which old folders concatenate them."""

POOLING_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


class Module(NamedTuple):
    """An entry of ``modules.json``: its type and its folder."""

    kind: str
    folder: Path

    @classmethod
    def of(cls, type_name: str, model: Path, path: str) -> "Module":
        """The entry, if it is inside the model's folder and needs no foreign code."""
        if Path(path).is_absolute() or ".." in Path(path).parts:
            raise ModelError(f"{model} refers to a module outside the folder, {path}: refused")
        folder = model / path
        if problem := lookup_problem(folder):
            shown = shortened(path, SHOWN_CHARACTERS)
            raise ModelError(f"{model} refers to the module {shown}, which cannot be looked up: {problem}")
        if not type_name.startswith(("sentence_transformers.", "tercet.")):
            raise ModelError(
                f"{folder} needs the Python class {type_name}, which tercet does not run: only modules of "
                "sentence-transformers itself are supported"
            )
        return cls(type_name.rsplit(".", maxsplit=1)[-1], folder)


def write_modules(entries: Iterable[tuple[str, str]], folder: Path) -> None:
    """Write ``modules.json``: the type and the subfolder of each module, in order."""
    modules = [
        {"idx": position, "name": str(position), "path": path, "type": kind}
        for position, (kind, path) in enumerate(entries)
    ]
    write_json(folder / "modules.json", modules)


def read_pooling(folder: Path) -> PoolingConfig:
    """The pooling in a module's folder."""
    config = read_json(folder / "config.json")
    named = config.get("pooling_mode")
    if named is None:
        named = [name for flag, name in POOLING_FLAGS.items() if config.get(flag)] or ["mean"]
    names = [named] if isinstance(named, str) else list(named)
    unknown = [name for name in names if name not in POOLING_NAMES and name != "mean_first"]
    if unknown:
        raise ModelError(
            f"{folder} has the pooling {unknown[0]!r}; tercet supports {', '.join(POOLING_NAMES)}"
        )
    kinds = tuple(POOLING_NAMES.get(name, "mean_first") for name in names)
    include_prompt = bool(config.get("include_prompt", True))
    if "first_tokens" in config:
        return PoolingConfig(kinds=kinds, include_prompt=include_prompt, first_tokens=config["first_tokens"])
    return PoolingConfig(kinds=kinds, include_prompt=include_prompt)
