"""Cross-encoders with ``cross_text_weight``: separate texts with reduced attention between them."""

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
from tercet.encoders.encoder import SEPARABLE
from tercet.encoders.packing import SeparateTexts, attention_bias
from tercet.errors import InputError, ModelError

FolderOf = Callable[[str], Path]

PAIRS = list(product(SENTENCES, SENTENCES))
ONE = SENTENCES[0], SENTENCES[1:]


def make(folder: Path | str, weight: float | None, **options: object) -> tercet.CrossEncoder:
    config = tercet.CrossConfig(head="compare", cross_text_weight=weight)
    return tercet.CrossEncoder.from_backbone(folder, config=config, device="cpu", **options)


@pytest.mark.parametrize("architecture", sorted(SEPARABLE))
def test_a_weight_of_zero_is_equivalent_to_the_bi_encoder(tiny_folder: FolderOf, architecture: str) -> None:
    folder = tiny_folder(architecture)
    bi = tercet.BiEncoder.from_backbone(folder, device="cpu")
    cosines = np.array(bi.score_pairs(*zip(*PAIRS, strict=True)))
    scores = make(folder, 0).score_pairs(*zip(*PAIRS, strict=True))
    np.testing.assert_allclose(scores, 10 * cosines - 5, atol=2e-4)


def test_untrained_scores_over_minilm_correlate_with_its_cosines() -> None:
    texts = [(pair.context, pair.candidate) for pair in pairs("en")]
    cosines = np.array(tercet.load("bi", device="cpu").score_pairs(*zip(*texts, strict=True)))
    separate, joint = (make("bi", weight).score_pairs(*zip(*texts, strict=True)) for weight in (0.05, None))
    assert np.corrcoef(separate, cosines)[0, 1] > 0.95 > np.corrcoef(joint, cosines)[0, 1]


@pytest.mark.parametrize("architecture", sorted(SEPARABLE))
def test_padding_does_not_change_scores(tiny_folder: FolderOf, architecture: str) -> None:
    scorer = make(tiny_folder(architecture), 0.2)
    packed = scorer.score_many(SENTENCES, SENTENCES)
    scorer.encoder.packable = False
    np.testing.assert_allclose(scorer.score_many(SENTENCES, SENTENCES), packed, atol=2e-4)


def test_the_fused_kernel_for_long_pairs_equals_the_plain_one(
    tiny_folder: FolderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = make(tiny_folder("bert"), 0.2)
    plain = scorer.score_many(SENTENCES, SENTENCES)
    monkeypatch.setattr("tercet.encoders.packing.PLAIN_UP_TO", 0)  # torch's fused kernel for every length
    np.testing.assert_allclose(scorer.score_many(SENTENCES, SENTENCES), plain, atol=2e-4)


def test_scores_move_away_from_the_bi_encoder_as_the_weight_grows(tiny_folder: FolderOf) -> None:
    folder = tiny_folder("bert")
    alone, little, much = (make(folder, weight).score_many(SENTENCES, SENTENCES) for weight in (0, 0.05, 0.5))
    assert 1e-4 < np.abs(little - alone).mean() < np.abs(much - alone).mean()


def test_untrained_scores_are_symmetric(tiny_folder: FolderOf) -> None:
    scores = make(tiny_folder("bert"), 0.2).score_many(SENTENCES, SENTENCES)
    np.testing.assert_allclose(scores, scores.T, atol=2e-4)


def test_each_text_has_its_own_special_tokens(tiny_folder: FolderOf) -> None:
    scorer = make(tiny_folder("bert"), 0.1)
    pair = scorer.pair_tokenizer.pair(*scorer.pair_tokenizer.ids(["a dog", "the old cat"]))
    bi = tercet.BiEncoder.from_backbone(tiny_folder("bert"), device="cpu")
    alone = [bi.token_ids([text], "context")[0] for text in ("a dog", "the old cat")]
    assert [pair.ids[: pair.candidate_start], pair.ids[pair.candidate_start :]] == alone


def test_the_weight_is_saved_and_part_of_the_fingerprint(tiny_folder: FolderOf, tmp_path: Path) -> None:
    scorer = make(tiny_folder("bert"), 0.1)
    loaded = tercet.load(scorer.save(tmp_path / "separate"), device="cpu")
    assert loaded.describe()["cross-text weight"] == 0.1
    assert loaded.fingerprint == scorer.fingerprint != make(tiny_folder("bert"), 0.2).fingerprint
    np.testing.assert_array_equal(loaded.score(*ONE), scorer.score(*ONE))


def test_attention_to_the_other_text_is_multiplied_by_the_weight() -> None:
    weights = attention_bias(SeparateTexts([1], 0.5), 3)[0, 0].softmax(dim=-1)
    by_hand = [[1 / 2, 1 / 4, 1 / 4], [0.5 / 2.5, 1 / 2.5, 1 / 2.5], [0.5 / 2.5, 1 / 2.5, 1 / 2.5]]
    torch.testing.assert_close(weights, torch.tensor(by_hand))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"head": "compare", "cross_text_weight": -0.1}, "cross_text_weight must be 0 or a number from"),
        (
            {"head": "compare", "cross_text_weight": float("nan")},
            "cross_text_weight must be 0 or a number from",
        ),
        ({"head": "compare", "cross_text_weight": False}, "cross_text_weight must be 0 or a number from"),
        (
            {"head": "linear", "cross_text_weight": 0.1},
            'cross_text_weight needs head = "compare", got .linear.',
        ),
    ],
)
def test_an_invalid_weight_is_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        tercet.CrossConfig(**settings)


@pytest.mark.parametrize("architecture", ["modernbert", "mpnet"])
def test_an_architecture_that_cannot_separate_texts_is_refused(
    tiny_folder: FolderOf, architecture: str
) -> None:
    with pytest.raises(
        InputError, match=f"cross_text_weight needs an encoder of .*, and this is {architecture}"
    ):
        make(tiny_folder(architecture), 0.1)


def test_a_tokenizer_without_special_tokens_is_refused(tiny_folder: FolderOf, tmp_path: Path) -> None:
    folder = tmp_path / "bare"
    shutil.copytree(tiny_folder("bert"), folder)
    settings = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps(settings | {"post_processor": None}))
    with pytest.raises(ModelError, match="adds no special tokens to a text: add a template"):
        make(folder, 0.1)


def test_a_model_without_separate_texts_has_no_weight_in_its_fingerprint(tiny_folder: FolderOf) -> None:
    config = make(tiny_folder("bert"), None).fingerprint_inputs["config"]
    assert "cross_text_weight" not in config


def test_the_candidate_segment_is_the_token_type_of_the_candidate_alone(tiny_folder: FolderOf) -> None:
    config = tercet.CrossConfig(head="compare", cross_text_weight=0.2, candidate_segment=True)
    typed = tercet.CrossEncoder.from_backbone(tiny_folder("bert"), config=config, device="cpu")
    ((pair,),) = typed.tokenize_pairs(["the library"], ["a cup of tea"])
    assert pair.segments == [int(place >= pair.candidate_start) for place in range(len(pair.ids))]

    plain = make(tiny_folder("bert"), 0.2)
    assert np.abs(typed.score(*ONE) - plain.score(*ONE)).max() > 1e-3
    types = typed.encoder.transformer.embeddings.token_type_embeddings.weight
    with torch.no_grad():
        types[1] = types[0]
    np.testing.assert_allclose(typed.score(*ONE), plain.score(*ONE), atol=1e-5)


def test_a_candidate_segment_without_separate_texts_is_refused() -> None:
    with pytest.raises(InputError, match="candidate_segment needs cross_text_weight"):
        tercet.CrossConfig(head="compare", candidate_segment=True)


def test_a_candidate_segment_needs_token_types(tiny_folder: FolderOf) -> None:
    config = tercet.CrossConfig(head="compare", cross_text_weight=0.2, candidate_segment=True)
    with pytest.raises(InputError, match="the encoder distilbert has none"):
        tercet.CrossEncoder.from_backbone(tiny_folder("distilbert"), config=config, device="cpu")


def test_padded_pairs_score_alike_in_half_precision(tiny_folder: FolderOf) -> None:
    exact, half = (make(tiny_folder("bert"), 0.2, precision=each) for each in ("fp32", "bf16"))
    half.encoder.packable = False
    ours = half.score_many(SENTENCES, SENTENCES)
    np.testing.assert_allclose(ours, exact.score_many(SENTENCES, SENTENCES), atol=0.3)


def test_the_attention_bias_has_the_precision_of_the_queries(
    tiny_folder: FolderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    types = set()

    def attend(module: object, query: torch.Tensor, *others: torch.Tensor, **options: object) -> object:
        types.add((query.dtype, others[2].dtype))
        return sdpa_attention_forward(module, query, *others, **options)

    monkeypatch.setattr("tercet.encoders.packing.sdpa_attention_forward", attend)
    scorer = make(tiny_folder("bert"), 0.2, precision="bf16")
    scorer.encoder.packable = False
    scorer.score(*ONE)
    assert types == {(torch.bfloat16, torch.bfloat16)}
