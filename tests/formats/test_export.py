"""int8 exports: what they contain, that they load, and what is refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tests.conftest import SENTENCES
from typer.testing import CliRunner

import tercet
from tercet.cli.main import app
from tercet.errors import InputError, ModelError, UnsupportedModelError
from tercet.formats.export import export_int8
from tercet.formats.export_cost import same_top

FolderOf = Callable[[str], Path]
TEXTS = [f"{sentence} {number}" for number in range(12) for sentence in SENTENCES]
KINDS = {
    "bi": tercet.BiEncoder.from_backbone,
    "bi, two towers": lambda folder: tercet.BiEncoder.from_backbone(folder, config=tercet.BiConfig(towers=2)),
    "poly": lambda folder: tercet.PolyEncoder.from_backbone(folder, config=tercet.PolyConfig(codes=4)),
    "cross": tercet.CrossEncoder.from_backbone,
}


@pytest.fixture(scope="module", params=KINDS)
def exported(
    request: pytest.FixtureRequest, tiny_folder: FolderOf, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """A model and its export."""
    folder = tmp_path_factory.mktemp("export")
    model = KINDS[request.param](tiny_folder("bert")).save(folder / "trained")
    return model, export_int8(model, folder / "int8", TEXTS).path


@pytest.fixture
def damaged(exported: tuple[Path, Path], tmp_path: Path) -> Path:
    """A copy of an export to be damaged."""
    return Path(shutil.copytree(exported[1], tmp_path / "copy"))


def test_an_export_loads_as_int8_and_scores_nearly_as_the_model(exported: tuple[Path, Path]) -> None:
    exact, quantized = tercet.load(exported[0], runtime="openvino"), tercet.load(exported[1])
    assert (quantized.precision, quantized.runtime) == ("int8", "openvino")
    expected, found = (scorer.score_many(SENTENCES, SENTENCES) for scorer in (exact, quantized))
    assert not np.array_equal(found, expected)
    assert np.abs(found - expected).max() < 0.15 * np.ptp(expected) + 1e-3


def test_int8_scores_hardly_depend_on_the_rest_of_a_batch(exported: tuple[Path, Path]) -> None:
    scorer = tercet.load(exported[1])
    whole = scorer.score(SENTENCES[0], SENTENCES)
    alone = np.array([scorer.score(SENTENCES[0], [text])[0] for text in SENTENCES])
    assert np.abs(alone - whole).max() < 0.02 * max(1.0, np.abs(whole).max())


def test_an_export_keeps_the_fingerprint(exported: tuple[Path, Path]) -> None:
    assert tercet.load(exported[1]).fingerprint == tercet.load(exported[0]).fingerprint


def test_the_card_says_what_int8_costs(exported: tuple[Path, Path]) -> None:
    card = (exported[1] / "README.md").read_text()
    assert "compared with fp32, on" in card.lower()
    assert "speed-up in processor time" in card


def test_an_export_that_was_moved_still_loads(damaged: Path) -> None:
    assert tercet.load(damaged).precision == "int8"


def test_the_model_can_be_loaded_from_the_export_again(exported: tuple[Path, Path]) -> None:
    assert tercet.load(exported[1] / "model").precision == "fp32"


@pytest.mark.parametrize("asked", [{"runtime": "torch"}, {"precision": "bf16"}])
def test_an_export_in_another_precision_or_runtime_is_refused(
    asked: dict[str, str], exported: tuple[Path, Path]
) -> None:
    with pytest.raises(InputError, match="is an int8 export for the OpenVINO runtime, got"):
        tercet.load(exported[1], **asked)  # type: ignore[call-overload]


def test_an_export_is_not_exported_again(exported: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is an export itself"):
        export_int8(exported[1], tmp_path / "again", TEXTS)


def test_an_export_without_its_model_is_refused(damaged: Path) -> None:
    shutil.rmtree(damaged / "model")
    with pytest.raises(ModelError, match="has no folder 'model': copy the export again"):
        tercet.load(damaged)


def test_ranges_of_other_weights_are_refused(damaged: Path) -> None:
    with (damaged / "model" / "tercet.json").open("a") as file:
        file.write("\n")
    manifest = json.loads((damaged / "model" / "tercet.json").read_text())
    manifest["fingerprint"] = "0" * 16
    (damaged / "model" / "tercet.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelError, match="belongs to other weights"):
        tercet.load(damaged)


def test_a_truncated_file_of_ranges_is_refused(damaged: Path) -> None:
    file = damaged / "int8.safetensors"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(ModelError, match=r"cannot read .*int8\.safetensors.*export the model again"):
        tercet.load(damaged)


@pytest.mark.parametrize("damage", [np.nan, -1.0, np.inf])
def test_ranges_that_are_no_ranges_are_refused(damage: float, damaged: Path) -> None:
    file, arrays = damaged / "int8.safetensors", load_file(damaged / "int8.safetensors")
    name = next(name for name in arrays if name.endswith("/scale"))
    arrays[name][0] = damage
    _save_like(file, arrays)
    with pytest.raises(ModelError, match=r"in .*int8\.safetensors is damaged: export the model again"):
        tercet.load(damaged)


def test_ranges_for_layers_that_do_not_exist_are_refused(damaged: Path) -> None:
    file = damaged / "int8.safetensors"
    arrays = {name.replace("layer.0", "layer.9"): values for name, values in load_file(file).items()}
    _save_like(file, arrays)
    with pytest.raises(ModelError, match="do not fit the model: export it again"):
        tercet.load(damaged)


def test_int8_of_a_folder_without_ranges_says_how_to_get_them(tiny_folder: FolderOf, tmp_path: Path) -> None:
    folder = tercet.BiEncoder.from_backbone(tiny_folder("bert")).save(tmp_path / "model")
    with pytest.raises(UnsupportedModelError, match=r'run "tercet export .* -o FOLDER --precision int8"'):
        tercet.load(folder, precision="int8")


def test_int8_in_torch_is_refused() -> None:
    with pytest.raises(InputError, match="int8 needs the OpenVINO runtime"):
        tercet.load("bi", runtime="torch", precision="int8")


def test_an_architecture_without_a_graph_has_no_int8(tiny_folder: FolderOf, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match='this model is a deberta-v2: use runtime="torch"'):
        export_int8(tiny_folder("deberta-v2"), tmp_path / "int8", TEXTS)


def test_too_few_texts_are_refused(tiny_folder: FolderOf, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="int8 needs at least 50 texts for its ranges, got 3"):
        export_int8(tiny_folder("bert"), tmp_path / "int8", TEXTS[:3])
    assert not (tmp_path / "int8").exists()


@pytest.mark.parametrize("architecture", ["roberta", "distilbert", "mpnet", "modernbert", "electra"])
def test_other_architectures_export_too(architecture: str, tiny_folder: FolderOf, tmp_path: Path) -> None:
    folder = tercet.BiEncoder.from_backbone(tiny_folder(architecture)).save(tmp_path / "model")
    exported = export_int8(folder, tmp_path / "int8", TEXTS)
    assert exported.cost.agreement[0] > 0.99
    assert tercet.load(exported.path).score("a dog", SENTENCES).shape == (len(SENTENCES),)


def test_the_same_top_is_a_share() -> None:
    exact = np.arange(40.0, dtype=np.float32).reshape(2, 20)
    other = exact.copy()
    other[0, :1] = 100  # one of ten in the first row
    assert same_top(exact, exact) == 1
    assert same_top(exact, other) == pytest.approx(0.95)


def test_the_command_writes_a_folder(tiny_folder: FolderOf, tmp_path: Path) -> None:
    folder = tercet.BiEncoder.from_backbone(tiny_folder("bert")).save(tmp_path / "model")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    arguments = [
        "export",
        str(folder),
        "-o",
        str(tmp_path / "int8"),
        "--calibrate",
        str(tmp_path / "texts.txt"),
    ]
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["texts"] == -(-len(TEXTS) // 5)
    assert tercet.load(tmp_path / "int8").precision == "int8"


def _save_like(file: Path, arrays: dict[str, np.ndarray]) -> None:
    from safetensors import safe_open

    with safe_open(file, framework="numpy") as opened:
        metadata = opened.metadata()
    save_file(arrays, file, metadata=metadata)
