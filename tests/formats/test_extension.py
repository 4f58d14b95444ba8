"""Bi-encoders saved as what their encoder adds to that of another model."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.conftest import make_folder
from torch import nn

import tercet
from tercet.errors import InputError, ModelError
from tercet.formats.extended import save_extension

NEW = ["zyzzyva", "quokka"]
TEXTS = ["where is the station?", "zyzzyva", "a quokka, please", "a cup of tea"]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backbone whose matrices can be quantized: the rows are whole groups."""
    return make_folder(tmp_path_factory.mktemp("wide") / "model", width=64)


def extended(base: Path, *, change: float = 0.02) -> tercet.BiEncoder:
    """The base model with two more words, and small random changes of the other weights."""
    scorer = tercet.BiEncoder.from_backbone(base, device="cpu")
    encoder = scorer.context_tower.encoder
    scorer.tokenizer.pretrained.add_tokens(NEW)
    generator = torch.Generator().manual_seed(0)
    words = encoder.transformer.get_input_embeddings().weight.detach()
    rows = torch.randn(len(NEW), words.shape[1], generator=generator)
    table = nn.Embedding.from_pretrained(torch.cat([words, rows]), freeze=False, padding_idx=1)
    encoder.transformer.set_input_embeddings(table)
    encoder.transformer.config.vocab_size = len(table.weight)
    with torch.no_grad():
        for name, weight in scorer.named_parameters():
            if "word_embeddings" not in name:
                weight.add_(torch.randn(weight.shape, generator=generator) * change)
    return scorer


def directions(folder: Path, texts: list[str]) -> np.ndarray:
    """Unit vectors of texts."""
    vectors = tercet.load(folder, device="cpu").encode(texts)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def saved(base: Path, tmp_path: Path) -> Path:
    return save_extension(extended(base), base, tmp_path / "extension")


def test_a_loaded_extension_has_nearly_the_vectors_of_the_model(base: Path, saved: Path) -> None:
    model = extended(base)
    model.save(saved.parent / "whole")
    cosines = (directions(saved, TEXTS) * directions(saved.parent / "whole", TEXTS)).sum(axis=1)
    assert cosines.min() > 0.995


def test_a_token_that_the_base_does_not_know_has_a_vector_of_its_own(base: Path, saved: Path) -> None:
    plain, more = (directions(each, NEW) for each in (base, saved))
    assert plain[0] @ plain[1] == pytest.approx(1)
    assert more[0] @ more[1] < 0.99


def test_other_scorers_can_be_built_on_an_extension(saved: Path) -> None:
    config = tercet.PolyConfig(codes=4, similarity="cosine")
    poly = tercet.PolyEncoder.from_backbone(saved, config=config, device="cpu")
    np.testing.assert_allclose(poly.encode_candidates(TEXTS), directions(saved, TEXTS), atol=1e-5)


def test_the_manifest_of_an_extension_has_the_fingerprint_of_the_loaded_model(saved: Path) -> None:
    manifest = json.loads((saved / "tercet.json").read_text())
    assert tercet.load(saved, device="cpu").fingerprint == manifest["fingerprint"]


def test_an_extension_contains_no_weights_of_its_base(base: Path, saved: Path) -> None:
    assert not (saved / "config.json").exists()
    assert not (saved / "model.safetensors").exists()
    assert len(load_file(saved / "extension.safetensors")["words.levels"]) == len(NEW)


def test_a_whole_folder_of_a_loaded_extension_scores_alike(saved: Path, tmp_path: Path) -> None:
    loaded = tercet.load(saved, device="cpu")
    loaded.save(tmp_path / "whole")
    whole = tercet.load(tmp_path / "whole", device="cpu")
    np.testing.assert_array_equal(whole.encode(TEXTS), loaded.encode(TEXTS))


def test_changed_word_vectors_of_the_base_are_refused(base: Path, tmp_path: Path) -> None:
    model = extended(base)
    with torch.no_grad():
        model.context_tower.encoder.transformer.get_input_embeddings().weight[3] += 1
    with pytest.raises(InputError, match="keeps the word vectors of its base"):
        save_extension(model, base, tmp_path / "extension")


def test_two_towers_are_refused(base: Path, tmp_path: Path) -> None:
    two = tercet.BiEncoder.from_backbone(base, config=tercet.BiConfig(towers=2), device="cpu")
    with pytest.raises(InputError, match="has one tower, and this bi-encoder has two"):
        save_extension(two, base, tmp_path / "extension")


def test_an_extension_of_an_extension_is_refused(saved: Path) -> None:
    manifest = json.loads((saved / "tercet.json").read_text())
    (saved / "tercet.json").write_text(json.dumps(manifest | {"extends": str(saved)}))
    with pytest.raises(ModelError, match="is an extension itself: name its base instead"):
        tercet.load(saved, device="cpu")


def test_a_missing_base_is_named(saved: Path) -> None:
    manifest = json.loads((saved / "tercet.json").read_text())
    (saved / "tercet.json").write_text(json.dumps(manifest | {"extends": "./gone"}))
    with pytest.raises(ModelError, match=r"made with the model ./gone, which is not on this machine"):
        tercet.load(saved, device="cpu")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"words.levels": torch.zeros(2, 8, dtype=torch.int8)}, "does not fit its base model"),
        ({"words.scales": torch.full((2, 1), torch.nan, dtype=torch.float16)}, "NaN or infinite"),
        ({"encoder.layer.9.output.dense.bias.added": torch.zeros(64)}, "does not fit its base model"),
        ({"embeddings.LayerNorm.bias.added": torch.zeros(3)}, "does not fit its base model"),
    ],
)
def test_an_extension_that_does_not_fit_is_refused(
    changes: dict[str, torch.Tensor], message: str, saved: Path
) -> None:
    file = saved / "extension.safetensors"
    save_file(load_file(file) | changes, file)
    with pytest.raises(ModelError, match=message):
        tercet.load(saved, device="cpu")


def test_an_extension_without_words_is_refused(saved: Path) -> None:
    file = saved / "extension.safetensors"
    save_file({name: each for name, each in load_file(file).items() if name != "words.levels"}, file)
    with pytest.raises(ModelError, match="does not fit its base model"):
        tercet.load(saved, device="cpu")
