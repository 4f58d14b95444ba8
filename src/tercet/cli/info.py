"""``tercet info``: what a model is, and what it runs on."""

import json
import platform
from importlib.metadata import version

import typer

from tercet.cli.options import JsonOption, ModelOption, open_model

LIBRARIES = ("tercet", "torch", "transformers", "tokenizers", "numpy")


def info(model: ModelOption = "bi", as_json: JsonOption = False) -> None:
    """Describe a model and this machine."""
    from tercet.models.sources import find_folder

    described = open_model(model, "fp32").describe()
    facts = {"model": {"folder": str(find_folder(model)), **described}, "machine": _machine()}
    if as_json:
        typer.echo(json.dumps(facts, ensure_ascii=False))
        return
    width = max(len(name) for part in facts.values() for name in part)
    for name, part in facts.items():
        typer.secho(name, bold=True)
        for key, value in part.items():
            typer.echo(f"  {key:<{width}}  {value}".rstrip())


def _machine() -> dict[str, object]:
    import torch

    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        **{library: version(library) for library in LIBRARIES},
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }
