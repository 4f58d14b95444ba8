"""Candidates in the forms that users give them: texts, items and mappings."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from tercet.errors import InputError
from tercet.index.items import Item
from tercet.inputs import check_string, check_text, describe, listed

ItemLike: TypeAlias = str | Item | Mapping[str, Any]
"""A text, an item, or a mapping with ``text``, and optionally ``id`` and metadata."""

OWN_KEYS = ("id", "text")


def item_of(given: object, position: int) -> Item:
    """The candidate at a position of a list as an item; errors name the position and the key.

    In a mapping, the keys other than ``id`` and ``text`` are the metadata, unless ``metadata`` is a mapping
    itself: then it is all of the metadata.
    """
    if isinstance(given, Mapping):
        given = _item_in(given, f"candidate {position}")
    if isinstance(given, Item):
        return _checked(given, position)
    if not isinstance(given, str):
        raise InputError(
            f"candidate {position} must be a string, an Item or a mapping with the keys id and text, "
            f"got {describe(given)}"
        )
    return Item("", check_text(given, f"candidate {position}"))


def _item_in(given: Mapping[Any, Any], name: str) -> Item:
    if "text" not in given:
        raise InputError(f"{name} has no key 'text', only {listed(given) or 'an empty mapping'}")
    rest = {key: value for key, value in given.items() if key not in OWN_KEYS}
    id_ = _id(given.get("id"), name)
    text = check_text(given["text"], f"candidate {id_!r}" if id_ else name)
    return Item(id_, text, metadata_of(rest, name))


def _id(value: object, name: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value is None:
        return ""
    check_string(f"'id' of {name}", value)
    return str(value)


def metadata_of(rest: dict[Any, Any], name: str) -> Mapping[str, Any] | None:
    """The metadata among the other keys of a mapping or columns of a row; None if there are none.

    Args:
        name: how errors call the candidate.
    """
    nested = rest.get("metadata")
    if isinstance(nested, Mapping):
        others = [key for key in rest if key != "metadata"]
        if others:
            raise InputError(
                f"{name} has the key 'metadata' and also {listed(others)}: move these into 'metadata'"
            )
        return nested
    if list(rest) == ["metadata"] and nested is None:
        return None
    return rest or None


def _checked(item: Item, position: int) -> Item:
    check_text(item.text, f"candidate {item.id or position!r}")
    if item.metadata is not None:
        if not isinstance(item.metadata, Mapping):
            raise InputError(
                f"the metadata of candidate {position} must be a mapping, got {describe(item.metadata)}"
            )
        for key in item.metadata:
            check_string(f"a key in the metadata of candidate {position}", key)
    return item
