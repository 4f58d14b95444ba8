"""The cross-encoder: what it reads of a pair, and what comes out."""

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
from tercet.models.comparison import Comparison
from tercet.models.encoder import TokenStates
from tercet.models.head import Head, activate
from tercet.models.pairs import PairTokenizer
from tercet.models.tokenizer import Tokenizer

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


def test_a_pair_is_one_row_of_two_segments(cross: tercet.CrossEncoder) -> None:
    context, candidate = cross.pair_tokenizer.ids(["a dog", "the old cat"])
    pair = cross.pair_tokenizer.pair(context, candidate)
    assert pair.ids == [BEGIN, *context, END, *candidate, END]
    assert pair.segments == [0, 0, 0, 0, 1, 1, 1, 1]


def test_segments_are_read(cross: tercet.CrossEncoder) -> None:
    pair = cross.pair_tokenizer.pair(*cross.pair_tokenizer.ids(["a dog", "the old cat"]))
    flat = replace(pair, segments=[0] * len(pair.ids))
    with torch.no_grad():
        assert abs(float(cross([pair]) - cross([flat]))) > 1e-4


def test_the_order_of_a_pair_matters(cross: tercet.CrossEncoder) -> None:
    assert cross.score(SENTENCES[0], [SENTENCES[1]]) != cross.score(SENTENCES[1], [SENTENCES[0]])


def test_a_symmetric_one_is_the_mean_of_both_orders(tiny_folder: FolderOf) -> None:
    one_way, both_ways = (make(tiny_folder("bert"), symmetric=symmetric) for symmetric in (False, True))
    a, b = SENTENCES[:2]
    there, back = one_way.score(a, [b])[0], one_way.score(b, [a])[0]
    assert both_ways.score(a, [b])[0] == both_ways.score(b, [a])[0] == pytest.approx((there + back) / 2)
    assert both_ways.score_pairs([a], [b])[0] == pytest.approx((there + back) / 2)


def fit(tokenizer: Tokenizer, context: int, candidate: int, floor: int) -> tuple[list[int], list[int]]:
    """What is left of contexts 100, 101, ... and candidates 500, 501, ..., and of the room of 45."""
    pairs = PairTokenizer(tokenizer, floor=floor)
    return pairs._fit(list(range(100, 100 + context)), list(range(500, 500 + candidate)))


def test_a_pair_that_fits_is_not_cut(tokenizer: Tokenizer) -> None:
    assert fit(tokenizer, 20, 25, floor=8) == (list(range(100, 120)), list(range(500, 525)))


def test_a_long_context_gives_way_from_its_old_end_and_the_candidate_survives(tokenizer: Tokenizer) -> None:
    context, candidate = fit(tokenizer, 100, 30, floor=8)
    assert candidate == list(range(500, 530))
    assert context == list(range(185, 200))  # the newest 15


def test_a_candidate_survives_until_the_context_is_down_to_its_floor(tokenizer: Tokenizer) -> None:
    context, candidate = fit(tokenizer, 100, 37, floor=8)
    assert (len(context), len(candidate)) == (8, 37)
    context, candidate = fit(tokenizer, 100, 90, floor=8)
    assert context == list(range(192, 200))
    assert candidate == list(range(500, 537))  # its end gave way


def test_a_short_context_leaves_its_room_to_the_candidate(tokenizer: Tokenizer) -> None:
    context, candidate = fit(tokenizer, 3, 90, floor=8)
    assert (len(context), len(candidate)) == (3, 42)


def test_a_floor_above_half_the_room_is_half_the_room(tokenizer: Tokenizer) -> None:
    context, candidate = fit(tokenizer, 100, 90, floor=1000)
    assert (len(context), len(candidate)) == (22, 23)


def test_what_was_cut_is_told_for_each_pair(cross: tercet.CrossEncoder) -> None:
    long = " ".join(["cat"] * 60)
    with pytest.warns(tercet.TruncationWarning, match=r"2 of 2 pairs .* 48 tokens"):
        found = cross.rank(long, ["dog", long], k=2)
    cuts = {ranked.position: (ranked.context_cut, ranked.candidate_cut) for ranked in found}
    assert cuts == {0: (60 - 44, 0), 1: (60 - 22, 60 - 23)}


def test_the_newest_turn_and_the_candidate_decide_a_long_pair(cross: tercet.CrossEncoder) -> None:
    filler = ["one two three four five six seven eight nine ten"] * 5
    with pytest.warns(tercet.TruncationWarning):
        ours = cross.score(["never not bread", *filler, "the dog ran"], ["old house"])
    np.testing.assert_allclose(cross.score(["red", *filler, "the dog ran"], ["old house"]), ours, atol=1e-6)
    assert abs(cross.score([*filler, "the dog sat"], ["old house"]) - ours) > 1e-5
    assert abs(cross.score([*filler, "the dog ran"], ["old bread"]) - ours) > 1e-5


def test_a_context_is_tokenised_once_per_call(
    cross: tercet.CrossEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenised: list[str] = []
    bare_ids = Tokenizer.bare_ids

    def spy(self: Tokenizer, texts: list[str]) -> list[list[int]]:
        tokenised.extend(texts)
        return bare_ids(self, texts)

    monkeypatch.setattr(Tokenizer, "bare_ids", spy)
    cross.score("the cat sat", SENTENCES)
    assert sorted(tokenised) == sorted(["the cat sat", *SENTENCES])
    tokenised.clear()
    cross.score_pairs(["the cat sat"] * len(SENTENCES), SENTENCES)
    assert sorted(tokenised) == sorted(["the cat sat", *SENTENCES])


def test_the_linear_head_worked_out_by_hand() -> None:
    linear = nn.Linear(2, 1)
    linear.weight.data, linear.bias.data = torch.tensor([[3.0, -1.0]]), torch.tensor([0.5])
    states = torch.tensor([[[2.0, 4.0], [9.0, 9.0]]])  # only the first state counts
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


def test_the_comparing_head_worked_out_by_hand() -> None:
    head = Comparison(width=2)
    head.linear.weight.data = torch.tensor([[1.0, 0, 0, 2, 10, 0, 0, 100]])
    head.linear.bias.data = torch.tensor([0.5])
    states = torch.tensor([[[0.0, 2], [0, 6], [3, 3], [9, 13], [77, 77]]])  # means (0, 4) and (6, 8)
    outputs = head(TokenStates(states, torch.tensor([[True, True, True, True, False]])), [2])
    u, v = (0, 1), (0.6, 0.8)
    by_hand = 1 * u[0] + 2 * v[1] + 10 * abs(u[0] - v[0]) + 100 * u[1] * v[1] + 0.5
    assert outputs.item() == pytest.approx(by_hand)


def test_under_a_sigmoid_the_comparing_head_begins_near_the_cosine_itself() -> None:
    head = Comparison(width=2, activation="sigmoid")
    states = torch.tensor([[[1.0, 0], [0.6, 0.8]]])  # a cosine of 0.6
    outputs = head(TokenStates(states, torch.ones(1, 2, dtype=torch.bool)), [1])
    assert outputs.sigmoid().item() == pytest.approx(0.6, abs=0.03)


def test_the_comparing_head_begins_as_a_cosine(tiny_folder: FolderOf) -> None:
    cross = make(tiny_folder("bert"), head="compare")
    pair = cross.pair_tokenizer.pair(*cross.pair_tokenizer.ids(["a dog", "the old cat"]))
    with torch.no_grad():
        states = cross.encoder([pair.ids], [pair.segments]).states[0]
        cosine = torch.cosine_similarity(states[:4].mean(0), states[4:].mean(0), dim=0)
        assert cross([pair]).item() == pytest.approx(10 * cosine.item() - 5, abs=1e-5)


@pytest.mark.parametrize("architecture", ["bert", "roberta"])
def test_the_candidate_begins_after_all_that_comes_before_it(
    tiny_folder: FolderOf, architecture: str
) -> None:
    pairs = make(tiny_folder(architecture), head="compare").pair_tokenizer
    context, candidate = pairs.ids(["a dog", "the old cat"])
    pair = pairs.pair(context, candidate)
    assert pair.ids[pair.candidate_start :][: len(candidate)] == candidate


def test_a_comparing_head_gives_no_classes() -> None:
    with pytest.raises(tercet.InputError, match="1 score, not 3 classes"):
        tercet.CrossConfig(head="compare", outputs=3)


def test_a_new_native_head_may_have_other_outputs_than_the_folder(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    classes = make(tiny_folder("bert"), head="native", outputs=3)
    score = make(classes.save(tmp_path / "classes"), head="native", outputs=1)
    assert score.score("a dog", ["the old cat"]).shape == (1,)
    of_both = [dict(each.encoder.named_parameters()) for each in (classes, score)]
    assert all(torch.equal(weight, of_both[1][name]) for name, weight in of_both[0].items())


def test_activations() -> None:
    outputs = torch.tensor([[0.0, 1.0]])
    assert activate(outputs, "identity").tolist() == [[0, 1]]
    assert activate(outputs, "sigmoid")[0, 0] == 0.5
    assert activate(outputs, "softmax").sum().item() == pytest.approx(1)
    torch.testing.assert_close(activate(outputs, "tanh"), outputs.tanh())


@pytest.mark.parametrize("activation", ["sigmoid", "softmax"])
def test_half_precision_does_not_saturate_into_ties(activation: str) -> None:
    ladder = torch.arange(6.0, 10.0, 0.25)  # in bfloat16 a sigmoid of these is 1
    outputs = torch.stack([ladder, torch.zeros_like(ladder)], dim=1).bfloat16()
    scores = activate(outputs, activation)[:, 0]  # type: ignore[arg-type]
    assert scores.dtype == torch.float32
    assert len(scores.unique()) == len(ladder)


def test_the_head_of_a_bf16_model_stays_in_float32(tiny_folder: FolderOf) -> None:
    scorer = tercet.CrossEncoder.from_backbone(tiny_folder("bert"), precision="bf16", device="cpu")
    assert all(weight.dtype == torch.float32 for weight in scorer.head.parameters())
    many = [f"{left} {right}" for left in SENTENCES for right in SENTENCES]
    assert len(np.unique(scorer.score("old bread", many))) == len(many)


def test_classes_come_out_for_each_pair(tiny_folder: FolderOf) -> None:
    scorer = make(tiny_folder("bert"), outputs=3, activation="softmax", labels=("no", "maybe", "yes"))
    values = scorer.classify(SENTENCES, SENTENCES[::-1])
    assert values.shape == (len(SENTENCES), 3)
    np.testing.assert_allclose(values.sum(axis=1), 1, rtol=1e-6)
    scorer.forward = None  # type: ignore[method-assign]  # nothing is computed in vain
    with pytest.raises(tercet.InputError, match=r"3 classes \(no, maybe, yes\) and no score"):
        scorer.score("cat", ["dog"])


def test_a_class_can_be_the_score(tiny_folder: FolderOf) -> None:
    scorer = make(tiny_folder("bert"), outputs=3, activation="softmax", score_class=2)
    values = scorer.classify(SENTENCES, SENTENCES[::-1])
    np.testing.assert_array_equal(scorer.score_pairs(SENTENCES, SENTENCES[::-1]), values[:, 2])


def test_outputs_get_gradients(cross: tercet.CrossEncoder) -> None:
    pairs = cross.pair_tokenizer
    cross([pairs.pair(*pairs.ids(["a dog", "the cat"]))]).sum().backward()
    first = next(cross.encoder.parameters())
    assert first.grad is not None
    assert first.grad.abs().max() > 0


def test_heads_follow_their_seed(tiny_folder: FolderOf) -> None:
    for head in ("linear", "dense", "native"):
        config = tercet.CrossConfig(head=head)  # type: ignore[arg-type]
        one, same, other = (
            tercet.CrossEncoder.from_backbone(tiny_folder("bert"), config=config, seed=seed, device="cpu")
            for seed in (0, 0, 1)
        )
        assert one.fingerprint == same.fingerprint != other.fingerprint


def test_a_tokenizer_without_a_template_for_pairs_is_refused(tiny_folder: FolderOf, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_folder("bert"), tmp_path / "bare"))
    content = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps(content | {"post_processor": None}))
    with pytest.raises(tercet.ModelError, match="no special tokens around a pair"):
        make(folder)


def test_a_model_without_room_for_two_texts_is_refused(tiny_folder: FolderOf) -> None:
    with pytest.raises(tercet.InputError, match="room for two texts beside 3 special tokens, got 4"):
        make(tiny_folder("bert"), max_tokens=4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"head": "deep"}, "head must be one of linear, dense, native, compare, got 'deep'"),
        ({"outputs": 0}, "outputs must be at least 1, got 0"),
        ({"activation": "relu"}, "activation must be one of identity, sigmoid, softmax, tanh"),
        ({"activation": "softmax"}, "softmax over one output is always 1"),
        ({"outputs": 3, "labels": ("a", "b")}, "3 outputs need as many different labels, got a, b"),
        ({"outputs": 2, "labels": ("a", "a")}, "2 outputs need as many different labels, got a, a"),
        ({"outputs": 3, "labels": "abc"}, "labels must be a list of strings, got 'abc'"),
        ({"outputs": 3, "score_class": 3}, "score_class must be between 0 and 2, got 3"),
        ({"context_floor": 0}, "context_floor must be at least 1, got 0"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(tercet.InputError, match=message):
        tercet.CrossConfig(**settings)
