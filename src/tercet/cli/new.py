"""``tercet new``: untrained models built on any encoder; the options are the fields of the settings."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Annotated, Any, get_origin, get_type_hints

import typer

from tercet.cli.options import spinner
from tercet.extras import require_torch
from tercet.files.atomic import check_free
from tercet.settings.field_docs import field_docs
from tercet.settings.models import POOLING_KINDS, SCORER_CONFIGS, ModelSpec, PoolingConfig, ScorerKind
from tercet.settings.tables import lists_to_tuples

new = typer.Typer(
    name="new",
    help="Create an untrained scorer from any encoder.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

DESCRIPTIONS: dict[ScorerKind, str] = {
    "bi": "Create a bi-encoder (Sentence-BERT).\n\nExample: tercet new bi my-bi --backbone bert-base-uncased",
    "poly": "Create a poly-encoder (Humeau et al., 2020).\n\nExample: tercet new poly my-poly --codes 64",
    "cross": "Create a cross-encoder.\n\nExample: tercet new cross my-cross --head dense",
}
OPTION_NAMES = {"labels": "--label"}
"""Options that are repeated, so that the singular reads better."""

OutArgument = Annotated[Path, typer.Argument(help="The folder to create.", metavar="OUT")]
BackboneOption = Annotated[
    str,
    typer.Option(
        "--backbone",
        "-b",
        help="The encoder to build on: bi (packaged MiniLM), a folder, or a Hugging Face id.",
        metavar="NAME",
    ),
]
MaxTokensOption = Annotated[
    int | None, typer.Option(help="Maximum sequence length.", show_default="the backbone's")
]
SeedOption = Annotated[int, typer.Option(min=0, help=field_docs(ModelSpec)["seed"])]
PoolingOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Pooling of token states; repeat it to concatenate several.",
        metavar="|".join(POOLING_KINDS),
        show_default="mean",
    ),
]
FirstTokensOption = Annotated[
    int | None,
    typer.Option(
        help=field_docs(PoolingConfig)["first_tokens"], show_default=str(PoolingConfig.first_tokens)
    ),
]
POOLING_OPTIONS = {"pooling": (PoolingOption, None), "first_tokens": (FirstTokensOption, None)}


def _command(kind: ScorerKind) -> Callable[..., None]:
    """The command that creates a model of one kind."""

    def command(**given: Any) -> None:
        out: Path = given.pop("out")
        spec = ModelSpec(
            kind=kind,
            source=given.pop("backbone"),
            max_tokens=given.pop("max_tokens"),
            seed=given.pop("seed", 0),
            **(_pooling(given) if kind == "bi" else {}),
            settings=_settings(kind, given),
        )
        _create(out, spec)

    parameters = {
        "out": (OutArgument, inspect.Parameter.empty),
        "backbone": (BackboneOption, "bi"),
        "max_tokens": (MaxTokensOption, None),
        **(POOLING_OPTIONS if kind == "bi" else {"seed": (SeedOption, 0)}),
        **{name: (annotation, None) for name, annotation in _options(SCORER_CONFIGS[kind]).items()},
    }
    command.__name__, command.__doc__ = kind, DESCRIPTIONS[kind]
    command.__annotations__ = {name: annotation for name, (annotation, _) in parameters.items()}
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
            for name, (annotation, default) in parameters.items()
        ]
    )
    return command


def _options(config: type) -> dict[str, Any]:
    """An option for each field of a config; None means the default of the config."""
    hints, docs = get_type_hints(config), field_docs(config)
    options = {}
    for each in fields(config):
        default = "none" if each.default in (None, (), "", MISSING) else repr(each.default).strip("'")
        names = [OPTION_NAMES[each.name]] if each.name in OPTION_NAMES else []
        option = typer.Option(*names, help=docs.get(each.name), show_default=default)
        options[each.name] = Annotated[_option_type(hints[each.name]), option]
    return options


def _option_type(hint: Any) -> Any:
    """The type of an option that may be absent; tuples of names become repeated options."""
    return list[str] | None if get_origin(hint) is tuple else hint | None


def _settings(kind: ScorerKind, given: dict[str, Any]) -> dict[str, Any]:
    """The options that are given; a symmetric poly-encoder has one tower unless told otherwise."""
    settings = {name: value for name, value in given.items() if value is not None}
    if kind == "poly" and settings.get("symmetric"):
        settings.setdefault("towers", 1)
    return settings


def _pooling(given: dict[str, Any]) -> dict[str, Any]:
    """The pooling options that are given, taken out of all options."""
    found = {name: given.pop(name, None) for name in POOLING_OPTIONS}
    return lists_to_tuples({name: value for name, value in found.items() if value not in (None, [])})


def _create(out: Path, spec: ModelSpec) -> None:
    check_free(out)
    require_torch("a new model")
    from tercet.formats.from_spec import make_scorer

    with spinner(f"creating {out}"):
        scorer = make_scorer(spec, device="cpu")
        scorer.save(out)
    typer.echo(f"{out}: an untrained {scorer.kind}-encoder, fingerprint {scorer.fingerprint}")


for _kind in SCORER_CONFIGS:
    new.command(_kind)(_command(_kind))
