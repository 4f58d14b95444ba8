"""Low-rank adapters: inserted, trained, saved in a few megabytes, and merged on loading."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.conftest import SENTENCES

import tercet
from tercet.errors import InputError, ModelError
from tercet.formats.adapters import Adapters
from tercet.formats.from_spec import make_scorer
from tercet.settings.models import AdapterConfig, ModelSpec

pytest.importorskip("peft", reason="needs tercet[train]")

FolderOf = Callable[[str], Path]

KINDS: dict[str, dict[str, Any]] = {
    "bi": {"settings": {"towers": 2}},
    "poly": {"settings": {"codes": 3, "learn_scales": True}},
    "cross": {"settings": {"head": "dense"}},
}


def adapted(kind: str, folder: Path, **config: Any) -> tuple[Any, Adapters]:
    base = ModelSpec(kind=kind, source=str(folder), **KINDS[kind])  # type: ignore[arg-type]
    scorer = make_scorer(base, device="cpu")
    return scorer, Adapters(scorer, AdapterConfig(rank=2, **config), base)


def train(scorer: Any) -> None:
    """Change every trainable weight at random."""
    torch.manual_seed(1)
    with torch.no_grad():
        for weight in scorer.parameters():
            if weight.requires_grad:
                weight.add_(0.1 * torch.randn_like(weight))


@pytest.mark.parametrize("kind", KINDS)
def test_loaded_adapters_score_as_the_trained_model(kind: str, tiny_folder: FolderOf, tmp_path: Path) -> None:
    scorer, adapters = adapted(kind, tiny_folder("bert"))
    before = scorer.score(SENTENCES[0], SENTENCES)
    train(scorer)
    trained = scorer.score(SENTENCES[0], SENTENCES)
    assert abs(trained - before).max() > 1e-2
    adapters.save(tmp_path / "adapter")
    merged = scorer.score(SENTENCES[0], SENTENCES)
    assert abs(merged - trained).max() < 1e-4 * abs(trained).max()
    loaded = tercet.load(tmp_path / "adapter", device="cpu")
    assert loaded.kind == kind
    assert abs(loaded.score(SENTENCES[0], SENTENCES) - trained).max() < 1e-4 * abs(trained).max()


def test_a_merged_model_is_saved_as_a_plain_one(tiny_folder: FolderOf, tmp_path: Path) -> None:
    scorer, adapters = adapted("poly", tiny_folder("bert"))
    train(scorer)
    adapters.merge()
    scorer.save(tmp_path / "model")
    loaded = tercet.load(tmp_path / "model", device="cpu")
    assert loaded.fingerprint == scorer.fingerprint
    assert not any("lora" in name for name, _ in loaded.named_parameters())


def test_only_adapters_and_weights_outside_the_transformers_are_trainable(tiny_folder: FolderOf) -> None:
    scorer, _ = adapted("poly", tiny_folder("bert"))
    trainable = {name for name, weight in scorer.named_parameters() if weight.requires_grad}
    assert "code_layer.codes" in trainable
    assert all("lora_" in name for name in trainable if ".transformer." in name)


def test_the_adapters_of_minilm_are_a_few_megabytes(tmp_path: Path) -> None:
    base = ModelSpec(kind="poly", source="bi")
    scorer = make_scorer(base, device="cpu")
    Adapters(scorer, AdapterConfig(rank=8), base).save(tmp_path / "adapter")
    assert sum(file.stat().st_size for file in (tmp_path / "adapter").iterdir()) < 6e6
    assert tercet.load(tmp_path / "adapter", device="cpu", precision="bf16").precision == "bf16"


def test_the_adapted_layers_can_be_chosen_by_name(tiny_folder: FolderOf) -> None:
    scorer, _ = adapted("bi", tiny_folder("bert"), layers=("query",))
    assert {name.split(".")[-4] for name, _ in scorer.named_parameters() if "lora_" in name} == {"query"}
    with pytest.raises(InputError, match="layers must name linear layers of the transformer"):
        adapted("bi", tiny_folder("bert"), layers=("nonsense",))


def test_adapters_find_their_base_model_from_any_working_directory(
    tiny_folder: FolderOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny_folder("bert").parent)
    _, adapters = adapted("bi", Path("model"))
    adapters.save(tmp_path / "adapter")
    monkeypatch.chdir(tmp_path)
    assert tercet.load("adapter", device="cpu").kind == "bi"


def test_another_base_model_is_refused(tiny_folder: FolderOf, tmp_path: Path) -> None:
    _, adapters = adapted("bi", tiny_folder("bert"))
    adapters.save(tmp_path / "adapter")
    manifest = json.loads((tmp_path / "adapter" / "tercet.json").read_text())
    manifest["base_model"]["source"] = str(tiny_folder("roberta"))
    (tmp_path / "adapter" / "tercet.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelError, match=r"were trained on model [0-9a-f]+, and .* is now"):
        tercet.load(tmp_path / "adapter", device="cpu")


def test_adapters_that_do_not_fit_the_base_model_are_refused(tiny_folder: FolderOf, tmp_path: Path) -> None:
    _, adapters = adapted("poly", tiny_folder("bert"))
    adapters.save(tmp_path / "adapter")
    file = tmp_path / "adapter" / "adapter.safetensors"
    weights = load_file(file)
    save_file({name: weight for name, weight in weights.items() if name != "code_layer.codes"}, file)
    with pytest.raises(ModelError, match=r"lacks weights: code_layer\.codes"):
        tercet.load(tmp_path / "adapter", device="cpu")
    unpaired = {
        name: weight for name, weight in weights.items() if ".layer.0." not in name or "lora_A" in name
    }
    save_file(unpaired, file)
    with pytest.raises(ModelError, match="do not fit their base model"):
        tercet.load(tmp_path / "adapter", device="cpu")
    save_file({**weights, "stray": torch.zeros(1)}, file)
    with pytest.raises(ModelError, match="has weights that this model does not: stray"):
        tercet.load(tmp_path / "adapter", device="cpu")
    file.write_bytes(b"nothing")
    with pytest.raises(ModelError, match="cannot read"):
        tercet.load(tmp_path / "adapter", device="cpu")


def test_adapters_are_refused_where_a_complete_model_is_needed(tiny_folder: FolderOf, tmp_path: Path) -> None:
    _, adapters = adapted("poly", tiny_folder("bert"))
    adapters.save(tmp_path / "adapter")
    with pytest.raises(ModelError, match=r"contains LoRA adapters, not a complete model: use tercet\.load"):
        tercet.PolyEncoder.load(tmp_path / "adapter")
