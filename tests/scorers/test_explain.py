"""Explanations of all scorers: exact ones add up, and leaving words out equals scores of shorter texts."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.conftest import SENTENCES
from torch import nn

import tercet
from tercet.errors import TruncationWarning
from tercet.evaluate.baselines import BASELINES
from tercet.records import Context, Explanation, ExplanationMethod, Floats
from tercet.scorers.bi import BiParts
from tercet.scorers.explain import similarity_parts
from tercet.scorers.leave_one_out import MAX_WORDS, ScoredPair, explain_by_leaving_out
from tercet.scorers.pooling import pool, pooled_parts
from tercet.scorers.tower import Dense, Normalize, Tower, TruncateDimensions
from tercet.settings.models import POOLING_KINDS, BiConfig, CrossConfig, PoolingConfig

FolderOf = Callable[[str], Path]
CONTEXT = ["a dog ran", "the cat sat on the mat"]


def make_bi(
    folder: Path, *layers: nn.Module, pooling: tuple[str, ...] = ("mean",), **config: object
) -> tercet.BiEncoder:
    """A tiny bi-encoder with layers after its pooling."""
    scorer = tercet.BiEncoder.from_backbone(
        folder, config=BiConfig(**config), pooling=PoolingConfig(kinds=pooling), device="cpu"
    )
    parts = scorer.parts()
    tower = Tower(parts.context_tower.encoder, parts.context_tower.pooling, layers)
    return tercet.BiEncoder(BiParts(parts.tokenizer, tower, tower, parts.config))


def total(tokens: tuple[object, ...]) -> float:
    return sum(token.contribution for token in tokens)


def assert_adds_up(found: Explanation, score: float) -> None:
    assert found.method is ExplanationMethod.EXACT
    assert found.score == pytest.approx(score, abs=1e-6)
    assert total(found.tokens) == pytest.approx(score, abs=1e-6)
    assert total(found.candidate_tokens) == pytest.approx(score, abs=1e-6)


def test_contributions_to_a_similarity_equal_those_worked_out_by_hand() -> None:
    left = np.float32([[3.0, 0.0], [0.0, 4.0]])  # adds up to (3, 4), whose norm is 5
    right = np.float32([[0.0, 2.0]])
    dot = similarity_parts(left, right, cosine=False)
    assert [part.tolist() for part in dot] == [[0.0, 8.0], [8.0]]
    cosine = similarity_parts(left, right, cosine=True)
    assert [part.tolist() for part in cosine] == [[0.0, 0.8], [0.8]]


def test_the_token_with_the_maximum_of_a_dimension_has_all_of_it() -> None:
    states = torch.tensor([[[1.0, -2.0], [5.0, -7.0], [9.0, 9.0]]])
    mask = torch.tensor([[True, True, False]])
    parts = pooled_parts(states, mask, PoolingConfig(kinds=("max",)))
    assert parts.tolist() == [[[0.0, -2.0], [5.0, 0.0], [0.0, 0.0]]]


@pytest.mark.parametrize("kind", POOLING_KINDS)
def test_the_parts_of_tokens_add_up_to_the_pooled_vector(kind: str) -> None:
    states = torch.randn(1, 5, 3, generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[True, True, True, True, False]])
    config = PoolingConfig(kinds=(kind, "mean"), first_tokens=2)
    torch.testing.assert_close(pooled_parts(states, mask, config).sum(dim=1), pool(states, mask, config))


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("pooling", [("mean",), ("max",), ("mean", "max"), ("weighted_mean",)])
def test_the_explanation_of_a_bi_encoder_adds_up(
    pooling: tuple[str, ...], similarity: str, tiny_folder: FolderOf
) -> None:
    scorer = make_bi(tiny_folder("bert"), Normalize(), pooling=pooling, similarity=similarity)
    score = float(scorer.score(CONTEXT, [SENTENCES[2]])[0])
    found = scorer.explain(CONTEXT, SENTENCES[2])
    assert_adds_up(found, score)
    assert [token.text for token in found.tokens][1:4] == ["a", "dog", "ran"]
    assert [token.text for token in found.candidate_tokens][1:3] == ["one", "two"]
    assert (found.codes, found.attention.shape) == ((), (0, len(found.tokens)))


def test_the_explanation_of_the_packaged_bi_encoder_adds_up(minilm: tercet.BiEncoder) -> None:
    for texts in (("Is it raining?", "Yes, take an umbrella."), ("비가 오나요?", "네, 우산을 챙기세요.")):
        assert_adds_up(minilm.explain(*texts), float(minilm.score(texts[0], [texts[1]])[0]))


def test_linear_layers_keep_the_explanation_exact(tiny_folder: FolderOf) -> None:
    torch.manual_seed(1)
    dense = Dense(nn.Linear(16, 8, bias=False), nn.Identity(), residual=nn.Linear(16, 8, bias=False))
    scorer = make_bi(tiny_folder("bert"), dense, TruncateDimensions(6), Normalize())
    assert_adds_up(scorer.explain("a dog", "old house"), float(scorer.score("a dog", ["old house"])[0]))


@pytest.mark.parametrize("dense", [(True, nn.Identity()), (False, nn.Tanh())], ids=["bias", "tanh"])
def test_a_layer_that_is_not_linear_is_explained_by_leaving_out(
    dense: tuple[bool, nn.Module], tiny_folder: FolderOf
) -> None:
    scorer = make_bi(tiny_folder("bert"), Dense(nn.Linear(16, 8, bias=dense[0]), dense[1]))
    assert scorer.explain("a dog", "old house").method is ExplanationMethod.LEAVE_ONE_OUT


def test_the_tokens_of_a_prompt_are_explained_without_characters(tiny_folder: FolderOf) -> None:
    scorer = make_bi(tiny_folder("bert"), context_prompt="old tree ", candidate_prompt="a ")
    found = scorer.explain("dog ran", "bread")
    assert [(token.text, token.start, token.end) for token in found.tokens] == [
        ("<s>", 0, 0),
        ("old", 0, 0),
        ("tree", 0, 0),
        ("dog", 0, 3),
        ("ran", 4, 7),
        ("</s>", 0, 0),
    ]
    assert_adds_up(found, float(scorer.score("dog ran", ["bread"])[0]))


def test_first_pooling_says_that_one_token_has_the_whole_score(tiny_folder: FolderOf) -> None:
    found = make_bi(tiny_folder("bert"), pooling=("first",)).explain("a dog", "old house")
    assert [token.contribution for token in found.tokens[1:]] == [0.0, 0.0, 0.0]
    assert "the vector of a context is the state of its first token" in found.notes[0]


def test_a_bi_encoder_counts_truncated_tokens_in_its_explanation(tiny_folder: FolderOf) -> None:
    found = make_bi(tiny_folder("bert")).explain("cat " * 50, "bread " * 48)
    assert (found.context_truncated, found.candidate_truncated) == (4, 2)


@pytest.fixture
def cross(tiny_folder: FolderOf) -> tercet.CrossEncoder:
    return tercet.CrossEncoder.from_backbone(tiny_folder("bert"), device="cpu")


def test_leaving_a_word_out_equals_the_score_of_the_shorter_text(cross: tercet.CrossEncoder) -> None:
    found = cross.explain("the  cat sat", "old house")
    score = cross.score("the  cat sat", ["old house"])[0]
    shorter = [cross.score(text, ["old house"])[0] for text in ("cat sat", "the  sat", "the  cat")]
    assert found.method is ExplanationMethod.LEAVE_ONE_OUT
    assert [token.text for token in found.tokens] == ["the", "cat", "sat"]
    np.testing.assert_allclose([t.contribution for t in found.tokens], score - np.array(shorter), atol=1e-6)
    without = cross.score("the  cat sat", ["house", "old"])
    np.testing.assert_allclose([t.contribution for t in found.candidate_tokens], score - without, atol=1e-6)


def test_a_turn_without_its_only_word_is_left_out(cross: tercet.CrossEncoder) -> None:
    found = cross.explain(["never", "a dog"], "bread and")
    assert found.context == "never\na dog"
    assert [(token.text, token.start) for token in found.tokens] == [("never", 0), ("a", 6), ("dog", 8)]
    pairs = [("never", "a dog"), ("a dog",), ("never", "dog"), ("never", "a")]
    score, *shorter = cross.score_pairs(pairs, ["bread and"] * 4)
    np.testing.assert_allclose([t.contribution for t in found.tokens], score - np.array(shorter), atol=1e-6)


def test_only_words_that_the_model_reads_are_left_out(cross: tercet.CrossEncoder) -> None:
    room = cross.tokenizer.max_tokens - 3 - 2  # three special tokens, two of the candidate
    with pytest.warns(TruncationWarning):
        found = cross.explain(" ".join(["red"] * 9 + ["river"] * room), "old house")
    assert found.context_truncated == 9
    assert [token.text for token in found.tokens] == ["river"] * room


def test_leaving_a_word_out_lets_no_truncated_word_in(cross: tercet.CrossEncoder) -> None:
    room = cross.tokenizer.max_tokens - 3 - 2
    read = ["river", "never"] * (room // 2) + ["old"] * (room % 2)
    with pytest.warns(TruncationWarning):
        found = cross.explain(" ".join(["red"] * 9 + read), "old house")
    shorter = [" ".join(read[:n] + read[n + 1 :]) for n in range(room)]
    score, *without = cross.score_pairs([" ".join(read), *shorter], ["old house"] * (room + 1))
    assert found.score == pytest.approx(float(score), abs=1e-6)
    assert [token.start for token in found.tokens[:2]] == [36, 42]  # in the whole text
    np.testing.assert_allclose([t.contribution for t in found.tokens], score - np.array(without), atol=1e-6)


def scored_pair(text: Context, **spans: tuple[int, int]) -> ScoredPair:
    """A pair of which a scorer reads only these characters."""
    return ScoredPair(
        context=text,
        candidate="good day then",
        score=5.0,
        separator="|",
        context_span=spans.get("context", (0, 0)),
        candidate_span=spans.get("candidate", (0, 0)),
        context_truncated=int("context" in spans),
        candidate_truncated=int("candidate" in spans),
    )


def test_only_whole_words_that_are_read_are_scored() -> None:
    scored: list[tuple[Context, str]] = []

    def letters(contexts: Sequence[Context], candidates: Sequence[str]) -> Floats:
        scored.extend(zip(contexts, candidates, strict=True))
        return np.array([len(str(text)) for text in contexts], dtype=np.float32) + [
            100 * len(text) for text in candidates
        ]

    # of "never a dog ran", "ver a dog ran" is read; of "good day then", "good day th"
    found = explain_by_leaving_out(
        scored_pair("never a dog ran", context=(2, 15), candidate=(0, 11)), letters
    )
    assert scored == [
        ("a dog ran", "good day"),
        ("dog ran", "good day"),
        ("a ran", "good day"),
        ("a dog", "good day"),
        ("a dog ran", "day"),
        ("a dog ran", "good"),
    ]
    assert [(t.text, t.start, t.contribution) for t in found.tokens] == [
        ("a", 6, 2.0),
        ("dog", 8, 4.0),
        ("ran", 12, 4.0),
    ]
    assert [(t.text, t.contribution) for t in found.candidate_tokens] == [("good", 500.0), ("day", 400.0)]
    assert found.score == 5.0


def test_turns_that_are_not_read_are_not_scored() -> None:
    scored: list[Context] = []

    def none(contexts: Sequence[Context], candidates: Sequence[str]) -> Floats:
        scored.extend(contexts)
        return np.zeros(len(contexts), dtype=np.float32)

    # of "hello|you there|fine", "u there|fine" is read
    found = explain_by_leaving_out(scored_pair(("hello", "you there", "fine"), context=(8, 20)), none)
    assert scored[:3] == [("there", "fine"), ("fine",), ("there",)]
    assert [(token.text, token.start) for token in found.tokens] == [("there", 10), ("fine", 16)]


def test_less_than_two_words_that_are_read_are_not_left_out() -> None:
    scored: list[Context] = []

    def none(contexts: Sequence[Context], candidates: Sequence[str]) -> Floats:
        scored.extend(contexts)
        return np.zeros(len(contexts), dtype=np.float32)

    found = explain_by_leaving_out(scored_pair("endlessly long", context=(10, 14)), none)
    assert found.notes == ("the model reads less than two words of the context, so none is left out",)
    assert (found.tokens, set(scored)) == ((), {"long"})


def test_neighbours_are_left_out_together_in_a_long_text() -> None:
    scorer = BASELINES["bm25"]()
    scorer.fit(["a dog", "the cat"])
    found = scorer.explain("dog " * (2 * MAX_WORDS + 1), "dog cat")
    assert len(found.tokens) == 134  # groups of three
    assert found.tokens[0].text == "dog dog dog"
    assert found.notes == ("the context has 401 words: up to 3 neighbours were left out together",)


def test_a_single_word_cannot_be_left_out(cross: tercet.CrossEncoder) -> None:
    found = cross.explain("never", "雨")
    assert (found.tokens, found.candidate_tokens) == ((), ())
    assert found.notes == tuple(
        f"the {side} has one word, which cannot be left out" for side in ("context", "candidate")
    )


def test_characters_of_chinese_and_words_of_korean_are_left_out(cross: tercet.CrossEncoder) -> None:
    found = cross.explain("비가 와요", "下雨了 ok")
    assert [token.text for token in found.tokens] == ["비가", "와요"]
    assert [token.text for token in found.candidate_tokens] == ["下", "雨", "了", "ok"]


def test_classes_without_a_score_are_not_explained(tiny_folder: FolderOf) -> None:
    scorer = tercet.CrossEncoder.from_backbone(tiny_folder("bert"), config=CrossConfig(num_labels=2))
    with pytest.raises(tercet.errors.InputError, match=r"2 classes .* and no score"):
        scorer.explain("a dog", "old house")
