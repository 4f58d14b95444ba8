"""Model specifications to scorers."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tercet.formats.load_torch import load_torch
from tercet.formats.manifest import BASE, reading
from tercet.formats.sources import absolute_source, resolve_model, stored_model
from tercet.scorers.kinds import KINDS, AnyScorer
from tercet.settings.models import ModelSpec
from tercet.settings.tables import lists_to_tuples


def make_scorer(spec: ModelSpec, *, device: str | None = None) -> AnyScorer:
    """The specified scorer, in float32."""
    if spec.kind == "model":
        return load_torch(resolve_model(spec.source), device=device)
    return KINDS[spec.kind].from_spec(spec, device=device)


def make_base(spec: ModelSpec, folder: Path, *, device: str | None = None) -> AnyScorer:
    """The base model that an adapter or a delta in ``folder`` names, which must be on this machine."""
    source = stored_model(spec.source, stored_in=folder)
    return make_scorer(replace(spec, source=str(source.absolute())), device=device)


def spec_to_json(spec: ModelSpec) -> dict[str, Any]:
    """The spec as a manifest stores it, valid in any working directory."""
    return replace(spec, source=absolute_source(spec.source)).resolved()


def spec_from_manifest(folder: Path, manifest: dict[str, Any]) -> ModelSpec:
    """The base model of an adapter or a delta."""
    with reading(folder):
        return ModelSpec(**lists_to_tuples(manifest[BASE]))


def outside_transformers(names: Iterable[str]) -> set[str]:
    """The weights that do not belong to a transformer, such as codes or a head."""
    return {name for name in names if ".transformer." not in name}
