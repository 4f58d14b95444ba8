"""When a shown output counts as the printed one."""

import pytest

from shown_output import same_output

SLOW = """\
         R@1     ms   other metrics    compared with
 ───────────────────────────────────────────────────
  bi   85.00   43.2   R@2 90.0, R@5
                      93.3
  poly 83.00    0.3   R@2 90.0         worse
"""
QUICK = """\
         R@1    ms   other metrics     compared with
 ────────────────────────────────────────────────────
  bi   85.00   4.7   R@2 90.0,
                     R@5 93.3
  poly 83.00   0.0   R@2 90.0          worse
"""


def test_times_of_a_table_and_where_its_cells_wrap_do_not_count() -> None:
    assert same_output(SLOW, QUICK)


@pytest.mark.parametrize(("was", "now"), [("85.00", "89.00"), ("93.3", "97.3"), ("worse", "better")])
def test_other_numbers_and_words_of_such_a_table_do(was: str, now: str) -> None:
    assert not same_output(SLOW, QUICK.replace(was, now))


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("score 0.59\n", "score 0.60\n"),
        ("12.50 ms\n", "12.70 ms\n"),
        ("│ a    │ 0.70 │\n┗━━━━┛\n", "│ a │ 0.71 │\n┗━━━━━━━┛\n"),
        ("first\n...\nlast 3\n", "first\nanything 0.1\nat all\nlast 3\n"),
        ("done in ... s\n", "done in 12.3 s\n"),
    ],
)
def test_rounding_and_the_width_of_columns_do_not_count(shown: str, printed: str) -> None:
    assert same_output(shown, printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("score 0.59\n", "score 0.65\n"),
        ("120 candidates\n", "121 candidates\n"),
        ("the best\n", "the worst\n"),
        ("first\n...\nlast 3\n", "first\nlast 4\n"),
        ("", "something\n"),
        ("a 0.5\nb 0.5\n", "a 0.5\n"),
    ],
)
def test_other_words_counts_and_numbers_do(shown: str, printed: str) -> None:
    assert not same_output(shown, printed)
