"""The bi-encoder: ranking, truncation, and checks of its arguments."""

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.conftest import SENTENCES

import tercet
from tercet.arrays import top_k
from tercet.data.sample import questions
from tercet.errors import InputError, TruncationWarning

FolderOf = Callable[[str], Path]


def test_the_packaged_model_finds_the_answer(minilm: tercet.BiEncoder) -> None:
    answers = ["Press the link under the sign-in box.", "Water it once a week.", "The train leaves at nine."]
    assert minilm.rank("I forgot my password", answers, k=1)[0].position == 0


def test_the_packaged_model_finds_most_sample_answers(minilm: tercet.BiEncoder) -> None:
    faq = questions("en")
    rankings = minilm.rank_many([q.context for q in faq], [q.answer for q in faq], k=5)
    found = [position in [ranked.position for ranked in ranking] for position, ranking in enumerate(rankings)]
    assert np.mean(found) > 0.85


def test_cosine_of_a_text_with_itself_is_one(tiny: tercet.BiEncoder) -> None:
    np.testing.assert_allclose(tiny.score_many(SENTENCES, SENTENCES).diagonal(), 1.0, atol=1e-6)


def test_dot_is_the_product_of_the_vectors(tiny_folder: FolderOf) -> None:
    config = tercet.BiConfig(similarity="dot")
    scorer = tercet.BiEncoder.from_backbone(tiny_folder("bert"), config=config, device="cpu")
    expected = scorer.encode_contexts(SENTENCES).vectors[:, 0] @ scorer.encode_candidates(SENTENCES).T
    np.testing.assert_allclose(scorer.score_many(SENTENCES, SENTENCES), expected, rtol=1e-6)


def test_turns_are_joined_into_one_text(tiny: tercet.BiEncoder) -> None:
    codes = tiny.encode_contexts([["the cat", "sat on the mat"], "the cat\nsat on the mat"]).vectors
    np.testing.assert_allclose(codes[0], codes[1], atol=1e-6)


def test_a_long_dialogue_keeps_its_newest_turns(tiny: tercet.BiEncoder) -> None:
    newest = ["one two three four five six seven eight nine ten"] * 5 + ["the old dog ran"]
    with pytest.warns(TruncationWarning):
        ours, other_start, other_end = tiny.encode_contexts(
            [["never not bread", *newest], ["red river", *newest], [*newest[:-1], "the old dog sat"]]
        ).vectors
    np.testing.assert_allclose(ours, other_start, atol=1e-6)
    assert np.abs(ours - other_end).max() > 1e-3


def test_truncated_tokens_are_counted_for_each_text(tiny: tercet.BiEncoder) -> None:
    room = tiny.tokenizer.max_tokens - 2
    long = " ".join(["cat"] * (room + 5))
    assert tiny.truncated_tokens(["cat", long], "candidate").tolist() == [0, 5]
    assert tiny.truncated_tokens([["cat", long], "cat"], "context").tolist() == [6, 0]
    with pytest.warns(TruncationWarning):
        ranking = tiny.rank(["cat", long], ["cat", long], k=2)
    truncated = {
        ranked.position: (ranked.context_truncated, ranked.candidate_truncated) for ranked in ranking
    }
    assert truncated == {0: (6, 0), 1: (6, 5)}


def test_truncation_is_warned_about_once(tiny: tercet.BiEncoder) -> None:
    long = "cat " * 200
    with pytest.warns(
        TruncationWarning, match=r"1 of 2 candidates are longer than this model's 48 tokens"
    ) as caught:
        tiny.encode_candidates(["cat", long])
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tiny.encode_candidates([long])


def test_a_megabyte_of_text_is_truncated_like_any_other(minilm: tercet.BiEncoder) -> None:
    scorer = tercet.load("bi", device="cpu")
    with pytest.warns(TruncationWarning):
        megabyte, unbroken = scorer.encode_candidates(["one word after another " * 45_000, "x" * 1_000_000])
    start = minilm.encode_candidates(["one word after another " * 63 + "one word"])[0]
    np.testing.assert_allclose(megabyte, start, atol=1e-5)
    assert np.isfinite(unbroken).all()


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ([], "there are no candidates"),
        ("a text", "candidates must be a list, got str 'a text'"),
        (["cat", None], "candidate 1 must be a string, got None"),
        (["cat", float("nan")], "candidate 1 must be a string, got float nan"),
        (["cat", "dog", 3], "candidate 2 must be a string, got int 3"),
        (["cat", ["dog"]], "candidate 1 must be a string, got list"),
        (["cat", ""], "candidate 1 is empty"),
        ([" \t\n\u3000"], "candidate 0 is empty"),
        (["cat", "dog \udc80"], r"candidate 1 holds a lone surrogate \(U\+DC80 at character 4\)"),
        (None, "candidates must be a list, got None"),
    ],
)
def test_invalid_candidates_are_named(tiny: tercet.BiEncoder, candidates: object, message: str) -> None:
    for use in (tiny.score, tiny.rank):
        with pytest.raises(InputError, match=message):
            use("the cat", candidates)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ("", "context is empty"),
        ([], "context has no turns"),
        (None, "context must be a string or a list of turns, got None"),
        (7, "context must be a string or a list of turns, got int 7"),
        (["cat", " "], "turn 1 of context is empty"),
        (["cat", 5], "turn 1 of context must be a string, got int 5"),
    ],
)
def test_invalid_contexts_are_named(tiny: tercet.BiEncoder, context: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tiny.score(context, SENTENCES)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("k", "message"),
    [(0, "at least 1, got 0"), (-3, "at least 1, got -3"), (2.5, "whole number"), (True, "whole")],
)
def test_an_invalid_k_is_refused(tiny: tercet.BiEncoder, k: object, message: str) -> None:
    with pytest.raises(InputError, match=f"k must be .*{message}"):
        tiny.rank("cat", SENTENCES, k=k)  # type: ignore[arg-type]


def test_k_may_be_a_numpy_integer(tiny: tercet.BiEncoder) -> None:
    assert len(tiny.rank("cat", SENTENCES, k=np.int64(2))) == 2  # type: ignore[arg-type]


def test_turns_may_be_an_array(tiny: tercet.BiEncoder) -> None:
    turns = np.array(SENTENCES[:2])
    np.testing.assert_array_equal(tiny.score(turns, ["cat"]), tiny.score(SENTENCES[:2], ["cat"]))  # type: ignore[arg-type]


def test_a_set_of_candidates_is_refused(tiny: tercet.BiEncoder) -> None:
    with pytest.raises(InputError, match="candidates must be a list, got set"):
        tiny.rank("cat", {"a", "b"})


def test_scoring_in_training_mode_is_refused(tiny: tercet.BiEncoder) -> None:
    tiny.train()
    with pytest.raises(InputError, match=r"training mode, where dropout is active: call \.eval\(\) first"):
        tiny.score("cat", ["dog"])


def test_a_prompt_must_leave_room_for_text(tiny_folder: FolderOf) -> None:
    config = tercet.BiConfig(context_prompt="cat " * 60)
    with pytest.raises(InputError, match="the prompt has 60 tokens and leaves no room for text within 46"):
        tercet.BiEncoder.from_backbone(tiny_folder("bert"), config=config, device="cpu")


def test_a_double_precision_model_scores_alike(tiny: tercet.BiEncoder) -> None:
    expected = tiny.score("cat", SENTENCES)
    np.testing.assert_allclose(tiny.double().score("cat", SENTENCES), expected, atol=1e-5)


def test_a_string_is_refused_as_a_list_of_contexts(tiny: tercet.BiEncoder) -> None:
    with pytest.raises(InputError, match="contexts must be a list"):
        tiny.score_many("the cat", SENTENCES)


def test_unequal_pairs_are_refused(tiny: tercet.BiEncoder) -> None:
    with pytest.raises(InputError, match="as many contexts as candidates, got 2 and 1"):
        tiny.score_pairs(["a", "b"], ["a"])


def test_a_k_above_the_number_of_candidates_ranks_them_all(tiny: tercet.BiEncoder) -> None:
    assert len(tiny.rank("cat", SENTENCES, k=100)) == len(SENTENCES)


def test_candidates_may_come_from_a_generator(tiny: tercet.BiEncoder) -> None:
    assert len(tiny.rank("cat", (text for text in SENTENCES), k=3)) == 3


def test_equal_scores_keep_their_order() -> None:
    values = np.array([1, 3, 3, 0, 3, 2], dtype=np.float32)
    assert top_k(values, 2).tolist() == [1, 2]
    assert top_k(values, 4).tolist() == [1, 2, 4, 5]
    assert top_k(values, 9).tolist() == [1, 2, 4, 5, 0, 3]


def test_duplicate_candidates_are_adjacent_in_their_order(tiny: tercet.BiEncoder) -> None:
    ranking = tiny.rank("the cat", ["a dog", "the cat", "a dog", "the cat"], k=4)
    assert [ranked.position for ranked in ranking] == [1, 3, 0, 2]


def test_training_the_context_tower_leaves_the_candidate_tower_unchanged(tiny_folder: FolderOf) -> None:
    scorer = tercet.BiEncoder.from_backbone(
        tiny_folder("bert"), config=tercet.BiConfig(towers=2), device="cpu"
    )
    before = scorer.encode_candidates(SENTENCES)
    ids = scorer.token_ids(SENTENCES, "context")
    scorer.context_codes(ids).vectors.square().sum().backward()
    with torch.no_grad():
        for weight in scorer.context_tower.parameters():
            if weight.grad is not None:
                weight -= 0.1 * weight.grad
    np.testing.assert_array_equal(scorer.encode_candidates(SENTENCES), before)
    assert np.abs(scorer.encode_contexts(SENTENCES).vectors[:, 0] - before).max() > 1e-3


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(InputError, match="similarity must be one of cosine, dot, got 'l2'"):
        tercet.BiConfig(similarity="l2")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="towers must be 1 or 2, got 3"):
        tercet.BiConfig(towers=3)
    with pytest.raises(InputError, match="turn_separator must be a string, got None"):
        tercet.BiConfig(turn_separator=None)  # type: ignore[arg-type]
