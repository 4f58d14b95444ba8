"""Models that are kept as their difference from another, in few bits."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.conftest import make_folder

import tercet
from tercet.calibration import fit_calibration
from tercet.models.differences import save_differences
from tercet.models.few_bits import BITS, Bits
from tercet.models.load import AnyScorer
from tercet.models.start import Start, make_scorer

CONTEXTS = ["where is the station?", "a cup of tea, please"]
CANDIDATES = ["behind the church", "with milk?", "no"]
KINDS = ("bi", "poly", "cross")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backbone whose matrices have rows of whole groups."""
    return make_folder(tmp_path_factory.mktemp("wide") / "model", width=64)


def _start(kind: str, source: Path) -> Start:
    settings = {"poly": {"codes": 4}, "cross": {"head": "compare"}}
    if kind == "bi":
        return Start(kind="bi", source=str(source))
    return Start(kind=kind, source=str(source), settings=settings[kind])


def _trained(start: Start, *, seed: int = 0) -> AnyScorer:
    """As after a training: every weight but the word embeddings has moved a little."""
    scorer = make_scorer(start, device="cpu")
    chance = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in scorer.named_parameters():
            if "word_embeddings" not in name:
                weight.add_(torch.randn(weight.shape, generator=chance) * 0.02)
    return scorer


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_that_is_read_scores_nearly_as_the_one_that_was_written(
    kind: str, folder: Path, tmp_path: Path
) -> None:
    start = _start(kind, folder)
    trained = _trained(start)
    untrained = make_scorer(start, device="cpu").score_many(CONTEXTS, CANDIDATES)

    save_differences(trained, start, tmp_path / "small")
    read = tercet.load(tmp_path / "small", device="cpu").score_many(CONTEXTS, CANDIDATES)

    wanted = trained.score_many(CONTEXTS, CANDIDATES)
    assert np.abs(read - wanted).max() < 0.2 * np.abs(wanted - untrained).max()


@pytest.mark.parametrize("bits", BITS)
def test_it_is_the_model_that_its_fingerprint_names(bits: Bits, folder: Path, tmp_path: Path) -> None:
    start = _start("poly", folder)
    save_differences(_trained(start), start, tmp_path / "small", bits=bits)

    named = json.loads((tmp_path / "small" / "tercet.json").read_text())["fingerprint"]

    assert tercet.load(tmp_path / "small", device="cpu").fingerprint == named


def test_what_did_not_change_takes_no_room(folder: Path, tmp_path: Path) -> None:
    start = _start("bi", folder)
    save_differences(_trained(start), start, tmp_path / "small")

    written = load_file(tmp_path / "small" / "differences.safetensors")

    assert not [name for name in written if "word_embeddings" in name]


def test_layers_of_our_own_are_kept_exactly(folder: Path, tmp_path: Path) -> None:
    start = _start("poly", folder)
    trained = _trained(start)
    save_differences(trained, start, tmp_path / "small")

    read = dict(tercet.load(tmp_path / "small", device="cpu").named_parameters())

    own = {name: weight for name, weight in trained.named_parameters() if ".transformer." not in name}
    assert own
    assert all(torch.equal(read[name], weight) for name, weight in own.items())


def test_another_model_to_begin_with_is_refused(folder: Path, tmp_path: Path) -> None:
    start = _start("bi", folder)
    save_differences(_trained(start), start, tmp_path / "small")
    manifest = json.loads((tmp_path / "small" / "tercet.json").read_text())
    manifest["start"]["source"] = str(make_folder(tmp_path / "other", width=64, seed=1))
    (tmp_path / "small" / "tercet.json").write_text(json.dumps(manifest))

    with pytest.raises(tercet.ModelError, match="not the model they were taken from"):
        tercet.load(tmp_path / "small", device="cpu")


def test_models_of_two_kinds_have_no_difference(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(tercet.InputError, match="other weights than the one it is compared with"):
        save_differences(
            _trained(_start("poly", folder)),
            _start("bi", folder),
            tmp_path / "small",
        )


LAYER = "context_encoder.transformer.encoder.layer.1."
VECTOR = f"{LAYER}output.dense.bias.added"


def _without_a_layer(weights: dict[str, torch.Tensor]) -> None:
    for name in [name for name in weights if name.startswith(LAYER)]:
        del weights[name]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda weights: weights.pop("code_layer.codes"), "lacks weights: code_layer.codes"),
        (lambda weights: weights.update({"strange.weight.added": torch.zeros(3)}), "has no place for"),
        (lambda weights: weights.update({"code_layer.codes": torch.zeros(3, 3)}), "do not fit"),
        (lambda weights: weights.update({"code_layer.codes": torch.full((4, 64), torch.nan)}), "NaN"),
        (lambda weights: weights.update({VECTOR: torch.ones(1)}), "becomes model .* or the file is broken"),
        (_without_a_layer, "becomes model .* or the file is broken"),
    ],
)
def test_a_broken_file_is_refused(
    change: Callable[[dict[str, torch.Tensor]], None], complaint: str, folder: Path, tmp_path: Path
) -> None:
    start = _start("poly", folder)
    save_differences(_trained(start), start, tmp_path / "small")
    weights = load_file(tmp_path / "small" / "differences.safetensors")
    change(weights)
    save_file(weights, tmp_path / "small" / "differences.safetensors")

    with pytest.raises(tercet.ModelError, match=complaint):
        tercet.load(tmp_path / "small", device="cpu")


@pytest.mark.parametrize("bits", [0, 2, 3, "4", None])
def test_other_bits_than_those_it_was_written_with_are_refused(
    bits: object, folder: Path, tmp_path: Path
) -> None:
    start = _start("bi", folder)
    save_differences(_trained(start), start, tmp_path / "small")
    manifest = json.loads((tmp_path / "small" / "tercet.json").read_text())
    (tmp_path / "small" / "tercet.json").write_text(json.dumps(manifest | {"differences": bits}))

    with pytest.raises(tercet.ModelError):
        tercet.load(tmp_path / "small", device="cpu")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Start(kind="poly", settings={"codes": 4, "candidate_scale": 50.0}), {"codes": 4}),
        (Start(kind="poly", settings={"codes": 4, "similarity": "cosine"}), {"codes": 4}),
        (Start(kind="poly", settings={"codes": 4, "towers": 1}), {"codes": 4}),
        (Start(kind="poly", settings={"codes": 4}, max_tokens=20), {"codes": 4}),
    ],
)
def test_a_start_with_other_settings_is_refused(
    ours: Start, theirs: dict[str, object], folder: Path, tmp_path: Path
) -> None:
    trained = _trained(replace(ours, source=str(folder)))
    start = Start(kind="poly", source=str(folder), settings=theirs)

    with pytest.raises(tercet.InputError, match="than the one it is compared with"):
        save_differences(trained, start, tmp_path / "small")


def test_a_calibrated_model_stays_calibrated(folder: Path, tmp_path: Path) -> None:
    start = _start("bi", folder)
    trained = _trained(start)
    scores = [0.1, 0.2, 0.35, 0.4, 0.6, 0.7, 0.8, 0.9]
    trained.calibration = fit_calibration(scores, [0, 0, 0, 1, 0, 1, 1, 1])
    save_differences(trained, start, tmp_path / "small")

    assert tercet.load(tmp_path / "small", device="cpu").calibration == trained.calibration


def test_precision_is_that_which_was_asked_for(folder: Path, tmp_path: Path) -> None:
    start = _start("bi", folder)
    save_differences(_trained(start), start, tmp_path / "small")
    read = tercet.load(tmp_path / "small", precision="bf16", device="cpu")

    assert read.precision == "bf16"
    with pytest.raises(tercet.TercetError, match="only float32 has all digits"):
        save_differences(read, start, tmp_path / "again")


def test_a_folder_of_differences_is_no_whole_model(folder: Path, tmp_path: Path) -> None:
    start = _start("poly", folder)
    save_differences(_trained(start), start, tmp_path / "small")

    with pytest.raises(tercet.ModelError, match="holds differences, not a whole model"):
        tercet.PolyEncoder.load(tmp_path / "small")


def test_unknown_bits_are_refused(folder: Path, tmp_path: Path) -> None:
    start = _start("bi", folder)

    with pytest.raises(tercet.InputError, match=r"bits must be one of \(2, 4\), got 3"):
        save_differences(_trained(start), start, tmp_path / "small", bits=3)
