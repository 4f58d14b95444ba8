"""The cross-encoder: how pairs are tokenized and truncated, its heads and its outputs."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.conftest import SENTENCES
from torch import nn

import tercet
from tercet.encoders.encoder import TokenStates
from tercet.errors import InputError, ModelError, TruncationWarning
from tercet.scorers.heads import ComparisonHead, Head, activate
from tercet.text.pairs import PairTokenizer
from tercet.text.tokenizer import Tokenizer

FolderOf = Callable[[str], Path]

BEGIN, END = 0, 2  # <s> and </s> in the tiny vocabulary


def make(folder: Path, *, max_tokens: int | None = None, **settings: Any) -> tercet.CrossEncoder:
    config = tercet.CrossConfig(**settings)
    return tercet.CrossEncoder.from_backbone(folder, config=config, max_tokens=max_tokens, device="cpu")


@pytest.fixture
def cross(tiny_folder: FolderOf) -> tercet.CrossEncoder:
    return make(tiny_folder("bert"))


@pytest.fixture
def tokenizer(cross: tercet.CrossEncoder) -> Tokenizer:
    return cross.tokenizer


def test_a_pair_is_one_sequence_with_two_segments(cross: tercet.CrossEncoder) -> None:
    context, candidate = cross.pair_tokenizer.ids(["a dog", "the old cat"])
    pair = cross.pair_tokenizer.pair(context, candidate)
    assert pair.ids == [BEGIN, *context, END, *candidate, END]
    assert pair.segments == [0, 0, 0, 0, 1, 1, 1, 1]


def test_segment_ids_change_the_score(cross: tercet.CrossEncoder) -> None:
    pair = cross.pair_tokenizer.pair(*cross.pair_tokenizer.ids(["a dog", "the old cat"]))
    one_segment = replace(pair, segments=[0] * len(pair.ids))
    with torch.no_grad():
        assert abs(float(cross([pair]) - cross([one_segment]))) > 1e-4


def test_the_order_of_a_pair_changes_the_score(cross: tercet.CrossEncoder) -> None:
    assert cross.score(SENTENCES[0], [SENTENCES[1]]) != cross.score(SENTENCES[1], [SENTENCES[0]])


def test_a_symmetric_score_is_the_mean_of_both_directions(tiny_folder: FolderOf) -> None:
    asymmetric, symmetric = (make(tiny_folder("bert"), symmetric=value) for value in (False, True))
    a, b = SENTENCES[:2]
    mean = (asymmetric.score(a, [b])[0] + asymmetric.score(b, [a])[0]) / 2
    assert symmetric.score(a, [b])[0] == symmetric.score(b, [a])[0] == pytest.approx(mean)
    assert symmetric.score_pairs([a], [b])[0] == pytest.approx(mean)


def fit(
    tokenizer: Tokenizer, context: int, candidate: int, min_context_tokens: int
) -> tuple[list[int], list[int]]:
    """The kept tokens of a context 100, 101, ... and a candidate 500, 501, ...; there is room for 45."""
    pairs = PairTokenizer(tokenizer, min_context_tokens=min_context_tokens)
    return pairs._fit(list(range(100, 100 + context)), list(range(500, 500 + candidate)))


def test_a_pair_that_fits_is_not_truncated(tokenizer: Tokenizer) -> None:
    assert fit(tokenizer, 20, 25, min_context_tokens=8) == (list(range(100, 120)), list(range(500, 525)))


def test_a_long_context_loses_its_oldest_tokens_and_the_candidate_is_kept(tokenizer: Tokenizer) -> None:
    context, candidate = fit(tokenizer, 100, 30, min_context_tokens=8)
    assert candidate == list(range(500, 530))
    assert context == list(range(185, 200))  # the newest 15


def test_a_candidate_is_kept_until_the_context_is_down_to_its_minimum(tokenizer: Tokenizer) -> None:
    context, candidate = fit(tokenizer, 100, 37, min_context_tokens=8)
    assert (len(context), len(candidate)) == (8, 37)
    context, candidate = fit(tokenizer, 100, 90, min_context_tokens=8)
    assert context == list(range(192, 200))
    assert candidate == list(range(500, 537))  # without its end


def test_a_short_context_leaves_more_room_for_the_candidate(tokenizer: Tokenizer) -> None:
    context, candidate = fit(tokenizer, 3, 90, min_context_tokens=8)
    assert (len(context), len(candidate)) == (3, 42)


def test_the_minimum_of_the_context_is_at_most_half_the_room(tokenizer: Tokenizer) -> None:
    context, candidate = fit(tokenizer, 100, 90, min_context_tokens=1000)
    assert (len(context), len(candidate)) == (22, 23)


def test_truncated_tokens_are_counted_for_each_pair(cross: tercet.CrossEncoder) -> None:
    long = " ".join(["cat"] * 60)
    with pytest.warns(TruncationWarning, match=r"2 of 2 pairs .* 48 tokens"):
        found = cross.rank(long, ["dog", long], k=2)
    truncated = {ranked.position: (ranked.context_truncated, ranked.candidate_truncated) for ranked in found}
    assert truncated == {0: (60 - 44, 0), 1: (60 - 22, 60 - 23)}


def test_the_newest_turn_and_the_candidate_of_a_long_pair_are_kept(cross: tercet.CrossEncoder) -> None:
    filler = ["one two three four five six seven eight nine ten"] * 5
    with pytest.warns(TruncationWarning):
        ours = cross.score(["never not bread", *filler, "the dog ran"], ["old house"])
    np.testing.assert_allclose(cross.score(["red", *filler, "the dog ran"], ["old house"]), ours, atol=1e-6)
    assert abs(cross.score([*filler, "the dog sat"], ["old house"]) - ours) > 1e-5
    assert abs(cross.score([*filler, "the dog ran"], ["old bread"]) - ours) > 1e-5


def test_a_text_is_tokenized_once_per_call(
    cross: tercet.CrossEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenized: list[str] = []
    bare_ids = Tokenizer.bare_ids

    def spy(self: Tokenizer, texts: list[str]) -> list[list[int]]:
        tokenized.extend(texts)
        return bare_ids(self, texts)

    monkeypatch.setattr(Tokenizer, "bare_ids", spy)
    cross.score("the cat sat", SENTENCES)
    assert sorted(tokenized) == sorted(["the cat sat", *SENTENCES])
    tokenized.clear()
    cross.score_pairs(["the cat sat"] * len(SENTENCES), SENTENCES)
    assert sorted(tokenized) == sorted(["the cat sat", *SENTENCES])


def test_the_linear_head_worked_out_by_hand() -> None:
    linear = nn.Linear(2, 1)
    linear.weight.data, linear.bias.data = torch.tensor([[3.0, -1.0]]), torch.tensor([0.5])
    states = torch.tensor([[[2.0, 4.0], [9.0, 9.0]]])  # only the first state is used
    outputs = Head(linear)(TokenStates(states, torch.ones(1, 2, dtype=torch.bool)))
    assert outputs.tolist() == [[3 * 2 - 1 * 4 + 0.5]]


def test_the_dense_head_is_dense_gelu_linear_with_dropout_before_each(tiny_folder: FolderOf) -> None:
    head = make(tiny_folder("bert"), head="dense", dropout=0.25).head
    assert head.dense is not None
    assert isinstance(head.activation, nn.GELU)
    assert (head.before.p, head.after.p) == (0.25, 0.25)
    states = torch.randn(1, 1, 16)
    expected = head.linear(nn.functional.gelu(head.dense(states[:, 0])))
    with torch.no_grad():
        torch.testing.assert_close(head(TokenStates(states, torch.ones(1, 1, dtype=torch.bool))), expected)


def test_the_comparison_head_worked_out_by_hand() -> None:
    head = ComparisonHead(width=2)
    head.linear.weight.data = torch.tensor([[1.0, 0, 0, 2, 10, 0, 0, 100]])
    head.linear.bias.data = torch.tensor([0.5])
    states = torch.tensor([[[0.0, 2], [0, 6], [3, 3], [9, 13], [77, 77]]])  # means (0, 4) and (6, 8)
    outputs = head(TokenStates(states, torch.tensor([[True, True, True, True, False]])), [2])
    u, v = (0, 1), (0.6, 0.8)
    by_hand = 1 * u[0] + 2 * v[1] + 10 * abs(u[0] - v[0]) + 100 * u[1] * v[1] + 0.5
    assert outputs.item() == pytest.approx(by_hand)


def test_with_a_sigmoid_the_untrained_comparison_head_is_close_to_the_cosine() -> None:
    head = ComparisonHead(width=2, activation="sigmoid")
    states = torch.tensor([[[1.0, 0], [0.6, 0.8]]])  # a cosine of 0.6
    outputs = head(TokenStates(states, torch.ones(1, 2, dtype=torch.bool)), [1])
    assert outputs.sigmoid().item() == pytest.approx(0.6, abs=0.03)


def test_the_untrained_comparison_head_is_a_scaled_cosine(tiny_folder: FolderOf) -> None:
    cross = make(tiny_folder("bert"), head="compare")
    pair = cross.pair_tokenizer.pair(*cross.pair_tokenizer.ids(["a dog", "the old cat"]))
    with torch.no_grad():
        states = cross.encoder([pair.ids], [pair.segments]).states[0]
        cosine = torch.cosine_similarity(states[:4].mean(0), states[4:].mean(0), dim=0)
        assert cross([pair]).item() == pytest.approx(10 * cosine.item() - 5, abs=1e-5)


@pytest.mark.parametrize("architecture", ["bert", "roberta"])
def test_candidate_start_is_the_position_of_the_first_token_of_the_candidate(
    tiny_folder: FolderOf, architecture: str
) -> None:
    pairs = make(tiny_folder(architecture), head="compare").pair_tokenizer
    context, candidate = pairs.ids(["a dog", "the old cat"])
    pair = pairs.pair(context, candidate)
    assert pair.ids[pair.candidate_start :][: len(candidate)] == candidate


def test_a_comparison_head_with_several_labels_is_refused() -> None:
    with pytest.raises(InputError, match='head = "compare" has 1 output, got num_labels = 3'):
        tercet.CrossConfig(head="compare", num_labels=3)


def test_a_new_native_head_may_have_another_number_of_labels_than_the_folder(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    saved = make(tiny_folder("bert"), head="native", num_labels=3)
    new = make(saved.save(tmp_path / "saved"), head="native", num_labels=1)
    assert new.score("a dog", ["the old cat"]).shape == (1,)
    weights = dict(new.encoder.named_parameters())
    assert all(torch.equal(weight, weights[name]) for name, weight in saved.encoder.named_parameters())


def test_activations_worked_out_by_hand() -> None:
    outputs = torch.tensor([[0.0, 1.0]])
    assert activate(outputs, "identity").tolist() == [[0, 1]]
    assert activate(outputs, "sigmoid")[0, 0] == 0.5
    assert activate(outputs, "softmax").sum().item() == pytest.approx(1)
    torch.testing.assert_close(activate(outputs, "tanh"), outputs.tanh())


@pytest.mark.parametrize("activation", ["sigmoid", "softmax"])
def test_half_precision_outputs_do_not_tie_after_the_activation(activation: str) -> None:
    rising = torch.arange(6.0, 10.0, 0.25)  # in bfloat16 a sigmoid of these is 1
    outputs = torch.stack([rising, torch.zeros_like(rising)], dim=1).bfloat16()
    scores = activate(outputs, activation)[:, 0]  # type: ignore[arg-type]
    assert scores.dtype == torch.float32
    assert len(scores.unique()) == len(rising)


def test_the_head_of_a_bf16_model_stays_in_float32_and_its_scores_do_not_tie(tiny_folder: FolderOf) -> None:
    scorer = tercet.CrossEncoder.from_backbone(tiny_folder("bert"), precision="bf16", device="cpu")
    assert all(weight.dtype == torch.float32 for weight in scorer.head.parameters())
    many = [f"{left} {right}" for left in SENTENCES for right in SENTENCES]
    assert len(np.unique(scorer.score("old bread", many))) == len(many)


def test_classify_returns_the_classes_of_each_pair_and_score_is_refused(tiny_folder: FolderOf) -> None:
    scorer = make(tiny_folder("bert"), num_labels=3, activation="softmax", labels=("no", "maybe", "yes"))
    values = scorer.classify(SENTENCES, SENTENCES[::-1])
    assert values.shape == (len(SENTENCES), 3)
    np.testing.assert_allclose(values.sum(axis=1), 1, rtol=1e-6)
    scorer.forward = None  # type: ignore[method-assign]  # the error comes before any computation
    with pytest.raises(InputError, match=r"3 classes \(no, maybe, yes\) and no score"):
        scorer.score("cat", ["dog"])


def test_score_class_selects_the_class_that_is_the_score(tiny_folder: FolderOf) -> None:
    scorer = make(tiny_folder("bert"), num_labels=3, activation="softmax", score_class=2)
    values = scorer.classify(SENTENCES, SENTENCES[::-1])
    np.testing.assert_array_equal(scorer.score_pairs(SENTENCES, SENTENCES[::-1]), values[:, 2])


def test_the_forward_pass_has_gradients(cross: tercet.CrossEncoder) -> None:
    pairs = cross.pair_tokenizer
    cross([pairs.pair(*pairs.ids(["a dog", "the cat"]))]).sum().backward()
    weight = next(cross.encoder.parameters())
    assert weight.grad is not None
    assert weight.grad.abs().max() > 0


def test_the_weights_of_a_new_head_depend_on_the_seed(tiny_folder: FolderOf) -> None:
    for head in ("linear", "dense", "native"):
        config = tercet.CrossConfig(head=head)  # type: ignore[arg-type]
        one, same, other = (
            tercet.CrossEncoder.from_backbone(tiny_folder("bert"), config=config, seed=seed, device="cpu")
            for seed in (0, 0, 1)
        )
        assert one.fingerprint == same.fingerprint != other.fingerprint


def test_a_tokenizer_without_a_pair_template_is_refused(tiny_folder: FolderOf, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_folder("bert"), tmp_path / "bare"))
    content = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps(content | {"post_processor": None}))
    with pytest.raises(ModelError, match="adds no special tokens to a pair: add a pair template"):
        make(folder)


def test_a_model_without_room_for_two_texts_is_refused(tiny_folder: FolderOf) -> None:
    with pytest.raises(InputError, match="room for two texts beside 3 special tokens, got 4"):
        make(tiny_folder("bert"), max_tokens=4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"head": "deep"}, "head must be one of linear, dense, native, compare, got 'deep'"),
        ({"num_labels": 0}, "num_labels must be at least 1, got 0"),
        ({"activation": "relu"}, "activation must be one of identity, sigmoid, softmax, tanh"),
        ({"activation": "softmax"}, "softmax over one output is always 1"),
        ({"num_labels": 3, "labels": ("a", "b")}, "labels must be 3 different names, got a, b"),
        ({"num_labels": 2, "labels": ("a", "a")}, "labels must be 2 different names, got a, a"),
        ({"num_labels": 3, "labels": "abc"}, "labels must be a list of strings, got 'abc'"),
        ({"num_labels": 3, "score_class": 3}, "score_class must be between 0 and 2, got 3"),
        ({"min_context_tokens": 0}, "min_context_tokens must be at least 1, got 0"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        tercet.CrossConfig(**settings)
