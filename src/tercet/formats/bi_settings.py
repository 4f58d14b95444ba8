"""The settings in the folder of a bi-encoder; no weights are read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tercet.errors import ModelError
from tercet.files.structured import read_json, read_json_if_exists, read_json_list
from tercet.formats.module_list import Module
from tercet.settings.models import BiConfig, Similarity

SIMILARITIES: dict[str | None, Similarity] = {None: "cosine", "cosine": "cosine", "dot": "dot"}
ROUTES = {"context": "query", "candidate": "document"}
"""Our two sides, and what sentence-transformers calls them."""

UNSUPPORTED = ("query_length", "document_length", "query_expansion", "processing_kwargs")
"""Settings of a Transformer module that would change its vectors and that tercet does not have."""


def bi_modules(folder: Path) -> list[Module]:
    entries = read_json_list(folder / "modules.json")
    modules = [Module.of(entry["type"], folder, entry["path"]) for entry in entries]
    if not modules or modules[0].kind not in ("Transformer", "Router"):
        kind = modules[0].kind if modules else "nothing"
        raise ModelError(f"{folder} starts with {kind}: a bi-encoder starts with a Transformer or a Router")
    return modules


def bi_routes(folder: Path) -> dict[str, list[Module]]:
    config = read_json(folder / "router_config.json")
    structure: dict[str, list[str]] = config["structure"]
    absent = [route for route in ROUTES.values() if route not in structure]
    if absent:
        raise ModelError(
            f"{folder} has the routes {', '.join(structure)}: a bi-encoder needs query and document"
        )
    return {
        side: [Module.of(config["types"][name], folder, name) for name in structure[route]]
        for side, route in ROUTES.items()
    }


def text_settings(modules: Sequence[Module]) -> dict[str, Any]:
    """The settings of a tower's Transformer, if it is one and tercet supports them."""
    folder = modules[0].folder
    if modules[0].kind != "Transformer":
        raise ModelError(f"{folder} is a {modules[0].kind}, where a bi-encoder needs a Transformer")
    file = folder / "sentence_bert_config.json"
    settings = read_json_if_exists(file)
    unsupported = [name for name in UNSUPPORTED if settings.get(name)]
    if unsupported or settings.get("transformer_task", "feature-extraction") != "feature-extraction":
        raise ModelError(
            f"{file} sets {', '.join(unsupported) or 'transformer_task'}, which tercet does not support"
        )
    return settings


def bi_config(settings: dict[str, Any], folder: Path, *, towers: int) -> BiConfig:
    name = settings.get("similarity_fn_name")
    if name not in SIMILARITIES:
        raise ModelError(f"{folder} has the similarity {name!r}; tercet supports cosine and dot")
    prompts: dict[str, str | None] = settings.get("prompts") or {}
    candidate = next((prompts[name] for name in ("document", "passage", "corpus") if prompts.get(name)), None)
    default = None
    if not candidate and not prompts.get("query"):
        default = prompts.get(settings.get("default_prompt_name") or "")
    return BiConfig(
        towers=towers,
        similarity=SIMILARITIES[name],
        context_prompt=prompts.get("query") or default or "",
        candidate_prompt=candidate or default or "",
        turn_separator=settings.get("turn_separator", BiConfig.turn_separator),
    )
