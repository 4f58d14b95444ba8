"""Values in messages."""

import pytest

from tercet.errors import InputError
from tercet.inputs import check_scale, describe, listed, shortened


def test_values_are_listed_in_full_unless_a_maximum_is_given() -> None:
    assert listed(["a", 1, "b" * 50]) == f"'a', 1, '{'b' * 50}'"
    assert listed({"x": 1, "y": 2}) == "'x', 'y'"
    assert listed([]) == ""


def test_a_list_with_a_maximum_counts_the_values_that_are_not_shown() -> None:
    assert listed(range(3), most=3) == "0, 1, 2"
    assert listed(range(2000), most=2) == "0, 1 and 1,998 more"
    assert listed(range(3), most=2, more=5) == "0, 1 and 6 more"
    assert listed(["b" * 50], most=1) == f"'{'b' * 39}…"


@pytest.mark.parametrize(("text", "expected"), [("", ""), ("abc", "abc"), ("abcd", "abc…")])
def test_a_text_is_shortened_to_its_first_characters(text: str, expected: str) -> None:
    assert shortened(text, 3) == expected


def test_a_value_is_described_by_its_type_and_its_first_characters() -> None:
    assert describe(None) == "None"
    assert describe(5) == "int 5"
    assert describe("b" * 50) == f"str '{'b' * 39}…"


def test_a_scale_that_is_too_large_for_a_float_is_refused() -> None:
    with pytest.raises(InputError, match=r"code_scale must be a number from 1e-06 to 1e"):
        check_scale("code_scale", 10**400)
