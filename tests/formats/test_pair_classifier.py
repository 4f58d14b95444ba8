"""The classifier of a bi-encoder in its folder: kept by every format, and checked when it is read."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from tests.conftest import SENTENCES, make_folder

import tercet
from tercet.errors import ModelError
from tercet.formats.adapters import Adapters
from tercet.formats.delta import save_delta
from tercet.formats.from_spec import make_scorer
from tercet.scorers.pair_classifier import PairClassifier
from tercet.settings.models import AdapterConfig, ModelSpec

FolderOf = Callable[[str], Path]
LABELS = ("yes", "no", "perhaps")


def with_classifier(scorer: Any) -> Any:
    weights = np.random.default_rng(0).normal(size=(3, 2 * scorer.width)).astype(np.float32)
    scorer.classifier = PairClassifier(weights, ("v", "difference"), LABELS)
    return scorer


def assert_same_classes(folder: Path, scorer: Any) -> None:
    loaded = tercet.load(folder, device="cpu")
    assert loaded.classifier.labels == LABELS
    assert loaded.classifier.concatenation == ("v", "difference")
    pairs = SENTENCES, SENTENCES[::-1]
    np.testing.assert_allclose(loaded.classify(*pairs), scorer.classify(*pairs), atol=1e-4)


@pytest.mark.parametrize("towers", [1, 2])
def test_a_saved_classifier_is_loaded_and_does_not_change_the_fingerprint(
    towers: int, tiny_folder: FolderOf, tmp_path: Path
) -> None:
    config = tercet.BiConfig(towers=towers)
    scorer = tercet.BiEncoder.from_backbone(tiny_folder("bert"), config=config, device="cpu")
    plain = scorer.fingerprint
    with_classifier(scorer).save(tmp_path / "bi")
    assert_same_classes(tmp_path / "bi", scorer)
    assert tercet.load(tmp_path / "bi", device="cpu").fingerprint == plain


def test_sentence_transformers_loads_a_folder_with_a_classifier(tiny: Any, tmp_path: Path) -> None:
    with_classifier(tiny).save(tmp_path / "bi")
    theirs = SentenceTransformer(str(tmp_path / "bi"), device="cpu").encode(SENTENCES)
    np.testing.assert_allclose(theirs, tiny.encode_candidates(SENTENCES), atol=1e-5)


def test_a_model_on_an_encoder_with_a_classifier_has_none(tiny: Any, tmp_path: Path) -> None:
    with_classifier(tiny).save(tmp_path / "bi")
    assert tercet.BiEncoder.from_backbone(tmp_path / "bi", device="cpu").classifier is None


def test_a_delta_keeps_the_classifier(tmp_path: Path) -> None:
    base = ModelSpec(kind="bi", source=str(make_folder(tmp_path / "wide", width=64)))
    scorer = with_classifier(make_scorer(base, device="cpu"))
    save_delta(scorer, base, tmp_path / "delta")
    assert_same_classes(tmp_path / "delta", scorer)


def test_adapters_keep_the_classifier(tiny_folder: FolderOf, tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="needs tercet[train]")
    base = ModelSpec(kind="bi", source=str(tiny_folder("bert")))
    scorer = make_scorer(base, device="cpu")
    adapters = Adapters(scorer, AdapterConfig(rank=2), base)
    with_classifier(scorer)
    adapters.save(tmp_path / "adapter")
    assert_same_classes(tmp_path / "adapter", scorer)


@pytest.mark.parametrize(
    ("settings", "weight", "message"),
    [
        ({"concatenation": ["v", "sum"]}, None, "concatenation must be one of u, v, difference, product"),
        ({"concatenation": ["v"]}, None, r"has the shape \[3, 32\], and the model's vectors require .*16"),
        ({"labels": ["yes", "no"]}, None, "3 classes need as many different labels, got yes, no"),
        ({"labels": 3}, None, "a setting in the JSON files of .* is missing or invalid"),
        ({}, torch.full((3, 32), torch.nan), "contains NaN or infinity"),
        ({}, torch.zeros(0, 32), r"has the shape \[0, 32\]"),
    ],
)
def test_a_damaged_classifier_is_refused(
    settings: dict[str, object], weight: torch.Tensor | None, message: str, tiny: Any, tmp_path: Path
) -> None:
    folder = with_classifier(tiny).save(tmp_path / "bi")
    file = folder / "classifier.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))
    if weight is not None:
        save_file({"weight": weight}, folder / "classifier.safetensors")
    with pytest.raises(ModelError, match=message):
        tercet.load(folder, device="cpu")


def test_a_classifier_without_weights_is_refused(tiny: Any, tmp_path: Path) -> None:
    folder = with_classifier(tiny).save(tmp_path / "bi")
    (folder / "classifier.safetensors").unlink()
    with pytest.raises(ModelError, match=r"cannot read .*classifier\.safetensors"):
        tercet.load(folder, device="cpu")
