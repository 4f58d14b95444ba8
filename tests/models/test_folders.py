"""Model folders that are missing, half written, foreign or unsafe."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.conftest import SENTENCES

import tercet

FolderOf = Callable[[str], Path]


@pytest.fixture
def saved(tiny: tercet.BiEncoder, tmp_path: Path) -> Path:
    """A bi-encoder's folder, to be broken."""
    return tiny.save(tmp_path / "saved")


@pytest.fixture
def bare(tiny_folder: FolderOf, tmp_path: Path) -> Path:
    """A bare encoder's folder, to be broken."""
    return Path(shutil.copytree(tiny_folder("bert"), tmp_path / "bare"))


def change(file: Path, **settings: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))


def change_weights(file: Path, **weights: torch.Tensor | None) -> None:
    changed = load_file(file) | weights
    save_file({k: v for k, v in changed.items() if v is not None}, file, metadata={"format": "pt"})


def assert_refused(folder: Path, *words: str) -> None:
    with pytest.raises(tercet.ModelError) as caught:
        tercet.load(folder, device="cpu")
    for word in words:
        assert word in str(caught.value)


def test_a_bare_encoder_loads_with_mean_and_cosine(bare: Path) -> None:
    scorer = tercet.load(bare, device="cpu")
    assert scorer.context_tower.pooling.kinds == ("mean",)
    assert scorer.config.similarity == "cosine"


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    assert_refused(tmp_path, "has no config.json", "half written")


def test_a_folder_without_weights_is_refused(bare: Path) -> None:
    (bare / "model.safetensors").unlink()
    assert_refused(bare, "has no *.safetensors")


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.ckpt"])
def test_pickled_weights_are_refused_with_the_reason(bare: Path, name: str) -> None:
    (bare / "model.safetensors").unlink()
    torch.save({}, bare / name)
    assert_refused(bare, name, "can run code", "safetensors")


def test_a_stray_safetensors_file_lets_no_pickle_in(bare: Path) -> None:
    (bare / "model.safetensors").rename(bare / "stray.safetensors")
    torch.save(load_file(bare / "stray.safetensors"), bare / "pytorch_model.bin")
    assert_refused(bare, "cannot be read", "model.safetensors")


def test_safetensors_are_read_beside_pickled_weights(bare: Path) -> None:
    (bare / "pytorch_model.bin").write_bytes(b"this must not be opened")
    assert tercet.load(bare, device="cpu").score("cat", ["dog"]).shape == (1,)


def test_remote_code_is_refused_with_the_reason(bare: Path) -> None:
    (bare / "modeling_evil.py").write_text("raise SystemExit('code was run')")
    change(bare / "config.json", model_type="evil", auto_map={"AutoModel": "modeling_evil.Evil"})
    assert_refused(bare, "needs Python code of its own", "does not run", "'evil'")


def test_remote_code_of_a_known_architecture_is_ignored(bare: Path) -> None:
    (bare / "modeling_evil.py").write_text("raise SystemExit('code was run')")
    change(bare / "config.json", auto_map={"AutoModel": "modeling_evil.Evil"})
    assert tercet.load(bare, device="cpu").score("cat", ["dog"]).shape == (1,)


def test_a_module_of_foreign_code_is_refused(saved: Path) -> None:
    modules = json.loads((saved / "modules.json").read_text())
    modules[1]["type"] = "os.system"
    (saved / "modules.json").write_text(json.dumps(modules))
    assert_refused(saved, "os.system", "does not run")


def test_a_module_that_tercet_lacks_is_named(saved: Path) -> None:
    modules = json.loads((saved / "modules.json").read_text())
    modules[1]["type"] = "sentence_transformers.models.LSTM"
    (saved / "modules.json").write_text(json.dumps(modules))
    assert_refused(saved, "is a LSTM", "Pooling")


@pytest.mark.parametrize("path", ["../saved/1_Pooling", "/tmp/1_Pooling"])
def test_a_module_outside_the_folder_is_refused(saved: Path, path: str) -> None:
    modules = json.loads((saved / "modules.json").read_text())
    modules[1]["path"] = path
    (saved / "modules.json").write_text(json.dumps(modules))
    assert_refused(saved, "outside itself", path)


@pytest.mark.parametrize(
    ("file", "settings"),
    [
        ("sentence_bert_config.json", {"max_seq_length": "128"}),
        ("sentence_bert_config.json", {"max_seq_length": -1}),
        ("tercet.json", {"format_version": "one"}),
        ("tercet.json", {"turn_separator": 3}),
        ("config_sentence_transformers.json", {"prompts": ["a"]}),
        ("config_sentence_transformers.json", {"prompts": {"query": 5}}),
        ("config_sentence_transformers.json", {"similarity_fn_name": ["x"]}),
        ("config_sentence_transformers.json", {"truncate_dim": -5}),
        ("1_Pooling/config.json", {"pooling_mode": 5}),
    ],
)
def test_a_setting_of_the_wrong_kind_is_refused(saved: Path, file: str, settings: dict[str, object]) -> None:
    change(saved / file, **settings)
    assert_refused(saved, "wrong kind", str(saved))


@pytest.mark.parametrize(
    "content", ["[1, 2]", '[{"type": "sentence_transformers.models.Transformer"}]', "[]"]
)
def test_a_list_of_modules_that_is_none_is_refused(saved: Path, content: str) -> None:
    (saved / "modules.json").write_text(content)
    assert_refused(saved, str(saved))


def test_towers_that_cut_text_differently_are_refused(tiny_folder: FolderOf, tmp_path: Path) -> None:
    config = tercet.BiConfig(towers=2)
    folder = tercet.BiEncoder.from_backbone(tiny_folder("bert"), config=config).save(tmp_path / "two")
    change(folder / "document_0_Transformer" / "sentence_bert_config.json", max_seq_length=8)
    assert_refused(folder, "cut text into tokens differently")


def test_weights_with_nan_are_named(bare: Path) -> None:
    name = "encoder.layer.1.output.dense.bias"
    change_weights(bare / "model.safetensors", **{name: torch.full((16,), float("nan"))})
    assert_refused(bare, "NaN or infinite", name)


def test_missing_weights_are_named(bare: Path) -> None:
    change_weights(bare / "model.safetensors", **{"encoder.layer.1.output.dense.bias": None})
    assert_refused(bare, "lacks weights", "encoder.layer.1.output.dense.bias")


def test_a_model_without_a_pooler_loads_and_saves(bare: Path, tmp_path: Path) -> None:
    change_weights(bare / "model.safetensors", **{"pooler.dense.weight": None, "pooler.dense.bias": None})
    scorer = tercet.load(bare, device="cpu")
    again = tercet.load(scorer.save(tmp_path / "again"), device="cpu")
    assert not any("pooler" in name for name, _ in again.named_parameters())
    np.testing.assert_array_equal(again.encode_candidates(SENTENCES), scorer.encode_candidates(SENTENCES))


def test_truncated_weights_are_refused(bare: Path) -> None:
    weights = bare / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    assert_refused(bare, "cannot be read")


def test_weights_of_another_size_are_refused(bare: Path) -> None:
    change_weights(bare / "model.safetensors", **{"encoder.layer.0.output.dense.bias": torch.zeros(17)})
    assert_refused(bare, "cannot be read")


@pytest.mark.parametrize("file", ["config.json", "modules.json", "1_Pooling/config.json", "tercet.json"])
def test_broken_json_is_named(saved: Path, file: str) -> None:
    (saved / file).write_text('{"half')
    assert_refused(saved, Path(file).name, "is not JSON")


@pytest.mark.parametrize("file", ["1_Pooling/config.json", "config.json"])
def test_a_missing_file_is_named(saved: Path, file: str) -> None:
    (saved / file).unlink()
    assert_refused(saved, Path(file).name)


def test_a_missing_tokenizer_is_refused(bare: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (bare / name).unlink()
    assert_refused(bare, "has no tokenizer")


def test_a_tokenizer_of_another_model_is_refused(bare: Path) -> None:
    tokenizer = json.loads((bare / "tokenizer.json").read_text())
    known = len(tokenizer["model"]["vocab"])
    tokenizer["model"]["vocab"] |= {f"word{number}": known + number for number in range(30)}
    (bare / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert_refused(bare, f"has {known + 30} tokens", f"knows {known}", "do not belong together")


def test_a_newer_format_is_refused(saved: Path) -> None:
    change(saved / "tercet.json", format_version=99)
    assert_refused(saved, "format version 99", "install a newer tercet")


def test_another_similarity_is_refused(saved: Path) -> None:
    change(saved / "config_sentence_transformers.json", similarity_fn_name="manhattan")
    assert_refused(saved, "'manhattan'", "cosine and dot")


def test_a_file_is_no_model(bare: Path) -> None:
    assert_refused(bare / "config.json", "is a file")


def test_saving_over_something_is_refused(tiny: tercet.BiEncoder, saved: Path) -> None:
    before = sorted(saved.iterdir())
    with pytest.raises(tercet.OutputError, match="is a folder that exists"):
        tiny.save(saved)
    assert sorted(saved.iterdir()) == before


def test_a_turn_separator_survives_the_folder(tiny_folder: FolderOf, tmp_path: Path) -> None:
    config = tercet.BiConfig(turn_separator=" or ")
    scorer = tercet.BiEncoder.from_backbone(tiny_folder("bert"), config=config, device="cpu")
    assert tercet.load(scorer.save(tmp_path / "model")).config == config
