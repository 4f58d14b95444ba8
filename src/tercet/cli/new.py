"""``tercet new``: an untrained model over any encoder, one command for each kind."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from tercet.cli.options import waiting
from tercet.config import (
    ACTIVATIONS,
    CODE_KINDS,
    HEAD_KINDS,
    POOLING_KINDS,
    REDUCTIONS,
    SIMILARITIES,
    Activation,
    BiConfig,
    CodeKind,
    CrossConfig,
    HeadKind,
    PolyConfig,
    PoolingConfig,
    PoolingKind,
    Reduction,
    Similarity,
)
from tercet.files import check_free

if TYPE_CHECKING:
    from collections.abc import Callable

    from tercet.models.neural import NeuralScorer

new = typer.Typer(
    name="new",
    help="Make an untrained model folder over any encoder.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

OutArgument = Annotated[Path, typer.Argument(help="The folder to make.", metavar="OUT")]
BackboneOption = Annotated[
    str,
    typer.Option(
        "--backbone", "-b", help="bi (comes with tercet), an encoder's folder, or a hub id.", metavar="NAME"
    ),
]
MaxTokensOption = Annotated[
    int | None, typer.Option(help="Cut texts at so many tokens; the backbone's own limit by default.")
]
SeedOption = Annotated[int, typer.Option(min=0, help="Of the weights that the backbone does not have.")]
TowersOption = Annotated[
    int, typer.Option(help="1: both sides share one. 2: each its own; they start equal.")
]


@new.command()
def bi(
    out: OutArgument,
    backbone: BackboneOption = "bi",
    pooling: Annotated[
        str, typer.Option(help="Tokens to one vector.", metavar="|".join(POOLING_KINDS))
    ] = "mean",
    similarity: Annotated[
        str, typer.Option(help="How vectors are compared.", metavar="|".join(SIMILARITIES))
    ] = BiConfig.similarity,
    towers: TowersOption = BiConfig.towers,
    max_tokens: MaxTokensOption = None,
) -> None:
    """Make a bi-encoder (Sentence-BERT).

    Example: tercet new bi my-bi --backbone bert-base-uncased
    """
    config = BiConfig(towers=towers, similarity=cast("Similarity", similarity))
    kinds = PoolingConfig(kinds=(cast("PoolingKind", pooling),))

    def build() -> "NeuralScorer":
        from tercet.models.bi import BiEncoder

        return BiEncoder.from_backbone(
            backbone, config=config, pooling=kinds, max_tokens=max_tokens, device="cpu"
        )

    _make(out, build)


@new.command()
def poly(
    out: OutArgument,
    backbone: BackboneOption = "bi",
    codes: Annotated[int, typer.Option(help="m, how many vectors stand for a context.")] = PolyConfig.codes,
    code_kind: Annotated[
        str, typer.Option(help="Where they come from.", metavar="|".join(CODE_KINDS))
    ] = PolyConfig.code_kind,
    reduction: Annotated[
        str, typer.Option(help="A candidate's tokens to one vector.", metavar="|".join(REDUCTIONS))
    ] = PolyConfig.reduction,
    first_tokens: Annotated[
        int, typer.Option(help="How many tokens mean_first averages.")
    ] = PolyConfig.first_tokens,
    similarity: Annotated[
        str, typer.Option(help="How a candidate meets a code.", metavar="|".join(SIMILARITIES))
    ] = PolyConfig.similarity,
    towers: Annotated[
        int | None, typer.Option(help="As for bi; 2 by default, 1 for a symmetric model.")
    ] = None,
    symmetric: Annotated[
        bool, typer.Option("--symmetric", help="Average both directions, with one tower.")
    ] = PolyConfig.symmetric,
    code_scale: Annotated[
        float, typer.Option(help="How sharply codes attend to tokens.")
    ] = PolyConfig.code_scale,
    candidate_scale: Annotated[
        float, typer.Option(help="How sharply candidates attend to codes.")
    ] = PolyConfig.candidate_scale,
    logit_scale: Annotated[
        float, typer.Option(help="What scores are multiplied by.")
    ] = PolyConfig.logit_scale,
    learn_scales: Annotated[
        bool, typer.Option("--learn-scales", help="Let training move the three scales.")
    ] = PolyConfig.learn_scales,
    max_tokens: MaxTokensOption = None,
    seed: SeedOption = 0,
) -> None:
    """Make a poly-encoder (Humeau et al., 2020).

    Example: tercet new poly my-poly --codes 64
    """
    config = PolyConfig(
        codes=codes,
        code_kind=cast("CodeKind", code_kind),
        reduction=cast("Reduction", reduction),
        first_tokens=first_tokens,
        similarity=cast("Similarity", similarity),
        towers=towers if towers is not None else 1 if symmetric else PolyConfig.towers,
        symmetric=symmetric,
        code_scale=code_scale,
        candidate_scale=candidate_scale,
        logit_scale=logit_scale,
        learn_scales=learn_scales,
    )

    def build() -> "NeuralScorer":
        from tercet.models.poly import PolyEncoder

        return PolyEncoder.from_backbone(
            backbone, config=config, max_tokens=max_tokens, seed=seed, device="cpu"
        )

    _make(out, build)


@new.command()
def cross(
    out: OutArgument,
    backbone: BackboneOption = "bi",
    head: Annotated[
        str, typer.Option(help="States of a pair to outputs.", metavar="|".join(HEAD_KINDS))
    ] = CrossConfig.head,
    outputs: Annotated[int, typer.Option(help="1 for a score, more for classes.")] = CrossConfig.outputs,
    activation: Annotated[
        str, typer.Option(help="Outputs to scores.", metavar="|".join(ACTIVATIONS))
    ] = CrossConfig.activation,
    label: Annotated[
        list[str] | None, typer.Option(help="The name of a class; give one for each, in order.")
    ] = None,
    score_class: Annotated[
        int | None, typer.Option(help="Which class, from 0, candidates are ranked by.")
    ] = CrossConfig.score_class,
    other_weight: Annotated[
        float | None,
        typer.Option(help="Read each text as if alone, and heed the other by this factor, such as 0.05."),
    ] = CrossConfig.other_weight,
    symmetric: Annotated[bool, typer.Option("--symmetric", help="Read pairs both ways.")] = False,
    max_tokens: MaxTokensOption = None,
    seed: SeedOption = 0,
) -> None:
    """Make a cross-encoder.

    Example: tercet new cross my-cross --head dense
    """
    config = CrossConfig(
        head=cast("HeadKind", head),
        outputs=outputs,
        activation=cast("Activation", activation),
        labels=tuple(label or ()),
        score_class=score_class,
        other_weight=other_weight,
        symmetric=symmetric,
    )

    def build() -> "NeuralScorer":
        from tercet.models.cross import CrossEncoder

        return CrossEncoder.from_backbone(
            backbone, config=config, max_tokens=max_tokens, seed=seed, device="cpu"
        )

    _make(out, build)


def _make(out: Path, build: "Callable[[], NeuralScorer]") -> None:
    check_free(out)
    with waiting(f"making {out}"):
        scorer = build()
        scorer.save(out)
    typer.echo(f"{out}: an untrained {scorer.kind}-encoder, fingerprint {scorer.fingerprint}")
