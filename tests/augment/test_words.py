"""Words change, everything else stays."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import make_tokenizer
from transformers import BertConfig, BertForMaskedLM

from tercet.augment.changes import alike, change_words
from tercet.augment.proposers import MaskedWords, NearWords, whole_words
from tercet.augment.silver import Silver
from tercet.augment.words import (
    WordConfig,
    changed_pairs,
    changed_text,
    in_case_of,
    is_free,
    pieces_of,
    words_of,
)
from tercet.errors import DataError, InputError, ModelError
from tercet.records import Lesson


class Says:
    """Proposes one word everywhere."""

    def __init__(self, word: str) -> None:
        self.word = word

    def instead(self, pieces: Sequence[str], place: int) -> Sequence[str]:
        return [self.word]

    def before(self, pieces: Sequence[str], place: int) -> Sequence[str]:
        return [self.word]


def changed(
    text: str, change: str, *, rate: float = 0.01, seed: int = 0, protected: set[str] | None = None
) -> str | None:
    return changed_text(
        text, change, random.Random(seed), rate=rate, protected=protected or set(), proposer=Says("owl")
    )  # fmt: skip


@given(st.text())
def test_the_pieces_are_the_text(text: str) -> None:
    assert "".join(pieces_of(text)) == text


def test_words_and_what_stands_between_them_take_turns() -> None:
    pieces = pieces_of("Well, I don't know!")
    assert pieces == ["", "Well", ", ", "I", " ", "don't", " ", "know", "!"]
    assert [pieces[place] for place in words_of(pieces)] == ["Well", "I", "don't", "know"]


def test_one_word_is_replaced_and_the_rest_stays() -> None:
    assert changed("(a cat!)", "substitution", seed=1) in {"(owl cat!)", "(a owl!)"}


def test_a_rate_is_a_share_of_the_words() -> None:
    text = " ".join(f"word{chr(97 + n)}" for n in range(10))
    made = changed(text, "substitution", rate=0.3)
    assert made is not None
    assert made.split().count("owl") == 3


def test_an_insertion_keeps_every_word() -> None:
    made = changed("a red cat", "insertion")
    assert made is not None
    words = made.split()
    words.remove("owl")
    assert words == ["a", "red", "cat"]


def test_a_deletion_leaves_no_double_space() -> None:
    assert changed("a cat", "deletion") in {"a", "cat"}


def test_a_swap_exchanges_neighbours() -> None:
    assert changed("red cat", "swap") == "cat red"


@pytest.mark.parametrize("change", ["substitution", "deletion", "swap"])
@given(seed=st.integers(0, 50))
def test_numbers_negations_and_protected_words_stay(change: str, seed: int) -> None:
    made = changed("he did not buy 12 Apples never", change, seed=seed, rate=1.0, protected={"apples"})
    assert made is not None
    assert {"not", "12", "Apples", "never"} <= set(made.split())


@pytest.mark.parametrize("word", ["not", "isn't", "two", "7up", "Secret"])
@pytest.mark.parametrize("change", ["substitution", "insertion"])
def test_no_number_negation_or_protected_word_comes_in(change: str, word: str) -> None:
    made = changed_text(
        "a red cat", change, random.Random(0), rate=1.0, protected={"secret"}, proposer=Says(word)
    )
    assert made is None


@pytest.mark.parametrize("word", ["two", "mustn't", "isn’t", "hardly", "12th"])
def test_words_that_decide_what_is_said_are_not_free(word: str) -> None:
    assert not is_free(word, ())


def test_a_deletion_leaves_a_word() -> None:
    assert changed("Yes.", "deletion", rate=1.0) is None


def test_two_texts_that_became_equal_are_left_out() -> None:
    gold = [Lesson("red cat", ("cat red",), (2.0,))]
    config = WordConfig(changes=("swap",), copies=20, least_similarity=-1)
    made = changed_pairs(gold, "swap", config, None)
    assert {(row.context, row.candidate) for row in made} == {("cat red", "red cat")}


@pytest.mark.parametrize("change", ["substitution", "insertion", "deletion", "swap"])
def test_a_text_without_a_free_word_is_left_alone(change: str) -> None:
    assert changed("12 34 not!", change) is None


def test_a_text_is_never_deleted_as_a_whole() -> None:
    assert changed("cat", "deletion", rate=1.0) is None


def test_the_case_is_kept() -> None:
    assert changed("CAT!", "substitution") == "OWL!"
    assert [in_case_of("owl", like) for like in ("cat", "Cat", "CAT", "I")] == ["owl", "Owl", "OWL", "Owl"]


GOLD = [Lesson("a red cat sat on the mat", ("the old dog ran",), (float(n),)) for n in range(3)]


def test_the_same_seed_makes_the_same_pairs() -> None:
    one = change_words(GOLD, "swap", WordConfig(changes=("swap",), least_similarity=-1, seed=1))
    assert one == change_words(GOLD, "swap", WordConfig(changes=("swap",), least_similarity=-1, seed=1))
    assert one != change_words(GOLD, "swap", WordConfig(changes=("swap",), least_similarity=-1, seed=2))


def test_copies_differ_from_gold_and_from_each_other() -> None:
    config = WordConfig(changes=("deletion",), copies=5, least_similarity=-1)
    made = change_words(GOLD[:1], "deletion", config)
    assert 1 < len({(row.context, row.candidate) for row in made}) == len(made)
    assert (GOLD[0].context, GOLD[0].candidates[0]) not in {(row.context, row.candidate) for row in made}


@pytest.mark.parametrize(
    ("context", "candidate", "kept"),
    [
        ("a red cat sat on the mat", "the old dog ran", 1),
        ("bread and water", "the old dog ran", 0),
        ("a red cat sat on the mat", "bread and water", 0),
    ],
    ids=["same", "other context", "other candidate"],
)
def test_a_text_that_no_longer_means_the_same_is_left_out(
    context: str, candidate: str, kept: int, tiny_folder: Callable[[str], Path]
) -> None:
    config = WordConfig(encoder=str(tiny_folder("bert")), least_similarity=0.999)
    rows = [Silver(context, candidate, 1.0, "swap", (0, 0), "")]
    assert len(alike(rows, GOLD, config)) == kept


def test_near_words_are_the_nearest_in_the_table(tiny_folder: Callable[[str], Path]) -> None:
    near = NearWords(tiny_folder("bert"), best=3)
    found = near.instead(["", "cat", ""], 1)
    assert len(found) == 3
    assert "cat" not in found
    assert near.instead(["", "zebra", ""], 1) == []


@pytest.fixture
def masked(tmp_path: Path) -> Path:
    tokenizer = make_tokenizer()
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, pad_token_id=1
    )
    BertForMaskedLM(config).save_pretrained(tmp_path / "mlm")
    tokenizer.save_pretrained(tmp_path / "mlm")
    return tmp_path / "mlm"


def test_a_masked_language_model_proposes_words_for_a_gap(masked: Path) -> None:
    pieces = pieces_of("the red cat")
    proposer = MaskedWords(masked, best=4)
    words = set(whole_words(list(make_tokenizer().get_vocab())).values())
    for found in (proposer.instead(pieces, 3), proposer.before(pieces, 3)):
        assert len(found) == 4
        assert set(found) <= words


def test_a_model_without_a_head_is_no_language_model(tiny_folder: Callable[[str], Path]) -> None:
    with pytest.raises(ModelError, match="no head that predicts words"):
        MaskedWords(tiny_folder("bert"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"changes": ()}, "at least one of"),
        ({"changes": ("shout",)}, "a change must be one of"),
        ({"rate": 0.0}, "rate must be above 0"),
        ({"copies": 0}, "copies must be"),
        ({"least_similarity": 2.0}, "from -1 to 1"),
    ],
)
def test_settings_are_checked(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        WordConfig(**settings)


def test_a_change_that_changes_nothing_says_so() -> None:
    with pytest.raises(DataError, match="swap made nothing new of 1 pairs"):
        change_words([Lesson("cat", ("dog",), (1.0,))], "swap", WordConfig(changes=("swap",)))
