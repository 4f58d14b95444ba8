"""Options that several commands share."""

import sys
from collections.abc import Iterator
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tercet.cli.progress import spinner as spinner  # for the commands, which import it from here
from tercet.cli.verbosity import detail, is_quiet, is_verbose
from tercet.data.rows import STDIN, Row
from tercet.data.sample import NAMES
from tercet.data.sources import SAMPLE, open_source
from tercet.errors import InputError
from tercet.settings.chunks import Boundary, ChunkConfig
from tercet.settings.files import FileConfig, Format
from tercet.settings.models import Precision

if TYPE_CHECKING:
    from tercet.scorers.calibration import Calibration
    from tercet.scorers.dual_scorer import DualScorer
    from tercet.scorers.loaded import LoadedScorer


def model_names(incomplete: str) -> list[str]:
    """The packaged models and the folders whose names begin so, for completion by the shell."""
    packaged = [name for name in ("bi", "poly", "cross") if name.startswith(incomplete)]
    begun = Path(incomplete)
    parent, start = (begun, "") if incomplete.endswith("/") else (begun.parent, begun.name)
    folders = [each for each in parent.glob(f"{escape(start)}*/") if not each.name.startswith(".")]
    return packaged + sorted(str(each) for each in folders)


def _model_option(help_text: str) -> Any:
    return typer.Option("--model", "-m", help=help_text, metavar="NAME", autocompletion=model_names)


ModelOption = Annotated[
    str, _model_option("Packaged model (bi, poly or cross), model folder, or Hugging Face id.")
]
DualModelOption = Annotated[
    str, _model_option("A bi- or poly-encoder: bi, poly, a model folder, or a Hugging Face id.")
]
BiModelOption = Annotated[
    str, _model_option("A bi-encoder with one tower: bi, a model folder, or a Hugging Face id.")
]
PrecisionOption = Annotated[
    Precision,
    typer.Option(
        "--precision",
        help="fp32, or bf16 (on a CPU also int8, on a GPU fp16): faster and nearly as accurate.",
    ),
]
FormatOption = Annotated[
    Format | None, typer.Option("--format", help="File format. Default: from the file name.")
]
DelimiterOption = Annotated[
    str, typer.Option(help="CSV: the character between two cells. Default: recognized.", metavar="CHARACTER")
]
EncodingOption = Annotated[
    str,
    typer.Option(help="Encoding, such as cp949. Default: UTF-8, or UTF-16 by its mark.", metavar="NAME"),
]
SkipEmptyOption = Annotated[
    bool, typer.Option("--skip-empty", help="Skip rows without a text, and count them in a note.")
]
ProbabilityOption = Annotated[
    bool, typer.Option("--probability", help="Also show the probability of a match, of a calibrated model.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print a JSON object.")]
JsonLinesOption = Annotated[bool, typer.Option("--json", help="Print JSON Lines.")]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")]
DeviceOption = Annotated[
    str | None, typer.Option(help="Device, such as cpu or cuda:0. Default: a GPU if available.")
]
DataOption = Annotated[
    Path | None,
    typer.Option("--data", help="Folder of the data files. Default: $TERCET_DATA.", metavar="FOLDER"),
]

ChunkOption = Annotated[
    str | None,
    typer.Option(
        "--chunk",
        help="Split long candidates into chunks of this many tokens, or max: as many as the model reads. "
        "A candidate is as good as its best chunk.",
        metavar="TOKENS",
    ),
]
ChunkOverlapOption = Annotated[
    int, typer.Option("--chunk-overlap", help="Tokens that a chunk repeats from the one before it.")
]
ChunkBoundaryOption = Annotated[
    Boundary, typer.Option("--chunk-boundary", help="Where a chunk may start: at any word or sentence.")
]

SOURCE_HELP = (
    "A text file (a text per line), JSONL, JSON, CSV, TSV or Parquet, optionally gzipped; - for standard "
    f"input; {SAMPLE}NAME for sample data ({', '.join(NAMES)}); or hf:NAME@SPLIT for a Hugging Face data set."
)


def open_model(name: str, precision: Precision = "fp32") -> "LoadedScorer":
    """The model, loaded behind a spinner."""
    with spinner(f"loading {name}"):
        from tercet.formats.load import load

        scorer = load(name, precision=precision)
    if is_verbose():  # some fingerprints take long to compute
        detail(
            f"{name}: {scorer.kind}-encoder {scorer.fingerprint}, {scorer.place}, {scorer.precision}, "
            f"{scorer.tokenizer.max_tokens} tokens"
        )
    return scorer


def open_dual(name: str, precision: Precision) -> "DualScorer":
    """As ``open_model``, for models that make vectors."""
    from tercet.scorers.dual_scorer import DualScorer

    scorer = open_model(name, precision)
    if not isinstance(scorer, DualScorer):
        raise InputError("a cross-encoder has no vectors: use a bi- or poly-encoder")
    return scorer


def columns_option(what: str) -> Any:
    """An option for the columns with some texts."""
    help_text = f"The column with the {what}; the texts of several are joined by a line break. Repeatable."
    return typer.Option("--column", help=help_text, metavar="NAME")


TextColumnsOption = Annotated[list[str] | None, columns_option("texts")]
CandidateColumnsOption = Annotated[list[str] | None, columns_option("candidates")]


def open_rows(source: str, file: FileConfig, *, what: str = "texts") -> Iterator[Row]:
    """The rows of a file, standard input, sample data or a Hugging Face data set.

    Args:
        what: what the rows are, for the hint that somebody must type them.
    """
    if source == STDIN and sys.stdin.isatty() and not is_quiet():
        form = "one per line" if file.format in (None, "text") else f"as {file.format}"
        typer.echo(f"reading {what} from standard input, {form}; end with Ctrl-D", err=True)
    return open_source(source, file=file)


def calibration_of(scorer: "LoadedScorer", model: str) -> "Calibration":
    """The calibration of a model, which ``--probability`` needs."""
    if scorer.calibration is None:
        raise InputError(
            f"{model} is not calibrated, so it has no probabilities: calibrate it with labelled pairs "
            f'("tercet calibrate {model} --data FILE -o FOLDER")'
        )
    return scorer.calibration


def chunk_config(size: str | None, overlap: int, boundary: Boundary) -> ChunkConfig | None:
    """The settings of ``--chunk`` and its options; None without it."""
    if size is None:
        if overlap or boundary != ChunkConfig.boundary:
            raise InputError("--chunk-overlap and --chunk-boundary need --chunk TOKENS")
        return None
    if size != "max" and not size.isdecimal():
        raise InputError(f"--chunk must be a number of tokens or max, got {size!r}")
    return ChunkConfig(size=None if size == "max" else int(size), overlap=overlap, boundary=boundary)


def parse_column(given: str) -> tuple[str, str]:
    """The role and the name in ``ROLE=NAME``."""
    role, equals, name = given.partition("=")
    if not equals or not role or not name:
        raise InputError(f"--column must be ROLE=NAME, such as context=question, got {given!r}")
    return role, name


def one_of(**given: object) -> None:
    """Raise unless exactly one of the options is given."""
    names = [name for name, value in given.items() if value]
    if len(names) != 1:
        choices = " or ".join(given)
        raise InputError(
            f"give {choices}, and only one of them" + (f": got {' and '.join(names)}" if names else "")
        )
