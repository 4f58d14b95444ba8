"""Folders of bi-encoders: incomplete, damaged, foreign and unsafe ones are refused."""

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
from tercet.errors import ModelError, OutputError

FolderOf = Callable[[str], Path]


@pytest.fixture
def saved(tiny: tercet.BiEncoder, tmp_path: Path) -> Path:
    """The folder of a bi-encoder, for a test to damage."""
    return tiny.save(tmp_path / "saved")


@pytest.fixture
def plain(tiny_folder: FolderOf, tmp_path: Path) -> Path:
    """The folder of a plain encoder, for a test to damage."""
    return Path(shutil.copytree(tiny_folder("bert"), tmp_path / "plain"))


def change(file: Path, **settings: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))


def change_weights(file: Path, **weights: torch.Tensor | None) -> None:
    changed = load_file(file) | weights
    save_file({k: v for k, v in changed.items() if v is not None}, file, metadata={"format": "pt"})


def assert_refused(folder: Path, *words: str) -> None:
    with pytest.raises(ModelError) as caught:
        tercet.load(folder, device="cpu")
    for word in words:
        assert word in str(caught.value)


def test_a_plain_encoder_loads_as_a_bi_encoder_with_mean_and_cosine(plain: Path) -> None:
    scorer = tercet.load(plain, device="cpu")
    assert scorer.context_tower.pooling.kinds == ("mean",)
    assert scorer.config.similarity == "cosine"


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    assert_refused(tmp_path, "has no config.json", "incomplete")


def test_a_folder_without_weights_is_refused(plain: Path) -> None:
    (plain / "model.safetensors").unlink()
    assert_refused(plain, "has no *.safetensors")


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.ckpt"])
def test_pickled_weights_are_refused_because_they_can_run_code(plain: Path, name: str) -> None:
    (plain / "model.safetensors").unlink()
    torch.save({}, plain / name)
    assert_refused(plain, name, "can run code", "safetensors")


def test_pickled_weights_are_refused_beside_an_unrelated_safetensors_file(plain: Path) -> None:
    (plain / "model.safetensors").rename(plain / "stray.safetensors")
    torch.save(load_file(plain / "stray.safetensors"), plain / "pytorch_model.bin")
    assert_refused(plain, "cannot read the model", "model.safetensors")


def test_safetensors_are_preferred_to_pickled_weights(plain: Path) -> None:
    (plain / "pytorch_model.bin").write_bytes(b"must not be opened")
    assert tercet.load(plain, device="cpu").score("cat", ["dog"]).shape == (1,)


def test_custom_code_of_an_unknown_architecture_is_refused(plain: Path) -> None:
    (plain / "modeling_evil.py").write_text("raise SystemExit('code was run')")
    change(plain / "config.json", model_type="evil", auto_map={"AutoModel": "modeling_evil.Evil"})
    assert_refused(plain, "needs its own Python code", "does not run", "'evil'")


def test_custom_code_of_a_known_architecture_is_not_run(plain: Path) -> None:
    (plain / "modeling_evil.py").write_text("raise SystemExit('code was run')")
    change(plain / "config.json", auto_map={"AutoModel": "modeling_evil.Evil"})
    assert tercet.load(plain, device="cpu").score("cat", ["dog"]).shape == (1,)


def test_a_module_outside_sentence_transformers_is_refused(saved: Path) -> None:
    modules = json.loads((saved / "modules.json").read_text())
    modules[1]["type"] = "os.system"
    (saved / "modules.json").write_text(json.dumps(modules))
    assert_refused(saved, "os.system", "does not run")


def test_an_unsupported_module_is_named(saved: Path) -> None:
    modules = json.loads((saved / "modules.json").read_text())
    modules[1]["type"] = "sentence_transformers.models.LSTM"
    (saved / "modules.json").write_text(json.dumps(modules))
    assert_refused(saved, "is a LSTM", "Pooling")


@pytest.mark.parametrize("path", ["../saved/1_Pooling", "/tmp/1_Pooling"])
def test_a_module_outside_the_folder_is_refused(saved: Path, path: str) -> None:
    modules = json.loads((saved / "modules.json").read_text())
    modules[1]["path"] = path
    (saved / "modules.json").write_text(json.dumps(modules))
    assert_refused(saved, "outside the folder", path)


@pytest.mark.parametrize(
    ("file", "settings"),
    [
        ("sentence_bert_config.json", {"max_seq_length": "128"}),
        ("sentence_bert_config.json", {"max_seq_length": -1}),
        ("tercet.json", {"turn_separator": 3}),
        ("config_sentence_transformers.json", {"prompts": ["a"]}),
        ("config_sentence_transformers.json", {"prompts": {"query": 5}}),
        ("config_sentence_transformers.json", {"similarity_fn_name": ["x"]}),
        ("config_sentence_transformers.json", {"truncate_dim": -5}),
        ("1_Pooling/config.json", {"pooling_mode": 5}),
    ],
)
def test_an_invalid_setting_is_refused(saved: Path, file: str, settings: dict[str, object]) -> None:
    change(saved / file, **settings)
    assert_refused(saved, "is missing or invalid", str(saved))


@pytest.mark.parametrize("version", ["one", None, True, 0, 1.5])
def test_an_invalid_format_version_is_refused(saved: Path, version: object) -> None:
    change(saved / "tercet.json", format_version=version)
    assert_refused(saved, "has no valid format_version", str(saved))


@pytest.mark.parametrize(
    "content", ["[1, 2]", '[{"type": "sentence_transformers.models.Transformer"}]', "[]"]
)
def test_an_invalid_list_of_modules_is_refused(saved: Path, content: str) -> None:
    (saved / "modules.json").write_text(content)
    assert_refused(saved, str(saved))


def test_towers_with_different_tokenizers_are_refused(tiny_folder: FolderOf, tmp_path: Path) -> None:
    config = tercet.BiConfig(towers=2)
    folder = tercet.BiEncoder.from_backbone(tiny_folder("bert"), config=config).save(tmp_path / "two")
    change(folder / "document_0_Transformer" / "sentence_bert_config.json", max_seq_length=8)
    assert_refused(folder, "have different tokenizers")


def test_weights_with_nan_are_named(plain: Path) -> None:
    name = "encoder.layer.1.output.dense.bias"
    change_weights(plain / "model.safetensors", **{name: torch.full((16,), float("nan"))})
    assert_refused(plain, "NaN or infinite", name)


def test_missing_weights_are_named(plain: Path) -> None:
    change_weights(plain / "model.safetensors", **{"encoder.layer.1.output.dense.bias": None})
    assert_refused(plain, "lacks weights", "encoder.layer.1.output.dense.bias")


def test_a_model_without_a_pooler_loads_and_saves(plain: Path, tmp_path: Path) -> None:
    change_weights(plain / "model.safetensors", **{"pooler.dense.weight": None, "pooler.dense.bias": None})
    scorer = tercet.load(plain, device="cpu")
    loaded = tercet.load(scorer.save(tmp_path / "saved"), device="cpu")
    assert not any("pooler" in name for name, _ in loaded.named_parameters())
    np.testing.assert_array_equal(loaded.encode_candidates(SENTENCES), scorer.encode_candidates(SENTENCES))


def test_truncated_weights_are_refused(plain: Path) -> None:
    weights = plain / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    assert_refused(plain, "cannot read the model")


def test_weights_of_another_size_are_refused(plain: Path) -> None:
    change_weights(plain / "model.safetensors", **{"encoder.layer.0.output.dense.bias": torch.zeros(17)})
    assert_refused(plain, "encoder.layer.0.output.dense.bias has the shape [17] instead of [16]")


@pytest.mark.parametrize("file", ["config.json", "modules.json", "1_Pooling/config.json", "tercet.json"])
def test_a_file_with_invalid_json_is_named(saved: Path, file: str) -> None:
    (saved / file).write_text('{"half')
    assert_refused(saved, Path(file).name, "is not valid JSON")


@pytest.mark.parametrize("file", ["1_Pooling/config.json", "config.json"])
def test_a_missing_file_is_named(saved: Path, file: str) -> None:
    (saved / file).unlink()
    assert_refused(saved, Path(file).name)


def test_a_missing_tokenizer_is_refused(plain: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (plain / name).unlink()
    assert_refused(plain, "has no tokenizer")


def test_a_tokenizer_of_another_model_is_refused(plain: Path) -> None:
    tokenizer = json.loads((plain / "tokenizer.json").read_text())
    known = len(tokenizer["model"]["vocab"])
    tokenizer["model"]["vocab"] |= {f"word{number}": known + number for number in range(30)}
    (plain / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert_refused(plain, f"has {known + 30} tokens", f"its model has {known}", "do not belong together")


def test_a_newer_format_version_is_refused(saved: Path) -> None:
    change(saved / "tercet.json", format_version=99)
    assert_refused(saved, "format version 99", "install a newer tercet")


def test_an_old_format_version_is_refused_with_advice_to_save_the_model_again(saved: Path) -> None:
    change(saved / "tercet.json", format_version=1)
    assert_refused(saved, "format version 1", "reads version 2", "train the model again")


def test_an_unsupported_similarity_is_refused(saved: Path) -> None:
    change(saved / "config_sentence_transformers.json", similarity_fn_name="manhattan")
    assert_refused(saved, "'manhattan'", "cosine and dot")


def test_a_file_is_refused_as_a_model(plain: Path) -> None:
    assert_refused(plain / "config.json", "is a file")


def test_saving_to_an_existing_folder_is_refused(tiny: tercet.BiEncoder, saved: Path) -> None:
    before = sorted(saved.iterdir())
    with pytest.raises(OutputError, match=r"the folder .* exists"):
        tiny.save(saved)
    assert sorted(saved.iterdir()) == before


def test_the_turn_separator_is_saved(tiny_folder: FolderOf, tmp_path: Path) -> None:
    config = tercet.BiConfig(turn_separator=" or ")
    scorer = tercet.BiEncoder.from_backbone(tiny_folder("bert"), config=config, device="cpu")
    assert tercet.load(scorer.save(tmp_path / "model")).config == config
