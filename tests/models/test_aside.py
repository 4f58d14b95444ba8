"""Cross-encoders that read each text as if alone, and heed the other by a factor."""

import json
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.conftest import SENTENCES
from transformers.integrations.sdpa_attention import sdpa_attention_forward

import tercet
from tercet.data.sample import pairs
from tercet.models.encoder import ASIDE
from tercet.runtime.packing import Aside, bias_of

FolderOf = Callable[[str], Path]

PAIRS = list(product(SENTENCES, SENTENCES))
ONE = SENTENCES[0], SENTENCES[1:]


def make(folder: Path | str, other_weight: float | None, **settings: object) -> tercet.CrossEncoder:
    config = tercet.CrossConfig(head="compare", other_weight=other_weight)
    return tercet.CrossEncoder.from_backbone(folder, config=config, device="cpu", **settings)


@pytest.mark.parametrize("architecture", sorted(ASIDE))
def test_without_heed_of_the_other_it_is_a_bi_encoder(tiny_folder: FolderOf, architecture: str) -> None:
    folder = tiny_folder(architecture)
    bi = tercet.BiEncoder.from_backbone(folder, device="cpu")
    cosines = np.array(bi.score_pairs(*zip(*PAIRS, strict=True)))
    scores = make(folder, 0).score_pairs(*zip(*PAIRS, strict=True))
    np.testing.assert_allclose(scores, 10 * cosines - 5, atol=2e-4)


def test_the_packaged_encoder_begins_with_what_it_knows() -> None:
    given = [(pair.context, pair.candidate) for pair in pairs("en")]
    cosines = np.array(tercet.load("bi", device="cpu").score_pairs(*zip(*given, strict=True)))
    aside, joint = (make("bi", weight).score_pairs(*zip(*given, strict=True)) for weight in (0.05, None))
    assert np.corrcoef(aside, cosines)[0, 1] > 0.95 > np.corrcoef(joint, cosines)[0, 1]


@pytest.mark.parametrize("architecture", sorted(ASIDE))
def test_padding_does_not_change_scores(tiny_folder: FolderOf, architecture: str) -> None:
    scorer = make(tiny_folder(architecture), 0.2)
    packed = scorer.score_many(SENTENCES, SENTENCES)
    scorer.encoder.packable = False
    np.testing.assert_allclose(scorer.score_many(SENTENCES, SENTENCES), packed, atol=2e-4)


def test_a_long_pair_is_read_as_a_short_one(tiny_folder: FolderOf, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = make(tiny_folder("bert"), 0.2)
    plain = scorer.score_many(SENTENCES, SENTENCES)
    monkeypatch.setattr("tercet.runtime.packing.PLAIN_UP_TO", 0)  # torch's fused kernel for all
    np.testing.assert_allclose(scorer.score_many(SENTENCES, SENTENCES), plain, atol=2e-4)


def test_the_more_it_heeds_the_other_the_farther_it_is_from_a_bi_encoder(tiny_folder: FolderOf) -> None:
    folder = tiny_folder("bert")
    alone, little, much = (make(folder, weight).score_many(SENTENCES, SENTENCES) for weight in (0, 0.05, 0.5))
    assert 1e-4 < np.abs(little - alone).mean() < np.abs(much - alone).mean()


def test_before_training_either_way_round_is_the_same(tiny_folder: FolderOf) -> None:
    scores = make(tiny_folder("bert"), 0.2).score_many(SENTENCES, SENTENCES)
    np.testing.assert_allclose(scores, scores.T, atol=2e-4)


def test_each_text_is_written_as_if_alone(tiny_folder: FolderOf) -> None:
    scorer = make(tiny_folder("bert"), 0.1)
    pair = scorer.pair_tokenizer.pair(*scorer.pair_tokenizer.ids(["a dog", "the old cat"]))
    bi = tercet.BiEncoder.from_backbone(tiny_folder("bert"), device="cpu")
    alone = [bi.token_ids([text], "context")[0] for text in ("a dog", "the old cat")]
    assert [pair.ids[: pair.candidate_start], pair.ids[pair.candidate_start :]] == alone


def test_it_is_kept(tiny_folder: FolderOf, tmp_path: Path) -> None:
    scorer = make(tiny_folder("bert"), 0.1)
    again = tercet.load(scorer.save(tmp_path / "aside"), device="cpu")
    assert again.describe()["other weight"] == 0.1
    assert again.fingerprint == scorer.fingerprint != make(tiny_folder("bert"), 0.2).fingerprint
    np.testing.assert_array_equal(again.score(*ONE), scorer.score(*ONE))


def test_attention_to_the_other_text_is_multiplied_by_the_weight() -> None:
    shares = bias_of(Aside([1], 0.5), 3)[0, 0].softmax(dim=-1)
    by_hand = [[1 / 2, 1 / 4, 1 / 4], [0.5 / 2.5, 1 / 2.5, 1 / 2.5], [0.5 / 2.5, 1 / 2.5, 1 / 2.5]]
    torch.testing.assert_close(shares, torch.tensor(by_hand))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"head": "compare", "other_weight": -0.1}, "other_weight must be 0 or a number from"),
        ({"head": "compare", "other_weight": float("nan")}, "other_weight must be 0 or a number from"),
        ({"head": "compare", "other_weight": False}, "other_weight must be 0 or a number from"),
        (
            {"head": "linear", "other_weight": 0.1},
            "other_weight needs a comparing head, not linear: set head to compare",
        ),
    ],
)
def test_a_weight_that_cannot_be_is_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(tercet.InputError, match=message):
        tercet.CrossConfig(**settings)


@pytest.mark.parametrize("architecture", ["modernbert", "mpnet"])
def test_an_architecture_that_cannot_be_read_so_is_refused(tiny_folder: FolderOf, architecture: str) -> None:
    with pytest.raises(tercet.InputError, match=f"other_weight needs .*, this is {architecture}"):
        make(tiny_folder(architecture), 0.1)


def test_a_tokenizer_without_special_tokens_is_refused(tiny_folder: FolderOf, tmp_path: Path) -> None:
    folder = tmp_path / "bare"
    shutil.copytree(tiny_folder("bert"), folder)
    settings = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps(settings | {"post_processor": None}))
    with pytest.raises(tercet.ModelError, match="no special tokens around a text"):
        make(folder, 0.1)


def test_a_model_that_does_not_use_it_keeps_its_name(tiny_folder: FolderOf) -> None:
    config = make(tiny_folder("bert"), None).facts["config"]
    assert "other_weight" not in config


def test_half_precision_reads_padded_pairs_too(tiny_folder: FolderOf) -> None:
    exact, half = (make(tiny_folder("bert"), 0.2, precision=each) for each in ("fp32", "bf16"))
    half.encoder.packable = False
    ours = half.score_many(SENTENCES, SENTENCES)
    np.testing.assert_allclose(ours, exact.score_many(SENTENCES, SENTENCES), atol=0.3)


def test_attention_gets_a_bias_of_its_own_precision(
    tiny_folder: FolderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = set()

    def attend(module: object, query: torch.Tensor, *others: torch.Tensor, **options: object) -> object:
        seen.add((query.dtype, others[2].dtype))
        return sdpa_attention_forward(module, query, *others, **options)

    monkeypatch.setattr("tercet.runtime.packing.sdpa_attention_forward", attend)
    scorer = make(tiny_folder("bert"), 0.2, precision="bf16")
    scorer.encoder.packable = False
    scorer.score(*ONE)
    assert seen == {(torch.bfloat16, torch.bfloat16)}
