"""Changed words: what may change, and what stays."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import make_tokenizer
from transformers import BertConfig, BertForMaskedLM

from tercet.augment.changes import change_words, similar_enough
from tercet.augment.proposers import MaskedWords, NearWords, whole_words
from tercet.augment.silver import Silver
from tercet.augment.words import (
    changed_pairs,
    changed_text,
    is_changeable,
    match_case,
    pieces_of,
    words_of,
)
from tercet.errors import DataError, InputError, ModelError
from tercet.records import Example
from tercet.settings.augment import WordsConfig


class FixedProposer:
    """Proposes one word everywhere."""

    def __init__(self, word: str) -> None:
        self.word = word

    def replacements(self, pieces: Sequence[str], position: int) -> Sequence[str]:
        return [self.word]

    def insertions(self, pieces: Sequence[str], position: int) -> Sequence[str]:
        return [self.word]


def changed(
    text: str, change: str, *, rate: float = 0.01, seed: int = 0, protected: set[str] | None = None
) -> str | None:
    owl = FixedProposer("owl")
    return changed_text(
        text, change, random.Random(seed), rate=rate, protected=protected or set(), proposer=owl
    )


@given(st.text())
def test_joined_pieces_equal_the_text(text: str) -> None:
    assert "".join(pieces_of(text)) == text


def test_words_and_separators_alternate() -> None:
    pieces = pieces_of("Well, I don't know!")
    assert pieces == ["", "Well", ", ", "I", " ", "don't", " ", "know", "!"]
    assert [pieces[position] for position in words_of(pieces)] == ["Well", "I", "don't", "know"]


def test_substitution_replaces_one_word() -> None:
    assert changed("(a cat!)", "substitution", seed=1) in {"(owl cat!)", "(a owl!)"}


def test_the_rate_is_a_share_of_the_words() -> None:
    text = " ".join(f"word{chr(97 + n)}" for n in range(10))
    found = changed(text, "substitution", rate=0.3)
    assert found is not None
    assert found.split().count("owl") == 3


def test_insertion_keeps_every_word() -> None:
    found = changed("a red cat", "insertion")
    assert found is not None
    words = found.split()
    words.remove("owl")
    assert words == ["a", "red", "cat"]


def test_deletion_leaves_no_double_space() -> None:
    assert changed("a cat", "deletion") in {"a", "cat"}


def test_swap_exchanges_adjacent_words() -> None:
    assert changed("red cat", "swap") == "cat red"


@pytest.mark.parametrize("change", ["substitution", "deletion", "swap"])
@given(seed=st.integers(0, 50))
def test_numbers_negations_and_protected_words_are_kept(change: str, seed: int) -> None:
    found = changed("he did not buy 12 Apples never", change, seed=seed, rate=1.0, protected={"apples"})
    assert found is not None
    assert {"not", "12", "Apples", "never"} <= set(found.split())


@pytest.mark.parametrize("word", ["not", "isn't", "two", "7up", "Secret"])
@pytest.mark.parametrize("change", ["substitution", "insertion"])
def test_no_number_negation_or_protected_word_is_added(change: str, word: str) -> None:
    found = changed_text(
        "a red cat", change, random.Random(0), rate=1.0, protected={"secret"}, proposer=FixedProposer(word)
    )
    assert found is None


@pytest.mark.parametrize("word", ["two", "mustn't", "isn’t", "hardly", "12th"])
def test_numbers_and_negations_are_not_free(word: str) -> None:
    assert not is_changeable(word, ())


def test_deletion_keeps_at_least_one_word() -> None:
    assert changed("Yes.", "deletion", rate=1.0) is None


def test_pairs_that_become_equal_are_dropped() -> None:
    gold = [Example("red cat", ("cat red",), (2.0,))]
    config = WordsConfig(changes=("swap",), copies=20, min_similarity=-1)
    found = changed_pairs(gold, "swap", config, None)
    assert {(row.context, row.candidate) for row in found} == {("cat red", "red cat")}


@pytest.mark.parametrize("change", ["substitution", "insertion", "deletion", "swap"])
def test_a_text_without_a_free_word_is_not_changed(change: str) -> None:
    assert changed("12 34 not!", change) is None


def test_a_single_word_is_never_deleted() -> None:
    assert changed("cat", "deletion", rate=1.0) is None


def test_substitution_preserves_case() -> None:
    assert changed("CAT!", "substitution") == "OWL!"
    assert [match_case("owl", like) for like in ("cat", "Cat", "CAT", "I")] == ["owl", "Owl", "OWL", "Owl"]


GOLD = [Example("a red cat sat on the mat", ("the old dog ran",), (float(n),)) for n in range(3)]


def test_the_same_seed_yields_the_same_pairs() -> None:
    first = change_words(GOLD, "swap", WordsConfig(changes=("swap",), min_similarity=-1, seed=1))
    assert first == change_words(GOLD, "swap", WordsConfig(changes=("swap",), min_similarity=-1, seed=1))
    assert first != change_words(GOLD, "swap", WordsConfig(changes=("swap",), min_similarity=-1, seed=2))


def test_copies_differ_from_gold_and_from_each_other() -> None:
    config = WordsConfig(changes=("deletion",), copies=5, min_similarity=-1)
    found = change_words(GOLD[:1], "deletion", config)
    assert 1 < len({(row.context, row.candidate) for row in found}) == len(found)
    assert (GOLD[0].context, GOLD[0].candidates[0]) not in {(row.context, row.candidate) for row in found}


@pytest.mark.parametrize(
    ("context", "candidate", "kept"),
    [
        ("a red cat sat on the mat", "the old dog ran", 1),
        ("bread and water", "the old dog ran", 0),
        ("a red cat sat on the mat", "bread and water", 0),
    ],
    ids=["same", "other context", "other candidate"],
)
def test_texts_that_are_no_longer_similar_are_dropped(
    context: str, candidate: str, kept: int, tiny_folder: Callable[[str], Path]
) -> None:
    config = WordsConfig(encoder=str(tiny_folder("bert")), min_similarity=0.999)
    rows = [Silver(context, candidate, 1.0, "swap", (0, 0), "")]
    assert len(similar_enough(rows, GOLD, config)) == kept


def test_near_words_are_nearest_in_the_embedding_table(tiny_folder: Callable[[str], Path]) -> None:
    near = NearWords(tiny_folder("bert"), count=3)
    found = near.replacements(["", "cat", ""], 1)
    assert len(found) == 3
    assert "cat" not in found
    assert near.replacements(["", "zebra", ""], 1) == []


@pytest.fixture
def masked(tmp_path: Path) -> Path:
    tokenizer = make_tokenizer()
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, pad_token_id=1
    )
    BertForMaskedLM(config).save_pretrained(tmp_path / "mlm")
    tokenizer.save_pretrained(tmp_path / "mlm")
    return tmp_path / "mlm"


def test_a_masked_language_model_proposes_whole_words(masked: Path) -> None:
    pieces = pieces_of("the red cat")
    proposer = MaskedWords(masked, count=4)
    words = set(whole_words(list(make_tokenizer().get_vocab())).values())
    for found in (proposer.replacements(pieces, 3), proposer.insertions(pieces, 3)):
        assert len(found) == 4
        assert set(found) <= words


def test_a_model_without_a_masked_lm_head_is_refused(tiny_folder: Callable[[str], Path]) -> None:
    with pytest.raises(ModelError, match="has no masked-LM head"):
        MaskedWords(tiny_folder("bert"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"changes": ()}, "at least one of"),
        ({"changes": ("shout",)}, "a change must be one of"),
        ({"rate": 0.0}, "rate must be above 0"),
        ({"copies": 0}, "copies must be"),
        ({"min_similarity": 2.0}, "from -1 to 1"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        WordsConfig(**settings)


def test_a_change_without_effect_is_an_error() -> None:
    with pytest.raises(DataError, match="swap changed none of 1 pairs"):
        change_words([Example("cat", ("dog",), (1.0,))], "swap", WordsConfig(changes=("swap",)))
