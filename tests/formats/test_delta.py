"""Models saved as a quantized delta to the model that they were trained from."""

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
from tercet.errors import InputError, ModelError, OutputError
from tercet.formats.delta import save_delta
from tercet.formats.from_spec import make_scorer
from tercet.formats.quantization import BITS, Bits
from tercet.scorers.calibration import fit_calibration
from tercet.scorers.kinds import AnyScorer
from tercet.settings.models import ModelSpec

CONTEXTS = ["where is the station?", "a cup of tea, please"]
CANDIDATES = ["behind the church", "with milk?", "no"]
KINDS = ("bi", "poly", "cross")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backbone whose matrices can be quantized: the rows are whole groups."""
    return make_folder(tmp_path_factory.mktemp("wide") / "model", width=64)


def _base(kind: str, source: Path) -> ModelSpec:
    settings = {"poly": {"codes": 4}, "cross": {"head": "compare"}}
    if kind == "bi":
        return ModelSpec(kind="bi", source=str(source))
    return ModelSpec(kind=kind, source=str(source), settings=settings[kind])


def _trained(base: ModelSpec, *, seed: int = 0) -> AnyScorer:
    """The base model with small random changes of every weight but the word embeddings."""
    scorer = make_scorer(base, device="cpu")
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in scorer.named_parameters():
            if "word_embeddings" not in name:
                weight.add_(torch.randn(weight.shape, generator=generator) * 0.02)
    return scorer


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_delta_scores_nearly_as_the_trained_model(kind: str, folder: Path, tmp_path: Path) -> None:
    base = _base(kind, folder)
    trained = _trained(base)
    untrained = make_scorer(base, device="cpu").score_many(CONTEXTS, CANDIDATES)

    save_delta(trained, base, tmp_path / "delta")
    loaded = tercet.load(tmp_path / "delta", device="cpu").score_many(CONTEXTS, CANDIDATES)

    expected = trained.score_many(CONTEXTS, CANDIDATES)
    assert np.abs(loaded - expected).max() < 0.2 * np.abs(expected - untrained).max()


@pytest.mark.parametrize("bits", BITS)
def test_the_manifest_names_the_fingerprint_of_the_loaded_model(
    bits: Bits, folder: Path, tmp_path: Path
) -> None:
    base = _base("poly", folder)
    save_delta(_trained(base), base, tmp_path / "delta", bits=bits)

    fingerprint = json.loads((tmp_path / "delta" / "tercet.json").read_text())["fingerprint"]

    assert tercet.load(tmp_path / "delta", device="cpu").fingerprint == fingerprint


def test_unchanged_weights_are_not_stored(folder: Path, tmp_path: Path) -> None:
    base = _base("bi", folder)
    save_delta(_trained(base), base, tmp_path / "delta")

    written = load_file(tmp_path / "delta" / "delta.safetensors")

    assert not [name for name in written if "word_embeddings" in name]


def test_weights_outside_the_transformers_are_stored_exactly(folder: Path, tmp_path: Path) -> None:
    base = _base("poly", folder)
    trained = _trained(base)
    save_delta(trained, base, tmp_path / "delta")

    loaded = dict(tercet.load(tmp_path / "delta", device="cpu").named_parameters())

    own = {name: weight for name, weight in trained.named_parameters() if ".transformer." not in name}
    assert own
    assert all(torch.equal(loaded[name], weight) for name, weight in own.items())


def test_another_base_model_is_refused(folder: Path, tmp_path: Path) -> None:
    base = _base("bi", folder)
    save_delta(_trained(base), base, tmp_path / "delta")
    manifest = json.loads((tmp_path / "delta" / "tercet.json").read_text())
    manifest["base_model"]["source"] = str(make_folder(tmp_path / "other", width=64, seed=1))
    (tmp_path / "delta" / "tercet.json").write_text(json.dumps(manifest))

    with pytest.raises(ModelError, match="it is not the base model, or the file is damaged"):
        tercet.load(tmp_path / "delta", device="cpu")


def test_a_base_of_another_kind_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the model and its base have different weights"):
        save_delta(
            _trained(_base("poly", folder)),
            _base("bi", folder),
            tmp_path / "delta",
        )


LAYER = "context_encoder.transformer.encoder.layer.1."
VECTOR = f"{LAYER}output.dense.bias.added"


def _without_a_layer(weights: dict[str, torch.Tensor]) -> None:
    for name in [name for name in weights if name.startswith(LAYER)]:
        del weights[name]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda weights: weights.pop("code_layer.codes"), "lacks weights: code_layer.codes"),
        (
            lambda weights: weights.update({"strange.weight.added": torch.zeros(3)}),
            "does not: strange.weight",
        ),
        (
            lambda weights: weights.update({"code_layer.codes": torch.zeros(3, 3)}),
            "does not fit its base model",
        ),
        (lambda weights: weights.update({"code_layer.codes": torch.full((4, 64), torch.nan)}), "NaN"),
        (lambda weights: weights.update({VECTOR: torch.ones(1)}), "becomes model .* or the file is damaged"),
        (_without_a_layer, "becomes model .* or the file is damaged"),
    ],
)
def test_a_damaged_file_is_refused(
    change: Callable[[dict[str, torch.Tensor]], None], message: str, folder: Path, tmp_path: Path
) -> None:
    base = _base("poly", folder)
    save_delta(_trained(base), base, tmp_path / "delta")
    weights = load_file(tmp_path / "delta" / "delta.safetensors")
    change(weights)
    save_file(weights, tmp_path / "delta" / "delta.safetensors")

    with pytest.raises(ModelError, match=message):
        tercet.load(tmp_path / "delta", device="cpu")


@pytest.mark.parametrize("bits", [0, 2, 3, "4", None])
def test_a_manifest_with_other_bits_is_refused(bits: object, folder: Path, tmp_path: Path) -> None:
    base = _base("bi", folder)
    save_delta(_trained(base), base, tmp_path / "delta")
    manifest = json.loads((tmp_path / "delta" / "tercet.json").read_text())
    (tmp_path / "delta" / "tercet.json").write_text(json.dumps(manifest | {"delta": bits}))

    with pytest.raises(ModelError):
        tercet.load(tmp_path / "delta", device="cpu")


@pytest.mark.parametrize(
    ("trained", "message"),
    [
        (ModelSpec(kind="poly", settings={"codes": 4, "candidate_scale": 50.0}), "settings: config"),
        (ModelSpec(kind="poly", settings={"codes": 4, "similarity": "dot"}), "settings: config, towers"),
        (ModelSpec(kind="poly", settings={"codes": 4, "towers": 1}), "weights"),
        (ModelSpec(kind="poly", settings={"codes": 4}, max_tokens=20), "settings: tokenizer"),
    ],
)
def test_a_base_with_other_settings_is_refused(
    trained: ModelSpec, message: str, folder: Path, tmp_path: Path
) -> None:
    scorer = _trained(replace(trained, source=str(folder)))

    with pytest.raises(InputError, match=f"the model and its base have different {message}"):
        save_delta(scorer, _base("poly", folder), tmp_path / "delta")


def test_a_calibrated_model_stays_calibrated(folder: Path, tmp_path: Path) -> None:
    base = _base("bi", folder)
    trained = _trained(base)
    scores = [0.1, 0.2, 0.35, 0.4, 0.6, 0.7, 0.8, 0.9]
    trained.calibration = fit_calibration(scores, [0, 0, 0, 1, 0, 1, 1, 1])
    save_delta(trained, base, tmp_path / "delta")

    assert tercet.load(tmp_path / "delta", device="cpu").calibration == trained.calibration


def test_a_delta_loads_in_bf16_and_a_bf16_model_is_not_saved(folder: Path, tmp_path: Path) -> None:
    base = _base("bi", folder)
    save_delta(_trained(base), base, tmp_path / "delta")
    loaded = tercet.load(tmp_path / "delta", precision="bf16", device="cpu")

    assert loaded.precision == "bf16"
    with pytest.raises(OutputError, match="the weights are not in float32: load the model in fp32"):
        save_delta(loaded, base, tmp_path / "second")


def test_a_delta_is_refused_where_a_complete_model_is_needed(folder: Path, tmp_path: Path) -> None:
    base = _base("poly", folder)
    save_delta(_trained(base), base, tmp_path / "delta")

    with pytest.raises(ModelError, match="contains a quantized delta, not a complete model: use tercet"):
        tercet.PolyEncoder.load(tmp_path / "delta")


def test_unknown_bits_are_refused(folder: Path, tmp_path: Path) -> None:
    base = _base("bi", folder)

    with pytest.raises(InputError, match=r"bits must be one of \(2, 4\), got 3"):
        save_delta(_trained(base), base, tmp_path / "delta", bits=3)
