"""``tercet info``: what a model is, and what it runs on."""

import json
import platform
from importlib.metadata import version
from typing import TYPE_CHECKING

import typer

from tercet.cli.options import JsonOption, ModelOption, open_model

if TYPE_CHECKING:
    from tercet.models.bi import BiEncoder

LIBRARIES = ("tercet", "torch", "transformers", "tokenizers", "numpy")


def info(model: ModelOption = "bi", as_json: JsonOption = False) -> None:
    """Describe a model and this machine."""
    facts = {"model": _model(model, open_model(model, "fp32")), "machine": _machine()}
    if as_json:
        typer.echo(json.dumps(facts, ensure_ascii=False))
        return
    width = max(len(name) for part in facts.values() for name in part)
    for name, part in facts.items():
        typer.secho(name, bold=True)
        for key, value in part.items():
            typer.echo(f"  {key:<{width}}  {value}")


def _model(name: str, scorer: "BiEncoder") -> dict[str, object]:
    from tercet.models.sources import find_folder

    encoder = scorer.context_tower.encoder
    config = encoder.transformer.config
    return {
        "kind": "bi",
        "folder": str(find_folder(name)),
        "architecture": config.model_type,
        "layers": config.num_hidden_layers,
        "width": scorer.width,
        "parameters": sum(weight.numel() for weight in scorer.parameters()),
        "tokens read": scorer.tokenizer.max_tokens,
        "towers": scorer.config.towers,
        "pooling": " + ".join(scorer.context_tower.pooling.kinds),
        "similarity": scorer.config.similarity,
        "context prompt": scorer.config.context_prompt,
        "candidate prompt": scorer.config.candidate_prompt,
        "packed": encoder.packable,
    }


def _machine() -> dict[str, object]:
    import torch

    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        **{library: version(library) for library in LIBRARIES},
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }
