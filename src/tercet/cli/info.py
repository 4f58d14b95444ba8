"""``tercet info``: properties of a model and of this machine."""

import platform
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import typer

from tercet.cli.console import SafeConsole, printable
from tercet.cli.options import JsonOption, ModelOption, open_model
from tercet.files.structured import json_text

MATCH_KINDS = {
    "triton": "triton (one kernel)",
    "compiled": "torch.compile",
    "plain": "torch",
}
"""What computes ``match`` on the device, as shown."""

LIBRARIES = ("tercet", "openvino", "torch", "transformers", "tokenizers", "numpy")


def info(model: ModelOption = "bi", as_json: JsonOption = False) -> None:
    """Describe a model and this machine.

    all-MiniLM-L6-v2 is another name of bi, so it needs no download.

    Example: tercet info --model poly
    """
    from tercet.formats.sources import names_of, resolve_model

    described = open_model(model).describe()
    folder = resolve_model(model)
    names = {"names": ", ".join(names_of(folder))} if names_of(folder) else {}
    sections = {"model": {**names, "folder": str(folder), **described}, "machine": _machine()}
    if as_json:
        typer.echo(json_text(sections))
        return
    width = max(len(name) for section in sections.values() for name in section)
    for title, section in sections.items():
        SafeConsole().print(title, style="bold")
        for name, value in section.items():
            typer.echo(f"  {name:<{width}}  {printable(str(value))}".rstrip())


def _machine() -> dict[str, object]:
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        **{library: _version(library) for library in LIBRARIES},
        **_device(),
    }


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed"


def _device() -> dict[str, object]:
    """The device that models use, and the number of threads on a CPU."""
    if find_spec("torch") is None:
        from tercet.evaluate.environment import threads

        return {"threads": threads(), "device": "cpu"}
    import torch

    from tercet.scorers.gpu.choice import match_kind

    gpu = torch.cuda.is_available()
    return {
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name() if gpu else "cpu",
        "match": MATCH_KINDS[match_kind(torch.device("cuda" if gpu else "cpu"))],
    }
