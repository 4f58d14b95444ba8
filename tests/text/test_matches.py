"""Matched words and snippets of a text."""

from pathlib import Path
from typing import Any

from tercet.index.lexical import LexicalIndex
from tercet.text.matches import Match, equal_terms, equal_words
from tercet.text.snippet import snippet


def marked(text: str, context: str, index: LexicalIndex | None = None) -> list[str]:
    matches = equal_words(text, context) if index is None else equal_terms(text, context, index.terms)
    return [text[match.start : match.end] for match in matches]


def test_equal_words_match_in_upper_and_lower_case() -> None:
    assert marked("Cards: the CARD was refused, not the carD.", "my card is of no use") == ["CARD", "carD"]


def test_terms_match_by_stem_and_bigram(tmp_path: Path) -> None:
    index = LexicalIndex(tmp_path)
    assert marked("Cards were refused; a 5G card-reader", "card refuses 5g", index) == [
        "Cards",
        "refused",
        "5G",
        "card",
    ]
    assert marked("신용카드 승인", "카드가 안 돼요", index) == ["카드"]
    assert marked("हिन्दी में", "हिन्दी", index) == ["हिन्दी"]
    assert marked("nothing alike", "카드", index) == []


def test_a_snippet_has_the_rarest_words_together() -> None:
    filler = "the bank is open on most days and the queue is short " * 20
    text = f"{filler}the declined card was replaced {filler}"
    start, end = snippet(text, equal_words(text, "the card was declined"))
    assert 250 <= end - start <= 300
    assert "the declined card was replaced" in text[start:end]
    assert text[start - 1] == " " == text[end]


def test_one_rare_word_outweighs_two_frequent_ones() -> None:
    filler = "the bank is open on most days. " * 20
    text = f"{filler}{'x' * 400} declined {'x' * 400} {filler}"
    start, end = snippet(text, equal_words(text, "bank open declined"))
    assert "declined" in text[start:end]


def test_a_snippet_without_matches_is_the_beginning() -> None:
    text = "word " * 200
    assert snippet(text, []) == (0, 299)


def test_a_snippet_stays_inside_the_text() -> None:
    text = "x" * 1000 + " card"
    assert snippet(text, equal_words(text, "card")) == (705, 1005)
    text = "card " + "x" * 1000
    assert snippet(text, equal_words(text, "card")) == (0, 300)


def test_windows_are_found_in_one_pass_over_the_matches() -> None:
    class Counted(list[Match]):
        reads = 0

        def __getitem__(self, key: Any) -> Any:
            found = super().__getitem__(key)
            self.reads += len(found) if isinstance(key, slice) else 1
            return found

    text = "card bank " * 20_000 + "declined " + "card bank " * 20_000
    matches = Counted(equal_words(text, "declined card bank"))
    assert len(matches) == 80_001
    start, end = snippet(text, matches)
    assert "declined" in text[start:end]
    assert matches.reads < 10 * len(matches)


def test_the_first_of_equally_good_windows_is_shown() -> None:
    text = f"{'x' * 500} card {'x' * 500} bank {'x' * 500} bank card {'x' * 500} card bank {'x' * 500}"
    start, end = snippet(text, equal_words(text, "card bank"))
    assert "bank card" in text[start:end]


def test_three_words_that_occur_three_times_weigh_as_much_as_a_rare_one() -> None:
    text = f"card bank loan {'x' * 500} rare {'x' * 500} loan card bank {'x' * 500} loan card bank"
    assert (
        snippet(text, equal_words(text, "rare card bank loan"))[0] == 0
    )  # the first of equally good windows


def test_a_match_longer_than_a_snippet_is_shown() -> None:
    text = f"a {'x' * 500} b {'x' * 500}"
    long = Match(2, 502, "x")
    assert snippet(text, [long], length=100) == (2, 502)
