"""Folders of poly- and cross-encoders: damaged or foreign ones are refused; what the fingerprint covers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.conftest import SENTENCES

import tercet
from tercet.errors import ModelError, OutputError

FolderOf = Callable[[str], Path]
HEADS = ("linear", "dense", "native", "compare")


@pytest.fixture
def poly(tiny_folder: FolderOf, tmp_path: Path) -> Path:
    """The folder of a poly-encoder, for a test to damage."""
    config = tercet.PolyConfig(codes=4, learn_scales=True)
    return tercet.PolyEncoder.from_backbone(tiny_folder("bert"), config=config, device="cpu").save(
        tmp_path / "poly"
    )


def make_cross(folder: Path, head: str) -> tercet.CrossEncoder:
    labels = {} if head == "compare" else {"num_labels": 2, "score_class": 1}
    config = tercet.CrossConfig(head=head, **labels)  # type: ignore[arg-type]
    return tercet.CrossEncoder.from_backbone(folder, config=config, device="cpu")


@pytest.fixture(params=HEADS)
def cross(request: pytest.FixtureRequest, tiny_folder: FolderOf, tmp_path: Path) -> Path:
    """The folder of a cross-encoder, for a test to damage."""
    return make_cross(tiny_folder("bert"), request.param).save(tmp_path / "cross")


def change(file: Path, **settings: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))


def change_config(folder: Path, **settings: object) -> None:
    change(
        folder / "tercet.json", config=json.loads((folder / "tercet.json").read_text())["config"] | settings
    )


def change_weights(file: Path, **weights: torch.Tensor | None) -> None:
    changed = load_file(file) | {name.replace("__", "."): weight for name, weight in weights.items()}
    save_file({k: v for k, v in changed.items() if v is not None}, file, metadata={"format": "pt"})


def assert_refused(folder: Path, *words: str) -> None:
    with pytest.raises(ModelError) as caught:
        tercet.load(folder, device="cpu")
    for word in words:
        assert word in str(caught.value)


def test_a_newer_version_is_refused(poly: Path, cross: Path) -> None:
    for folder in (poly, cross):
        change(folder / "tercet.json", format_version=3)
        assert_refused(folder, "format version 3", "reads version 2", "install a newer tercet")


def test_an_older_version_is_refused_with_advice_to_save_the_model_again(poly: Path, cross: Path) -> None:
    for folder in (poly, cross):
        change(folder / "tercet.json", format_version=1)
        assert_refused(folder, "format version 1", "reads version 2", "train the model again")


def test_a_newer_version_of_an_unknown_kind_is_refused_with_advice_to_upgrade(poly: Path) -> None:
    change(poly / "tercet.json", format_version=9, kind="late")
    assert_refused(poly, "install a newer tercet")


def test_an_unknown_kind_is_refused(poly: Path) -> None:
    change(poly / "tercet.json", kind="late")
    assert_refused(poly, "kind 'late'", "bi, poly, cross")


def test_a_model_of_another_kind_is_refused(
    poly: Path, cross: Path, tiny: tercet.BiEncoder, tmp_path: Path
) -> None:
    folders = {"bi": tiny.save(tmp_path / "bi"), "poly": poly, "cross": cross}
    classes = {"bi": tercet.BiEncoder, "poly": tercet.PolyEncoder, "cross": tercet.CrossEncoder}
    for kind, folder in folders.items():
        assert tercet.load(folder, device="cpu").kind == kind
        for other in classes.keys() - {kind}:
            with pytest.raises(ModelError, match=f"kind '{kind}', not '{other}'"):
                classes[other].load(folder, device="cpu")


def test_a_plain_encoder_is_refused_as_a_poly_or_cross_encoder(tiny_folder: FolderOf) -> None:
    with pytest.raises(ModelError, match="tercet new poly OUT --backbone"):
        tercet.PolyEncoder.load(tiny_folder("bert"), device="cpu")
    with pytest.raises(ModelError, match=r"contains a BertModel.*tercet new cross OUT --backbone"):
        tercet.CrossEncoder.load(tiny_folder("bert"), device="cpu")


@pytest.mark.parametrize("name", ["codes", "candidate_scale.log"])
def test_a_missing_tensor_of_the_poly_encoder_is_named(poly: Path, name: str) -> None:
    change_weights(poly / "poly.safetensors", **{name: None})
    assert_refused(poly, "lacks weights", name)


def test_an_extra_tensor_of_the_poly_encoder_is_named(poly: Path) -> None:
    change_weights(poly / "poly.safetensors", projection=torch.zeros(2))
    assert_refused(poly, "weights that this model does not", "projection")


@pytest.mark.parametrize("tower", ["context", "candidate"])
def test_the_tensors_of_both_towers_are_checked(poly: Path, tower: str) -> None:
    file = poly / tower / "model.safetensors"
    change_weights(file, extra=torch.zeros(2))
    assert_refused(poly, "weights that this model does not", "extra", tower)
    change_weights(file, extra=None, **{"encoder.layer.0.output.dense.weight": None})
    assert_refused(poly, "lacks weights", "encoder.layer.0.output.dense.weight")


def test_codes_of_another_shape_are_refused(poly: Path) -> None:
    change_weights(poly / "poly.safetensors", codes=torch.zeros(5, 16))
    assert_refused(poly, "codes", "[5, 16]", "[4, 16]")


def test_codes_that_are_nan_are_refused(poly: Path) -> None:
    change_weights(poly / "poly.safetensors", codes=torch.full((4, 16), torch.nan))
    assert_refused(poly, "NaN or infinite", "codes")


def test_towers_of_another_architecture_are_refused(poly: Path) -> None:
    change(poly / "context" / "config.json", model_type="electra", embedding_size=16)
    assert_refused(
        poly, "weights that this model does not", "pooler.dense.weight", "another architecture", "context"
    )
    change(
        poly / "context" / "config.json",
        model_type="distilbert",
        dim=16,
        n_layers=2,
        n_heads=2,
        hidden_dim=32,
    )
    assert_refused(poly, "lacks weights", "context")


def test_an_architecture_whose_weights_have_the_same_names_is_refused(poly: Path, cross: Path) -> None:
    for folder, encoder in ((poly, poly / "candidate"), (cross, cross)):
        name = json.loads((encoder / "config.json").read_text())["architectures"][0]
        change(encoder / "config.json", model_type="roberta", architectures=[name.replace("Bert", "Roberta")])
        assert_refused(folder, str(folder))


def test_a_second_tower_that_contradicts_the_settings_is_refused(poly: Path) -> None:
    change_config(poly, towers=1)
    assert_refused(poly, "1 tower", str(poly / "candidate"))


@pytest.mark.parametrize("file", ["poly.safetensors", "context/model.safetensors", "tercet.json"])
def test_an_incomplete_poly_encoder_is_refused(poly: Path, file: str) -> None:
    (poly / file).unlink()
    with pytest.raises(ModelError):
        tercet.load(poly, device="cpu")


@pytest.mark.parametrize(
    "settings",
    [
        {"codes": "many"},
        {"unknown": 1},
        {"code_kind": "middle"},
        {"code_scale": -1},
        {"symmetric": "no"},
        {"learn_scales": 1},
    ],
)
def test_an_invalid_setting_of_the_poly_encoder_is_refused(poly: Path, settings: dict[str, Any]) -> None:
    change_config(poly, **settings)
    assert_refused(poly, "missing or invalid", str(poly))


@pytest.mark.parametrize(
    "settings", [{"num_labels": 3}, {"head": "deep"}, {"unknown": 1}, {"labels": 4}, {"labels": [1, 2]}]
)
def test_an_invalid_setting_of_the_cross_encoder_is_refused(cross: Path, settings: dict[str, Any]) -> None:
    change_config(cross, **settings)
    assert_refused(cross, str(cross))


def test_a_maximum_length_that_is_not_a_whole_number_is_refused(poly: Path, cross: Path) -> None:
    change(poly / "tercet.json", tokenizer={"max_tokens": 7.5, "lowercase": False})
    assert_refused(poly, "max_tokens must be a whole number", str(poly))
    change(cross / "sentence_bert_config.json", max_seq_length=9.5)
    assert_refused(cross, "max_tokens must be a whole number", str(cross))


def test_a_head_that_contradicts_the_settings_is_refused(cross: Path) -> None:
    saved = json.loads((cross / "tercet.json").read_text())["config"]["head"]
    other = next(head for head in HEADS if head != saved)
    change_config(cross, head=other)
    assert_refused(cross, f"head is {other} in the settings", f"{saved} in its weights")


def head_file(folder: Path) -> tuple[Path, str]:
    """The file of the head's last layer, and the name of its bias."""
    if (folder / "head.safetensors").is_file():
        return folder / "head.safetensors", "linear.bias"
    modules = sorted(folder.glob("*_Dense"))
    return (
        (modules[-1] / "model.safetensors", "linear.bias")
        if modules
        else (folder / "model.safetensors", "classifier.bias")
    )


def test_a_missing_tensor_of_the_head_is_named(cross: Path) -> None:
    file, name = head_file(cross)
    change_weights(file, **{name: None})
    assert_refused(cross, "lacks weights", name)


def test_an_extra_tensor_of_the_cross_encoder_is_named(cross: Path) -> None:
    for file in {head_file(cross)[0], cross / "model.safetensors"}:
        change_weights(file, extra=torch.zeros(2))
        assert_refused(cross, "weights that this model does not", "extra")
        change_weights(file, extra=None)


def test_a_classifier_of_transformers_may_have_extra_weights(tiny_folder: FolderOf, tmp_path: Path) -> None:
    folder = make_cross(tiny_folder("bert"), "native").save(tmp_path / "cross")
    for name in ("tercet.json", "modules.json"):
        (folder / name).unlink()
    change_weights(folder / "model.safetensors", extra=torch.zeros(2))
    assert tercet.load(folder, device="cpu").kind == "cross"


def test_a_classifier_of_an_unknown_architecture_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        '{"model_type": "xlnet", "architectures": ["XLNetForSequenceClassification"]}'
    )
    (tmp_path / "model.safetensors").write_bytes(b"")
    assert_refused(tmp_path, str(tmp_path))


def test_an_activation_outside_torch_is_refused(tiny_folder: FolderOf, tmp_path: Path) -> None:
    folder = make_cross(tiny_folder("bert"), "native").save(tmp_path / "cross")
    (folder / "tercet.json").unlink()
    change(folder / "config_sentence_transformers.json", activation_fn="os.system")
    assert_refused(folder, "os.system", "Sigmoid")


def test_saving_twice_overwrites_nothing(poly: Path) -> None:
    scorer = tercet.load(poly, device="cpu")
    before = (poly / "tercet.json").read_text()
    with pytest.raises(OutputError, match="exists"):
        scorer.save(poly)
    assert (poly / "tercet.json").read_text() == before


def test_a_failed_save_leaves_no_folder(poly: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = tercet.load(poly, device="cpu")
    monkeypatch.setattr("tercet.formats.poly.write_weights", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        scorer.save(tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["poly"]


def test_the_manifest_has_the_format_version_and_the_fingerprint(poly: Path) -> None:
    manifest = json.loads((poly / "tercet.json").read_text())
    assert manifest["format_version"] == 2
    assert manifest["fingerprint"] == tercet.load(poly, device="cpu").fingerprint


def test_the_fingerprint_changes_with_every_weight(poly: Path, tiny: tercet.BiEncoder) -> None:
    for scorer in (tercet.load(poly, device="cpu"), tiny):
        for name, weight in scorer.named_parameters():
            before = scorer.fingerprint
            with torch.no_grad():
                weight.view(-1)[-1] += 1e-3
            assert scorer.fingerprint != before, name


def test_the_fingerprint_changes_with_the_settings(tiny_folder: FolderOf) -> None:
    changes: list[dict[str, Any]] = [{}, {"candidate_scale": 5.0}, {"reduction": "max"}, {"code_scale": 9.0}]
    fingerprints = {
        tercet.PolyEncoder.from_backbone(
            tiny_folder("bert"), config=tercet.PolyConfig(codes=4, **settings), device="cpu"
        ).fingerprint
        for settings in changes
    }
    assert len(fingerprints) == len(changes)


def test_the_fingerprint_changes_with_the_tokenizer(tiny_folder: FolderOf) -> None:
    fingerprints = {
        tercet.BiEncoder.from_backbone(tiny_folder("bert"), max_tokens=tokens, device="cpu").fingerprint
        for tokens in (20, 21)
    }
    assert len(fingerprints) == 2


def test_the_fingerprint_changes_with_the_settings_of_the_transformer(poly: Path) -> None:
    before = tercet.load(poly, device="cpu").fingerprint
    change(poly / "context" / "config.json", layer_norm_eps=1e-3)
    assert tercet.load(poly, device="cpu").fingerprint != before


def test_the_fingerprint_ignores_settings_without_effect(poly: Path) -> None:
    before = tercet.load(poly, device="cpu").fingerprint
    change(poly / "context" / "config.json", transformers_version="9.9", _name_or_path="elsewhere")
    assert tercet.load(poly, device="cpu").fingerprint == before


def test_the_fingerprint_changes_with_the_pooling_of_the_head(tiny_folder: FolderOf, tmp_path: Path) -> None:
    folder = make_cross(tiny_folder("bert"), "linear").save(tmp_path / "cross")
    before = tercet.load(folder, device="cpu").fingerprint
    change(folder / "1_Pooling" / "config.json", pooling_mode_cls_token=False, pooling_mode_mean_tokens=True)
    assert tercet.load(folder, device="cpu").fingerprint != before


def test_a_bf16_model_cast_to_float32_is_not_saved(poly: Path, tmp_path: Path) -> None:
    scorer = tercet.load(poly, precision="bf16", device="cpu").float()
    with pytest.raises(OutputError, match="load the model in fp32"):
        scorer.save(tmp_path / "rounded")


@pytest.mark.parametrize("head", ["dense", "native"])
def test_the_dropout_of_a_head_is_saved(head: str, tiny_folder: FolderOf, tmp_path: Path) -> None:
    config = tercet.CrossConfig(head=head, dropout=0.3)  # type: ignore[arg-type]
    scorer = tercet.CrossEncoder.from_backbone(tiny_folder("bert"), config=config, device="cpu")
    assert scorer.head.after.p == 0.3
    assert tercet.CrossEncoder.load(scorer.save(tmp_path / "cross"), device="cpu").head.after.p == 0.3


def test_the_context_tower_of_a_poly_encoder_is_a_backbone(poly: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=f"is a poly-encoder: use {poly / 'context'} as an encoder"):
        tercet.BiEncoder.from_backbone(poly, device="cpu")
    assert tercet.BiEncoder.from_backbone(poly / "context", device="cpu").score("cat", ["dog"]).shape == (1,)


def test_a_copy_of_the_packaged_model_has_the_same_fingerprint(
    minilm: tercet.BiEncoder, tmp_path: Path
) -> None:
    copy = tercet.load(minilm.save(tmp_path / "copy"), device="cpu")
    assert copy.fingerprint == minilm.fingerprint
    assert np.array_equal(copy.score(SENTENCES[0], SENTENCES), minilm.score(SENTENCES[0], SENTENCES))
