"""``tercet serve``: the scorers and indexes over HTTP, and the playground."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tercet.cli.console import SafeConsole, printable
from tercet.cli.options import model_names
from tercet.cli.verbosity import is_quiet
from tercet.errors import InputError
from tercet.extras import require
from tercet.settings.models import Precision
from tercet.settings.serve import ServerConfig, named_source
from tercet.settings.serve_sources import server_config

if TYPE_CHECKING:
    from tercet.serve.service import Service


def serve(
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            help="A model to serve: bi, bi-ko, poly, cross, a folder or a Hugging Face id; NAME=SOURCE names "
            "it. Repeat the option for several. Default: bi, poly and cross, or the models of the indexes.",
            metavar="NAME",
            autocompletion=model_names,
        ),
    ] = None,
    reranker: Annotated[
        str | None,
        typer.Option(help="The model that reranks. Default: the first cross-encoder.", metavar="NAME"),
    ] = None,
    index: Annotated[
        list[str] | None,
        typer.Option("--index", "-i", help="An index to search; NAME=FOLDER names it.", metavar="FOLDER"),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(help="Address to listen on. Default: 127.0.0.1. Others need keys.", metavar="ADDRESS"),
    ] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on. Default: 8080; 0: a free one.")] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes, each with its own copy of the models. Default: 1.")
    ] = None,
    precision: Annotated[
        Precision | None, typer.Option(help="fp32, bf16, on a CPU int8, on a GPU fp16. Default: fp32.")
    ] = None,
    keys_file: Annotated[
        Path | None,
        typer.Option(help="API keys, one per line: read KEY, or write KEY.", metavar="FILE"),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse changes of indexes.")] = False,
    config: Annotated[
        Path | None,
        typer.Option(help="Settings: a TOML file with \\[serve], \\[engine] and \\[limits].", metavar="FILE"),
    ] = None,
    assignment: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a setting, such as limits.max_texts=100.", metavar="KEY=VALUE"),
    ] = None,
) -> None:
    """Serve models and indexes over HTTP, with a playground at /.

    Example: tercet serve --model bi --model poly --reranker cross --index faq.tercet
    """
    given = {"host": host, "port": port, "workers": workers, "precision": precision, "reranker": reranker}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if keys_file is not None:
        options["keys_file"] = str(keys_file)
    if read_only:
        options["read_only"] = True
    if model:
        options["models"] = _named(model, "model")
    if index:
        options["indexes"] = _named(index, "index")
    _serve(server_config(config, options=options, assignments=assignment or ()))


def _named(given: list[str], kind: str) -> dict[str, str]:
    named: dict[str, str] = {}
    for each in given:
        name, source = named_source(each)
        if name in named:
            raise InputError(f"two --{kind} options are called {name}: name one of them, {name}-2={source}")
        named[name] = source
    return named


def _serve(config: ServerConfig) -> None:
    for module in ("fastapi", "uvicorn", "prometheus_client", "orjson"):
        require(module, extra="serve", purpose="the server")
    from tercet.serve.keys import read_keys
    from tercet.serve.run import configure_log, listen, run_server, run_workers

    console = SafeConsole(stderr=True, highlight=False, soft_wrap=True)
    read_keys(config.serve)  # before the models are loaded, which takes longer
    bound = listen(config)
    host, port = bound.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def show(lines: list[str]) -> None:
        if not is_quiet():
            for line in [f"tercet serves {address}", *lines, "Stop with Ctrl-C."]:
                console.print(printable(line))

    if not is_quiet():
        console.print(printable(f"Loading models for {address} …"))
        configure_log()
    with bound:
        if config.serve.workers > 1:
            processes = f"  processes: {config.serve.workers}"
            run_workers(config, bound, lambda: show([processes, *_limits(config)]))
        else:
            run_server(config, bound, lambda service: show([*_contents(service), *_limits(config)]))


def _contents(service: "Service") -> list[str]:
    """Lines about models and indexes."""
    lines = [f"  model {name}: {service.scorer(name)!r}" for name in service.engine.names]
    lines += [
        f"  index {name}: {len(index.retriever):,} candidates, {index.model}"
        + (f", reranked by {index.reranker}" if index.reranker else "")
        for name, index in service.indexes.items()
    ]
    return lines


def _limits(config: ServerConfig) -> list[str]:
    from tercet.serve.keys import read_keys

    limits, engine = config.limits, config.engine
    return [
        f"  limits: {limits.max_requests} requests at a time, {limits.max_texts:,} texts and "
        f"{engine.max_request_tokens:,} tokens each, {limits.request_seconds:g} s; "
        f"{engine.max_queued_tokens:,} tokens waiting",
        f"  keys: {'none, this machine only' if not read_keys(config.serve) else 'needed'}",
    ]
