"""Commands fail if a model computes NaN, and print JSON without NaN."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.cli.command import assert_fails, tercet
from tests.conftest import SENTENCES, make_folder
from transformers import TrainerControl, TrainerState, TrainingArguments

from tercet.errors import OutputError
from tercet.index.database import Database
from tercet.training.callbacks import MetricsFile
from tercet.training.curves import draw_curves

FolderOf = Callable[[str], Path]


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model whose weights are finite and whose vectors are not."""
    folder = make_folder(tmp_path_factory.mktemp("broken") / "model")
    weights = load_file(folder / "model.safetensors")
    weights["encoder.layer.1.output.LayerNorm.weight"] = torch.full((16,), 1e38)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return str(folder)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts and labelled pairs."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "texts.txt").write_text("\n".join(SENTENCES))
    texts = [f"{one} {other}" for one in SENTENCES for other in SENTENCES]
    pairs = [{"context": one, "candidate": "old house", "score": n % 8} for n, one in enumerate(texts)]
    (folder / "pairs.jsonl").write_text("\n".join(map(json.dumps, pairs)))
    return folder


COMMANDS = {
    "rank": ["rank", "the cat", "-c", "TEXTS", "-m", "MODEL"],
    "rank-json": ["rank", "the cat", "-c", "TEXTS", "-m", "MODEL", "--json"],
    "score": ["score", "the cat", "a dog", "-m", "MODEL"],
    "score-json": ["score", "the cat", "a dog", "-m", "MODEL", "--json"],
    "explain": ["explain", "the cat", "a dog", "-m", "MODEL"],
    "encode": ["encode", "TEXTS", "-m", "MODEL", "-o", "OUT"],
    "pairs": ["pairs", "TEXTS", "-m", "MODEL"],
    "cluster": ["cluster", "TEXTS", "-m", "MODEL"],
    "build": ["index", "build", "TEXTS", "-m", "MODEL", "-o", "OUT"],
    "evaluate": ["evaluate", "MODEL", "similarity:PAIRS"],
    "calibrate": ["calibrate", "MODEL", "--data", "PAIRS", "--match-from", "3", "-o", "OUT"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_fails_if_its_model_computes_nan(
    broken: str, files: Path, tmp_path: Path, command: str
) -> None:
    paths = {
        "TEXTS": str(files / "texts.txt"),
        "PAIRS": str(files / "pairs.jsonl"),
        "MODEL": broken,
        "OUT": str(tmp_path / "out.npy"),
    }
    words = COMMANDS[command]
    for name, path in paths.items():
        words = [word.replace(name, path) for word in words]
    assert_fails(tercet("-q", *words), "of a model must be finite")


def test_a_number_that_is_missing_in_a_column_is_null_in_the_output(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text('{"context": "the cat", "candidate": "a dog", "price": NaN, "more": [Infinity, 1]}\n')
    result = tercet("score", "--pairs", str(file), "-m", str(tiny_folder("bert")), "--json")
    columns = json.loads(result.stdout, parse_constant=pytest.fail)["columns"]
    assert columns == {"price": None, "more": [None, 1]}


def test_metrics_that_are_not_finite_are_null_and_leave_a_gap_in_the_curve(tmp_path: Path) -> None:
    state, control = TrainerState(), TrainerControl()
    arguments = TrainingArguments(output_dir=str(tmp_path))
    log = MetricsFile(tmp_path / "metrics.jsonl")
    state.log_history = [{"step": 1, "loss": 0.5, "grad_norm": float("inf")}]
    log.on_train_begin(arguments, state, control)
    state.log_history.append({"step": 2, "loss": float("nan"), "grad_norm": 1.0})
    log.on_log(arguments, state, control)
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line, parse_constant=pytest.fail) for line in lines] == [
        {"step": 1, "loss": 0.5, "grad_norm": None},
        {"step": 2, "loss": None, "grad_norm": 1.0},
    ]
    draw_curves(tmp_path / "metrics.jsonl", tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 0


def test_the_metadata_of_an_index_has_no_nan(tmp_path: Path) -> None:
    database = Database(tmp_path / "index.sqlite", create=True)
    with pytest.raises(OutputError, match="numbers in JSON must be finite, got nan"):
        database.set_metadata({"threshold": float("nan")})
    assert database.metadata("threshold") is None
