"""Conditions on metadata: their forms in Python and as text, and the candidates that meet them."""

from pathlib import Path

import numpy as np
import pytest
from tests.databases.places import ALL, Places

from tercet.errors import InputError
from tercet.index.condition_text import parse_condition, parse_conditions
from tercet.index.conditions import Condition, as_number, conditions_of
from tercet.index.items import Item
from tercet.index.opening import create_store
from tercet.index.protocol import CandidateStore, View
from tercet.index.selection import select
from tercet.index.store import Store
from tercet.records import Codes

CANDIDATES = {
    "a": {"topic": "cards", "year": 2019, "price": "10", "day": "2024-01-31", 'q"u.o[t]e': 1, "": 1},
    "b": {"topic": "loans", "year": 2020, "price": "9", "day": "2024-02-01"},
    "c": {"topic": "cards", "year": 2021, "price": "", "open": True},
    "d": {"topic": None, "mixed": "many"},
    "e": {"mixed": 3},
}


def store_of(place: str, candidates: dict[str, dict[str, object]]) -> CandidateStore:
    store = create_store(place, 4, lexical=False)
    items = [Item(id_, id_, metadata) for id_, metadata in candidates.items()]
    store.add(items, np.ones((len(items), 4), dtype=np.float32))
    return store


@pytest.fixture(scope="module", params=ALL)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def store(kind: str, places: Places) -> CandidateStore:
    return store_of(places.new(kind), CANDIDATES)


def ids(store: CandidateStore, where: object) -> str:
    """The ids that a search finds."""
    codes = Codes(np.ones((1, 1, 4), dtype=np.float32), np.ones((1, 1), dtype=np.bool_))

    def found(view: View) -> str:
        selection = view.select(where)  # type: ignore[arg-type]
        (ranking,) = view.by_vectors(codes, 99, scale=1.0, exact=True, selection=selection)
        items = view.items(np.array(list(ranking.scores), dtype=np.int64))
        return "".join(sorted(item.id for item in items.values()))

    shown = store.read(found)
    assert store.count_where(where) == len(shown)  # type: ignore[arg-type]
    return shown


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"topic": "cards"}, "ac"),
        ({"topic": ["cards", "loans"]}, "abc"),
        ({"topic": {"!=": "cards"}}, "bde"),
        ({"topic": {"not in": ["cards", "loans"]}}, "de"),
        ({"year": {">=": 2020, "<": 2021}}, "b"),
        ({"year": {">": 2019.5}, "topic": "cards"}, "c"),
        ({"topic": None}, "de"),
        ({"topic": {"!=": None}}, "abc"),
        ({"topic": {"in": [None, "loans"]}}, "bde"),
        ({"year": {"<=": 9999}}, "abc"),
        ({"open": True}, "c"),
        ({'q"u.o[t]e': 1}, "a"),
        ({"": 1}, "a"),
        ({"year": np.array([2019, 2020])}, "ab"),
        ({}, "abcde"),
        ([Condition("year", "<", 2020)], "a"),
    ],
)
def test_a_mapping_selects_candidates(store: CandidateStore, where: object, expected: str) -> None:
    assert ids(store, where) == expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["topic=cards"], "ac"),
        (["topic == cards"], "ac"),
        (["topic!=cards"], "bde"),
        (["topic in cards,loans"], "abc"),
        (["topic  not in  cards, loans"], "de"),
        (['topic in ["loans", "a,b"]'], "b"),
        (["year=2020"], "b"),
        (["year>=2020", "topic=cards"], "c"),
        (["open=true"], "c"),
        (["day > 2024-01-31"], "b"),
        (['"q\\"u.o[t]e" = 1'], "a"),
        (['""=1'], "a"),
    ],
)
def test_a_text_selects_candidates(store: CandidateStore, texts: list[str], expected: str) -> None:
    assert ids(store, parse_conditions(texts)) == expected


def test_strings_that_are_numbers_are_compared_as_numbers(store: CandidateStore) -> None:
    assert ids(store, parse_conditions(["price<9.5"])) == "b"  # as strings, "10" < "9.5"
    assert ids(store, {"price": {">": "9"}}) == "a"
    assert ids(store, {"price": {"<": 100}}) == "ab"  # an empty cell is a missing value


def test_values_of_another_kind_are_refused_unless_they_are_excluded(store: CandidateStore) -> None:
    with pytest.raises(InputError, match="mixed>1 cannot be compared with 'many' of candidate 'd': numbers"):
        store.count_where({"mixed": {">": 1}})
    with pytest.raises(InputError, match=r"day>=2024 cannot .* candidate 'a' and 1 more"):
        store.count_where({"day": {">=": 2024}})
    with pytest.raises(InputError, match="year>'new' cannot be compared with 2019"):
        store.count_where({"year": {">": "new"}})
    assert ids(store, {"mixed": {">": 1, "!=": "many"}}) == "e"


def test_a_column_that_no_candidate_has_is_refused_whatever_the_operator(store: CandidateStore) -> None:
    columns = "the columns are '', 'day', 'mixed', 'open', 'price', "
    for value in ("cards", None, {"!=": "cards"}):
        with pytest.raises(InputError, match=f"no candidate has 'topci' in its metadata: {columns}"):
            store.count_where({"topci": value, "year": 2020})


def test_a_value_that_no_candidate_has_is_refused_with_those_that_exist(store: CandidateStore) -> None:
    with pytest.raises(
        InputError, match=r"no candidate has topic='card': the values of 'topic' are 'cards', 'loans'$"
    ):
        store.count_where({"topic": "card"})
    with pytest.raises(
        InputError, match="no candidate has year>2021: the values of 'year' go from 2019 to 2021"
    ):
        store.count_where({"year": {">": 2021}, "topic": "cards"})


def test_strings_from_python_are_quoted_and_what_was_typed_is_not(store: CandidateStore) -> None:
    with pytest.raises(InputError, match="no candidate has year='2020': the values of 'year' are 2019, 2020"):
        store.count_where({"year": "2020"})
    with pytest.raises(InputError, match="no candidate has topic in 'a','b': "):
        store.count_where({"topic": ["a", "b"]})
    with pytest.raises(InputError, match="no candidate has topic=card: "):
        store.count_where(parse_conditions(["topic=card"]))


def test_a_number_that_is_too_large_is_a_text() -> None:
    assert parse_condition("a=1e999").values == ("1e999",)
    assert parse_condition("a in 1e999,-1e999,2").values == ("1e999", "-1e999", "2", 2)


def test_blank_strings_take_no_part_in_orderings(kind: str, places: Places) -> None:
    days = {"a": {"day": ""}, "b": {"day": "  "}, "c": {"day": "2024-01-31"}}
    store = store_of(places.new(kind), {**days, "d": {"n": "12"}, "e": {"n": ""}, "f": {"n": " "}})
    assert ids(store, {"day": {"<": "2025-01-01"}}) == "c"  # as strings, blank ones come first
    assert ids(store, {"n": {"<": 13}}) == "d"
    assert ids(store, {"n": {">": -1}}) == "d"


def test_one_candidate_is_read_to_show_what_cannot_be_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(str(tmp_path / "one.tercet"), CANDIDATES)
    assert isinstance(store, Store)
    read: list[int] = []
    items = store.database.items
    monkeypatch.setattr(store.database, "items", lambda numbers: read.append(len(numbers)) or items(numbers))
    with pytest.raises(InputError, match="candidate 'a' and 1 more"):
        select(store.database, [Condition("day", ">=", 2024)])
    assert read == [1]


def test_at_most_ten_values_are_listed(kind: str, places: Places) -> None:
    store = store_of(places.new(kind), {f"x{number}": {"n": number} for number in range(197)})
    with pytest.raises(InputError, match=r"the values of 'n' are 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 187 more$"):
        store.count_where({"n": -1})


def test_conditions_that_hold_only_apart_select_nothing(store: CandidateStore) -> None:
    assert ids(store, {"topic": "loans", "year": 2019}) == ""
    assert ids(store, {"topic": []}) == ""


def test_an_empty_store_refuses_no_column(kind: str, places: Places) -> None:
    assert create_store(places.new(kind), 4, lexical=False).count_where({"topic": "cards"}) == 0


def test_numbers_in_texts_are_those_of_python(kind: str, places: Places) -> None:
    texts = ["\u20037 ", "+.5", "1e999", "0x10", "1_0", "٣", "9" * 400, "-2.5E3"]
    store = store_of(places.new(kind), {f"x{at}": {"n": text} for at, text in enumerate(texts)})
    numbers = [as_number(text) for text in texts]
    for limit in (-2500, 0, 0.5, 8):
        expected = sum(number is not None and number <= limit for number in numbers)
        excluded = [text for text, number in zip(texts, numbers, strict=True) if number is None]
        assert store.count_where({"n": {"<=": limit, "not in": excluded}}) == expected


def test_a_bool_equals_the_number_one_or_zero_and_no_text(kind: str, places: Places) -> None:
    values = {"a": True, "b": 1, "c": 1.0, "d": "true", "e": "1", "f": False, "g": 0, "h": [1], "i": {"x": 1}}
    store = store_of(places.new(kind), {id_: {"v": value} for id_, value in values.items()})
    assert [ids(store, {"v": value}) for value in (True, 1, 1.0, "true", False)] == ["abc"] * 3 + ["d", "fg"]
    assert ids(store, {"v": {"!=": None}}) == "abcdefghi"


def test_a_list_may_have_hundreds_of_thousands_of_values(store: CandidateStore) -> None:
    many = [f"value {number}" for number in range(300_000)]
    assert ids(store, {"topic": [*many, "loans"]}) == "b"


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"year": {"~": 1}}, "must be one of =, !=, in, not in, <, <=, >, >=, got '~'"),
        ({"year": {}}, "a condition needs an operator"),
        ({"year": {"in": 5}}, "in needs a list, got year=int 5"),
        ({"year": {"<": None}}, "< compares with a number or a string, got year=None"),
        ({"year": {"<": True}}, "< compares with a number or a string, got year=bool True"),
        ({"year": float("nan")}, "a finite number, got year=nan"),
        ({"year": [[1]]}, "a string, number or bool, got year="),
        ({"year": "2\ud800"}, r"the condition on 'year' holds a lone surrogate .U\+D800 at character 1"),
        ({"y\ud800": 1}, r"the column 'y\\ud800' of a condition holds a lone surrogate"),
        ({1: 1}, "the name of a column, got int 1"),
        ("year=1", "where must be a mapping"),
        (["year=1"], "a mapping or a list of conditions"),
    ],
)
def test_invalid_conditions_are_refused(where: object, message: str) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        conditions_of(where)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["year", "=x", "", "topic in", "in a,b", " = x"])
def test_a_text_that_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="a condition must be NAME=VALUE"):
        parse_condition(text)


def test_incomplete_and_contradictory_texts_are_refused() -> None:
    with pytest.raises(InputError, match="< needs a value"):
        parse_condition("year<")
    with pytest.raises(InputError, match="a list of values must be A,B"):
        parse_condition("topic in cards,,loans")
    with pytest.raises(InputError, match="a JSON array"):
        parse_condition("topic in [cards")
    with pytest.raises(InputError, match=r"topic=cards and topic=loans can never both hold: .*topic in A,B"):
        parse_conditions(["topic=cards", "topic=loans"])


def test_only_plain_numbers_are_numbers() -> None:
    spelled = {"10": 10, " -2.5e3 ": -2500.0, "+.5": 0.5, "007": 7, "9007199254740993": 9007199254740993}
    assert {text: as_number(text) for text in spelled} == spelled
    assert [as_number(text) for text in ("", "1_000", "nan", "inf", "1e999", "0x10", "1,5", "٣")] == [
        None
    ] * 8
