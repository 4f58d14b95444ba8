"""Low-rank adapters: learnt, saved small, and merged into the same model again."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.conftest import SENTENCES

import tercet
from tercet.config import AdapterConfig
from tercet.models.adapters import Adapters
from tercet.models.start import Start, make_scorer

pytest.importorskip("peft", reason="needs tercet[train]")

FolderOf = Callable[[str], Path]

KINDS: dict[str, dict[str, Any]] = {
    "bi": {"settings": {"towers": 2}},
    "poly": {"settings": {"codes": 3, "learn_scales": True}},
    "cross": {"settings": {"head": "dense"}},
}


def adapted(kind: str, folder: Path, **config: Any) -> tuple[Any, Adapters]:
    start = Start(kind=kind, source=str(folder), **KINDS[kind])  # type: ignore[arg-type]
    scorer = make_scorer(start, device="cpu")
    return scorer, Adapters(scorer, AdapterConfig(rank=2, **config), start)


def learn(scorer: Any) -> None:
    """Move whatever may be moved, as training would."""
    torch.manual_seed(1)
    with torch.no_grad():
        for weight in scorer.parameters():
            if weight.requires_grad:
                weight.add_(0.1 * torch.randn_like(weight))


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_learnt_comes_back(kind: str, tiny_folder: FolderOf, tmp_path: Path) -> None:
    scorer, adapters = adapted(kind, tiny_folder("bert"))
    before = scorer.score(SENTENCES[0], SENTENCES)
    learn(scorer)
    learnt = scorer.score(SENTENCES[0], SENTENCES)
    assert abs(learnt - before).max() > 1e-2
    adapters.save(tmp_path / "adapter")
    merged = scorer.score(SENTENCES[0], SENTENCES)
    assert abs(merged - learnt).max() < 1e-4 * abs(learnt).max()
    again = tercet.load(tmp_path / "adapter", device="cpu")
    assert again.kind == kind
    assert abs(again.score(SENTENCES[0], SENTENCES) - learnt).max() < 1e-4 * abs(learnt).max()


def test_the_merged_model_is_a_plain_one(tiny_folder: FolderOf, tmp_path: Path) -> None:
    scorer, adapters = adapted("poly", tiny_folder("bert"))
    learn(scorer)
    adapters.merge()
    scorer.save(tmp_path / "model")
    again = tercet.load(tmp_path / "model", device="cpu")
    assert again.fingerprint == scorer.fingerprint
    assert not any("lora" in name for name, _ in again.named_parameters())


def test_only_thin_matrices_and_what_is_no_transformer_move(tiny_folder: FolderOf) -> None:
    scorer, _ = adapted("poly", tiny_folder("bert"))
    moved = {name for name, weight in scorer.named_parameters() if weight.requires_grad}
    assert "code_layer.codes" in moved
    assert all("lora_" in name for name in moved if ".transformer." in name)


def test_the_adapters_of_minilm_are_a_few_megabytes(tmp_path: Path) -> None:
    start = Start(kind="poly", source="bi")
    scorer = make_scorer(start, device="cpu")
    Adapters(scorer, AdapterConfig(rank=8), start).save(tmp_path / "adapter")
    assert sum(file.stat().st_size for file in (tmp_path / "adapter").iterdir()) < 6e6
    assert tercet.load(tmp_path / "adapter", device="cpu", precision="bf16").precision == "bf16"


def test_layers_can_be_chosen(tiny_folder: FolderOf) -> None:
    scorer, _ = adapted("bi", tiny_folder("bert"), layers=("query",))
    assert {name.split(".")[-4] for name, _ in scorer.named_parameters() if "lora_" in name} == {"query"}
    with pytest.raises(tercet.InputError, match="layers to adapt must be linear layers"):
        adapted("bi", tiny_folder("bert"), layers=("nonsense",))


def test_adapters_find_their_model_from_any_folder(
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
    manifest["start"]["source"] = str(tiny_folder("roberta"))
    (tmp_path / "adapter" / "tercet.json").write_text(json.dumps(manifest))
    with pytest.raises(tercet.ModelError, match=r"were learnt on model [0-9a-f]+, and .* is now"):
        tercet.load(tmp_path / "adapter", device="cpu")


def test_adapters_that_do_not_fit_are_refused(tiny_folder: FolderOf, tmp_path: Path) -> None:
    _, adapters = adapted("poly", tiny_folder("bert"))
    adapters.save(tmp_path / "adapter")
    file = tmp_path / "adapter" / "adapter.safetensors"
    whole = load_file(file)
    save_file({name: weight for name, weight in whole.items() if name != "code_layer.codes"}, file)
    with pytest.raises(tercet.ModelError, match=r"lacks weights: code_layer\.codes"):
        tercet.load(tmp_path / "adapter", device="cpu")
    half = {name: weight for name, weight in whole.items() if ".layer.0." not in name or "lora_A" in name}
    save_file(half, file)
    with pytest.raises(tercet.ModelError, match="do not fit their model"):
        tercet.load(tmp_path / "adapter", device="cpu")
    save_file({**whole, "stray": torch.zeros(1)}, file)
    with pytest.raises(tercet.ModelError, match="no place for: stray"):
        tercet.load(tmp_path / "adapter", device="cpu")
    file.write_bytes(b"nothing")
    with pytest.raises(tercet.ModelError, match="cannot be read"):
        tercet.load(tmp_path / "adapter", device="cpu")


def test_a_folder_of_adapters_is_no_whole_model(tiny_folder: FolderOf, tmp_path: Path) -> None:
    _, adapters = adapted("poly", tiny_folder("bert"))
    adapters.save(tmp_path / "adapter")
    with pytest.raises(tercet.ModelError, match=r"holds adapters, not a whole model: tercet\.load reads it"):
        tercet.PolyEncoder.load(tmp_path / "adapter")
