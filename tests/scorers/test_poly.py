"""The poly-encoder: equality with the paper, its settings, and explanations of its scores."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.conftest import SENTENCES

import tercet
from tercet.data.sample import dialogues, questions
from tercet.errors import InputError, TruncationWarning
from tercet.scorers.attention_entropy import normalized_entropy
from tercet.settings.encoding import EncodingConfig
from tercet.settings.models import CODE_KINDS

FolderOf = Callable[[str], Path]


def make(folder: Path | str, **settings: Any) -> tercet.PolyEncoder:
    config = tercet.PolyConfig(**{"codes": 4} | settings)
    return tercet.PolyEncoder.from_backbone(folder, config=config, device="cpu")


@pytest.fixture
def poly(tiny_folder: FolderOf) -> tercet.PolyEncoder:
    return make(tiny_folder("bert"))


def literal_scores(scorer: tercet.PolyEncoder, context: str, candidates: list[str]) -> np.ndarray:
    """Section 4.4 of the paper, computed with transformers alone, in float64."""
    scorer = scorer.double()
    tokenizer = scorer.tokenizer.pretrained
    tokenizer.backend_tokenizer.no_truncation()
    config = scorer.config

    def states(encoder: Any, text: str) -> torch.Tensor:
        inputs = tokenizer(text, return_tensors="pt", padding=False, truncation=False)
        encoder.set_attn_implementation("sdpa")
        return encoder(input_ids=inputs["input_ids"]).last_hidden_state[0]  # [T, D]

    with torch.no_grad():
        h = states(scorer.context_encoder.transformer, context)
        codes = scorer.code_layer.codes
        y = torch.softmax(config.code_scale * codes @ h.T, dim=-1) @ h  # y_ctxt: [m, D]
        scores = []
        for text in candidates:
            cand = states(scorer.candidate_tower.encoder.transformer, text)[0]  # reduction = "first"
            w = torch.softmax(config.candidate_scale * y @ cand, dim=0)
            scores.append(config.logit_scale * (w @ y) @ cand)
    return torch.stack(scores).numpy()


@pytest.mark.parametrize("scales", [(1.0, 1.0, 1.0), (10.0, 4.0, 0.5)])
def test_scores_equal_the_paper_over_plain_transformers(
    scales: tuple[float, float, float], tiny_folder: FolderOf
) -> None:
    names = ("code_scale", "candidate_scale", "logit_scale")
    settings = dict(zip(names, scales, strict=True))
    scorer = make(tiny_folder("bert"), reduction="first", similarity="dot", **settings)
    ours = scorer.score(SENTENCES[4], SENTENCES)
    np.testing.assert_allclose(ours, literal_scores(scorer, SENTENCES[4], SENTENCES), rtol=2e-5, atol=2e-5)


def test_the_codes_are_the_only_weights_beside_the_transformers(poly: tercet.PolyEncoder) -> None:
    own = {name for name, _ in poly.named_parameters() if "transformer" not in name}
    assert own == {"code_layer.codes"}
    assert poly.code_layer.codes is not None
    assert poly.code_layer.codes.shape == (4, 16)


@pytest.mark.parametrize("reduction", ["first", "mean", "max", "mean_first"])
def test_poly_with_one_code_equals_bi_with_the_same_vectors(reduction: str, tiny_folder: FolderOf) -> None:
    scorer = make(tiny_folder("bert"), codes=1, code_kind="first", reduction=reduction, logit_scale=1.0)
    codes, vectors = scorer.encode_contexts(SENTENCES), scorer.encode_candidates(SENTENCES)
    bi = tercet.BiEncoder.from_backbone(
        tiny_folder("bert"), config=tercet.BiConfig(similarity="dot"), device="cpu"
    )
    np.testing.assert_allclose(scorer.score_many(SENTENCES, SENTENCES), bi.match(codes, vectors), rtol=1e-6)


def test_a_cosine_poly_encoder_with_one_first_code_equals_the_cosine_bi_encoder(
    tiny_folder: FolderOf,
) -> None:
    scorer = make(tiny_folder("bert"), codes=1, code_kind="first", reduction="first", similarity="cosine")
    bi = tercet.BiEncoder.from_backbone(
        tiny_folder("bert"), pooling=tercet.PoolingConfig(kinds=("first",)), device="cpu"
    )
    ours, expected = (each.score(SENTENCES[0], SENTENCES) for each in (scorer, bi))
    np.testing.assert_allclose(ours, expected, atol=1e-6)


def test_cosine_normalizes_codes_and_vectors(tiny_folder: FolderOf) -> None:
    scorer = make(tiny_folder("bert"), similarity="cosine", candidate_scale=10)
    codes = scorer.encode_contexts(SENTENCES[:2])
    vectors = scorer.encode_candidates(SENTENCES)
    np.testing.assert_allclose(np.linalg.norm(codes.vectors, axis=-1), 1, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-1), 1, atol=1e-5)
    assert np.abs(scorer.score(SENTENCES[0], SENTENCES)).max() <= 1 + 1e-6


def test_a_dot_poly_encoder_with_one_first_code_equals_the_dot_bi_encoder(tiny_folder: FolderOf) -> None:
    scorer = make(tiny_folder("bert"), codes=1, code_kind="first", reduction="first", similarity="dot")
    bi = tercet.BiEncoder.from_backbone(
        tiny_folder("bert"),
        pooling=tercet.PoolingConfig(kinds=("first",)),
        config=tercet.BiConfig(similarity="dot"),
        device="cpu",
    )
    ours, theirs = (each.score_many(SENTENCES, SENTENCES) for each in (scorer, bi))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", CODE_KINDS)
def test_padding_does_not_change_the_codes(kind: str, tiny_folder: FolderOf) -> None:
    scorer = make(tiny_folder("bert"), code_kind=kind)
    together = scorer.encode_contexts([SENTENCES[1], SENTENCES[4]]).take(slice(0, 1))
    alone = scorer.encode_contexts([SENTENCES[1]])
    np.testing.assert_array_equal(together.mask.sum(axis=1), alone.mask.sum(axis=1))
    np.testing.assert_allclose(together.vectors[together.mask], alone.vectors[alone.mask], atol=1e-5)


@pytest.mark.parametrize("kind", CODE_KINDS)
@pytest.mark.parametrize("codes", [1, 2, 5, 48])
def test_scores_are_finite_for_any_number_of_codes(kind: str, codes: int, tiny_folder: FolderOf) -> None:
    scorer = make(tiny_folder("bert"), code_kind=kind, codes=codes)
    scores = scorer.score_many(["dog", SENTENCES[4]], SENTENCES)
    assert scores.shape == (2, len(SENTENCES))
    assert np.isfinite(scores).all()
    assert scorer.encode_contexts([SENTENCES[4]]).vectors.shape[1] <= scorer.max_codes


def test_two_towers_start_equal_and_share_no_weights(poly: tercet.PolyEncoder) -> None:
    left = dict(poly.context_encoder.named_parameters())
    right = dict(poly.candidate_tower.encoder.named_parameters())
    assert all(torch.equal(left[name], right[name]) for name in left)
    assert {id(weight) for weight in left.values()}.isdisjoint(id(weight) for weight in right.values())


def test_one_tower_is_shared_on_request(tiny_folder: FolderOf) -> None:
    scorer = make(tiny_folder("bert"), towers=1)
    assert scorer.context_encoder is scorer.candidate_tower.encoder


def test_training_with_cached_candidates_leaves_their_tower_unchanged(poly: tercet.PolyEncoder) -> None:
    before = poly.encode_candidates(SENTENCES)
    ids = poly.token_ids(SENTENCES, "context")
    scores = poly.match_tensors(poly.context_codes(ids), torch.from_numpy(before))
    scores.diagonal().sum().backward()
    with torch.no_grad():
        for weight in poly.parameters():
            if weight.grad is not None:
                weight -= 0.01 * weight.grad
    np.testing.assert_array_equal(poly.encode_candidates(SENTENCES), before)
    left = dict(poly.context_encoder.named_parameters())
    right = dict(poly.candidate_tower.encoder.named_parameters())
    assert any(not torch.equal(left[name], right[name]) for name in left)


def test_codes_and_learnt_scales_have_gradients(tiny_folder: FolderOf) -> None:
    scorer = make(tiny_folder("bert"), learn_scales=True, code_scale=1.0, candidate_scale=0.1)
    ids = scorer.token_ids(SENTENCES, "context")
    scores = scorer.match_tensors(scorer.context_codes(ids), scorer.candidate_vectors(ids))
    scores.log_softmax(dim=1).diagonal().sum().backward()
    for name, weight in scorer.code_layer.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.abs().max() > 0, name


def test_a_saved_poly_encoder_keeps_trained_codes_and_scales(tiny_folder: FolderOf, tmp_path: Path) -> None:
    scorer = make(tiny_folder("bert"), learn_scales=True)
    with torch.no_grad():
        for weight in scorer.parameters():
            weight += 0.01 * torch.randn_like(weight)
    loaded = tercet.PolyEncoder.load(scorer.save(tmp_path / "poly"), device="cpu")
    saved = scorer.state_dict()
    assert loaded.state_dict().keys() == saved.keys()
    assert all(torch.equal(weight, saved[name]) for name, weight in loaded.state_dict().items())
    assert loaded.code_layer.code_scale.value != 10.0


def test_learnt_scales_stay_positive(tiny_folder: FolderOf) -> None:
    scorer = make(tiny_folder("bert"), learn_scales=True)
    for scale in (scorer.code_layer.code_scale, scorer.code_layer.logit_scale):
        assert scale.log is not None
        scale.log.data -= 50
        assert scale.value > 0


def test_symmetric_scores_are_exactly_symmetric(tiny_folder: FolderOf) -> None:
    scorer = make(tiny_folder("bert"), symmetric=True, towers=1)
    table = scorer.score_many(SENTENCES, SENTENCES)
    np.testing.assert_array_equal(table, table.T)
    pairs = scorer.score_pairs(SENTENCES, SENTENCES[::-1])
    np.testing.assert_array_equal(pairs, scorer.score_pairs(SENTENCES[::-1], SENTENCES))
    assert scorer.score("dog", [SENTENCES[4]]) == scorer.score(SENTENCES[4], ["dog"])


def test_symmetric_scores_are_the_mean_of_both_directions(tiny_folder: FolderOf) -> None:
    symmetric = make(tiny_folder("bert"), symmetric=True, towers=1).score_many(SENTENCES, SENTENCES)
    one_direction = make(tiny_folder("bert"), towers=1).score_many(SENTENCES, SENTENCES)
    np.testing.assert_allclose(symmetric, (one_direction + one_direction.T) / 2, rtol=1e-6)
    assert np.abs(one_direction - one_direction.T).max() > 1e-2


def test_a_symmetric_model_needs_one_tower() -> None:
    with pytest.raises(InputError, match="a symmetric poly-encoder needs 1 tower for both texts, got 2"):
        tercet.PolyConfig(symmetric=True)


def test_a_long_dialogue_keeps_its_newest_turn(poly: tercet.PolyEncoder) -> None:
    newest = ["one two three four five six seven eight nine ten"] * 5 + ["the old dog ran"]
    with pytest.warns(TruncationWarning):
        ours, other_start, other_end = poly.encode_contexts(
            [["never not bread", *newest], ["red river", *newest], [*newest[:-1], "the old dog sat"]]
        ).vectors
    np.testing.assert_allclose(ours, other_start, atol=1e-5)
    assert np.abs(ours - other_end).max() > 1e-3


def test_a_symmetric_model_refuses_to_match_encoded_texts(tiny_folder: FolderOf) -> None:
    scorer = make(tiny_folder("bert"), symmetric=True, towers=1)
    codes, vectors = scorer.encode_contexts(SENTENCES), scorer.encode_candidates(SENTENCES)
    for candidates in (vectors, vectors[:, None]):
        with pytest.raises(InputError, match="codes and vectors of both texts"):
            scorer.match(codes, candidates)


def test_vectors_from_a_file_are_matched_without_a_copy_or_a_warning(
    poly: tercet.PolyEncoder, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    vectors = poly.encode(SENTENCES, tmp_path / "vectors.npy")
    assert not vectors.flags.writeable
    codes = poly.encode_contexts(SENTENCES[:2])
    np.testing.assert_allclose(
        poly.match(codes, vectors), poly.score_many(SENTENCES[:2], SENTENCES), rtol=1e-5
    )
    np.testing.assert_allclose(
        poly.match(codes, vectors[::-1]), poly.match(codes, vectors)[:, ::-1], rtol=1e-5
    )
    assert not recwarn.list


def test_a_model_can_be_cast_to_another_type(poly: tercet.PolyEncoder) -> None:
    expected = poly.score_many(SENTENCES, SENTENCES)
    np.testing.assert_allclose(poly.double().score_many(SENTENCES, SENTENCES), expected, rtol=1e-3)
    assert len(poly.bfloat16().fingerprint) == 16


def test_more_codes_than_the_maximum_number_of_tokens_are_refused(tiny_folder: FolderOf) -> None:
    with pytest.raises(InputError, match=r"codes must be at most 48, .* got 49"):
        make(tiny_folder("bert"), codes=49)


def test_a_seed_outside_the_range_of_torch_is_refused(tiny_folder: FolderOf) -> None:
    with pytest.raises(InputError, match="seed must be a whole number from 0"):
        tercet.PolyEncoder.from_backbone(tiny_folder("bert"), seed=2**70, device="cpu")


def test_settings_may_be_numpy_numbers(tiny_folder: FolderOf, tmp_path: Path) -> None:
    scorer = make(tiny_folder("bert"), codes=np.int64(3), code_scale=np.float32(2))
    assert tercet.load(scorer.save(tmp_path / "poly"), device="cpu").config == scorer.config


def test_scores_do_not_depend_on_how_contexts_are_grouped(
    poly: tercet.PolyEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = poly.score_many(SENTENCES, SENTENCES), poly.score_pairs(SENTENCES, SENTENCES[::-1])
    monkeypatch.setattr("tercet.scorers.dual_scorer.CODES_IN_MEMORY", 3 * 4 * 16)  # three contexts
    np.testing.assert_allclose(poly.score_many(SENTENCES, SENTENCES), expected[0], atol=1e-5)
    np.testing.assert_allclose(poly.score_pairs(SENTENCES, SENTENCES[::-1]), expected[1], atol=1e-5)


def test_contexts_with_several_codes_are_not_written_to_a_file(
    poly: tercet.PolyEncoder, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="up to 4 vectors"):
        poly.encode(SENTENCES, tmp_path / "codes.npy", side="context")
    assert len(poly.encode(SENTENCES, tmp_path / "vectors.npy")) == len(SENTENCES)


def minilm_entropies(**settings: Any) -> dict[str, float]:
    faq = questions("en")
    contexts = [dialogue.turns[:-1] for dialogue in dialogues("en")] + [entry.context for entry in faq]
    return make("bi", **settings).attention_entropies(contexts, [entry.answer for entry in faq])


def test_codes_over_minilm_do_not_collapse_with_the_default_scales() -> None:
    found = minilm_entropies(codes=64)
    assert 0.1 < found["token_entropy"] < 0.6
    assert 0.1 < found["code_entropy"] < 0.98  # cosines of codes differ little; without a scale it is 0.999


def test_codes_over_minilm_do_not_collapse_with_dot_products() -> None:
    found = minilm_entropies(codes=64, similarity="dot", candidate_scale=4.0)
    assert 0.1 < found["token_entropy"] < 0.6
    assert 0.1 < found["code_entropy"] < 0.6


def test_codes_over_minilm_collapse_to_the_mean_without_scales() -> None:
    found = minilm_entropies(codes=64, code_scale=1.0, candidate_scale=1.0)
    assert found["token_entropy"] > 0.95
    assert found["code_entropy"] > 0.95


def test_normalized_entropy_worked_out_by_hand() -> None:
    weights = torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.25, 0.25, 0.5]])
    expected = [1, 0, (0.5 * math.log(4) + 0.5 * math.log(2)) / math.log(3)]
    torch.testing.assert_close(normalized_entropy(weights, torch.tensor([2, 3, 3])), torch.tensor(expected))


def test_codes_that_are_tokens_have_no_token_entropy(tiny_folder: FolderOf) -> None:
    scorer = make(tiny_folder("bert"), code_kind="first", codes=4)
    assert scorer.attention_entropies(SENTENCES, SENTENCES).keys() == {"code_entropy"}


def test_one_code_has_no_code_entropy(tiny_folder: FolderOf) -> None:
    found = make(tiny_folder("bert"), codes=1).attention_entropies(SENTENCES, SENTENCES)
    assert found.keys() == {"token_entropy"}


def mean_entropy(weights: np.ndarray) -> float:
    return float(-(weights * np.log(weights)).sum(axis=-1).mean() / np.log(weights.shape[-1]))


@pytest.mark.parametrize("kind", ["learnt", "last"])
def test_entropies_equal_those_of_the_explained_weights(kind: str, tiny_folder: FolderOf) -> None:
    scorer = make(tiny_folder("bert"), codes=4, code_scale=2.0, code_kind=kind)
    scorer.encoding = EncodingConfig(cpu_tokens=1)  # each context in a batch of its own
    contexts, candidate = ["a dog", *SENTENCES], SENTENCES[1]
    explained = [scorer.explain(context, candidate) for context in contexts]
    found = scorer.attention_entropies(contexts, [candidate])
    over_codes = [
        mean_entropy(np.array([code.weight for code in each.codes if code.weight])) for each in explained
    ]
    assert found["code_entropy"] == pytest.approx(np.mean(over_codes), abs=1e-5)
    if kind == "learnt":
        over_tokens = [mean_entropy(each.attention) for each in explained]
        assert found["token_entropy"] == pytest.approx(np.mean(over_tokens), abs=1e-5)


def test_entropies_in_training_mode_or_without_contexts_are_refused(tiny_folder: FolderOf) -> None:
    scorer = make(tiny_folder("bert")).train()
    with pytest.raises(InputError, match="training mode"):
        scorer.attention_entropies(SENTENCES, SENTENCES)
    with pytest.raises(InputError, match="at least one"):
        scorer.eval().attention_entropies([], SENTENCES)


@pytest.mark.parametrize("kind", CODE_KINDS)
@pytest.mark.parametrize("codes", [1, 4])
@pytest.mark.parametrize("similarity", ["dot", "cosine"])
def test_an_explanation_adds_up_to_the_score(
    kind: str, codes: int, similarity: str, tiny_folder: FolderOf
) -> None:
    settings = {"code_kind": kind, "codes": codes, "similarity": similarity}
    scorer = make(tiny_folder("bert"), logit_scale=0.5, **settings)
    context = ["a dog ran", "the cat sat on the mat"]
    found = scorer.explain(context, SENTENCES[2])
    score = scorer.score(context, [SENTENCES[2]])[0]
    assert found.score == pytest.approx(score, rel=1e-5)
    assert sum(code.contribution for code in found.codes) == pytest.approx(score, rel=1e-5)
    assert sum(token.contribution for token in found.tokens) == pytest.approx(score, rel=1e-5)
    assert sum(code.weight for code in found.codes) == pytest.approx(1, rel=1e-5)
    assert sum(token.weight for token in found.tokens) == pytest.approx(1, rel=1e-5)
    assert found.attention.shape == (len(found.codes), len(found.tokens))


def test_an_explanation_lists_the_words_of_the_context(tiny_folder: FolderOf) -> None:
    found = make(tiny_folder("bert")).explain(["a dog ran", "the cat"], "bread")
    assert found.context == "a dog ran\nthe cat"
    assert [token.text for token in found.tokens] == ["<s>", "a", "dog", "ran", "the", "cat", "</s>"]
    assert [found.context[token.start : token.end] for token in found.tokens[1:-1]] == [
        token.text for token in found.tokens[1:-1]
    ]


def test_an_explanation_of_a_long_dialogue_covers_the_kept_tokens(poly: tercet.PolyEncoder) -> None:
    found = poly.explain(["red river"] * 40 + ["old dog"], "bread")
    assert len(found.tokens) == poly.tokenizer.max_tokens
    assert (found.context_truncated, found.candidate_truncated) == (82 - 46, 0)
    assert [token.text for token in found.tokens[-3:]] == ["old", "dog", "</s>"]


def test_tokens_of_the_same_character_are_merged_in_an_explanation() -> None:
    found = make("bi", codes=8).explain("안녕하세요", "hello")
    assert [token.text for token in found.tokens] == ["[CLS]", "안", "녕", "하", "세", "요", "[SEP]"]
    assert sum(token.weight for token in found.tokens) == pytest.approx(1, rel=1e-5)
    assert found.attention.shape == (8, 7)


def test_a_code_that_is_a_token_puts_all_weight_on_that_token(tiny_folder: FolderOf) -> None:
    found = make(tiny_folder("bert"), codes=1, code_kind="last").explain("a dog ran", "bread")
    assert [token.weight for token in found.tokens] == [0, 0, 0, 0, 1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"codes": 0}, "codes must be at least 1, got 0"),
        ({"codes": 2.5}, "codes must be a whole number, got float 2.5"),
        ({"code_kind": "middle"}, "code_kind must be one of learnt, first, last, last_and_first"),
        ({"reduction": "last"}, "reduction must be one of first, mean, max, mean_first"),
        ({"code_scale": 0}, "code_scale must be a number from 1e-06 to 1e\\+06, got int 0"),
        ({"logit_scale": float("nan")}, "logit_scale must be a number from"),
        ({"candidate_scale": "4"}, "candidate_scale must be a number from .*, got str '4'"),
        ({"towers": 3}, "towers must be 1 or 2, got 3"),
        ({"turn_separator": 1}, "turn_separator must be a string"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        tercet.PolyConfig(**settings)
