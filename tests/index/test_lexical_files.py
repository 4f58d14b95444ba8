"""Every byte of the lexical index has a digest, and damage to it is repaired from the texts."""

from pathlib import Path

import pytest
from tests.index.test_store import WIDTH, put, repair, vectors

from tercet.index import lexical_sync
from tercet.index.items import Item
from tercet.index.lexical_sync import LexicalSync
from tercet.index.store import LEXICAL, Store
from tercet.index.verify import problems

QUERY = "the n1 and the cat"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A lexical index of several segments, with removed texts."""
    store = Store.create(tmp_path / "some.tercet", WIDTH)
    for start in range(0, 30, 10):
        put(store, *(f"n{number}" for number in range(start, start + 10)))
    store.remove(["n3", "n14"])
    return store


def files(store: Store) -> list[Path]:
    return [file for file in sorted((store.path / LEXICAL).iterdir()) if file.suffix != ".lock"]


def flip(file: Path, position: int) -> None:
    byte = file.read_bytes()[position]
    overwrite(file, position, bytes([byte ^ 1]))


def overwrite(file: Path, position: int, content: bytes) -> None:
    """Change bytes in place: tantivy maps its files, and a file that gets shorter would end the process."""
    with file.open("r+b") as opened:
        opened.seek(position)
        opened.write(content)


def test_every_flipped_byte_is_noticed(store: Store) -> None:
    suffixes = {file.suffix for file in files(store)}
    assert {".fast", ".term", ".idx", ".fieldnorm", ".del", ".json"} <= suffixes
    for file in files(store):
        for position in range(file.stat().st_size):
            flip(file, position)
            assert file.name[:32] in store.lexical_problem(), position
            flip(file, position)
    assert problems(store) == []


def test_a_missing_file_is_noticed(store: Store) -> None:
    for file in files(store):
        content = file.read_bytes()
        file.unlink()
        assert file.name[:32] in store.lexical_problem()
        file.write_bytes(content)
    assert problems(store) == []


@pytest.mark.parametrize("suffix", ["fast", "term", "idx", "fieldnorm", "store", "json"])
@pytest.mark.parametrize("part", [0.0, 0.25, 0.5, 0.75, 0.99])
def test_a_repair_after_any_flipped_byte_finds_what_was_found_before(
    suffix: str, part: float, store: Store
) -> None:
    store.rebuild_lexical()
    expected = store.search_lexical(QUERY, 10)
    store.close()
    for file in (store.path / LEXICAL).glob(f"*.{suffix}"):
        flip(file, int(part * file.stat().st_size))
    opened = Store(store.path)
    assert problems(opened)
    repair(opened)
    assert problems(opened) == problems(Store(store.path)) == []
    assert opened.search_lexical(QUERY, 10) == expected


@pytest.mark.parametrize("suffix", ["fast", "term", "idx", "fieldnorm", "store", "json"])
def test_candidates_that_are_added_to_damaged_terms_are_kept_and_found_after_a_repair(
    suffix: str, store: Store
) -> None:
    store.close()
    for file in (store.path / LEXICAL).glob(f"*.{suffix}"):
        overwrite(file, 0, bytes(file.stat().st_size))
    opened = Store(store.path)
    put(opened, "cat")
    opened.update([Item("n1", "a lion", None)], vectors(["a lion"]))
    assert len(Store(store.path)) == 29
    assert problems(opened)
    repair(opened)
    assert problems(opened) == problems(Store(store.path)) == []
    assert len(opened.search_lexical("cat", 5)) == len(opened.search_lexical("lion", 5)) == 1


def test_an_addition_gives_no_new_digest_to_an_old_file(store: Store) -> None:
    old = next(file for file in files(store) if file.suffix == ".idx")
    flip(old, 3)
    put(store, "cat")
    assert old.name[:32] in store.lexical_problem()


def test_a_merge_does_not_hide_damage(store: Store) -> None:
    store.close()
    for file in (store.path / LEXICAL).glob("*.fieldnorm"):
        flip(file, 0)
    opened = Store(store.path)
    for number in range(12):  # tantivy merges eight segments
        put(opened, f"m{number}")
    assert problems(opened)
    repair(opened)
    assert problems(opened) == []
    assert len(opened.search_lexical("m11", 5)) == 1


def test_files_of_a_writer_that_was_killed_after_its_commit_are_no_damage(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):  # tantivy merges eight segments and deletes their files
        with monkeypatch.context() as patched:
            patched.setattr(LexicalSync, "_record", lambda self: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                put(store, f"m{number}")
        assert problems(Store(store.path)) == []
        store = Store(store.path)
        put(store, f"o{number}")
        assert store.database.column("pending") == problems(store) == []
    assert len(store.search_lexical("m11", 5)) == 1


def test_a_repair_leaves_the_lexical_index_alone_until_the_database_is_mended(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(LexicalSync, "update", lambda self: None)
        put(store, "cat")
    with store.writer(repairing=True):
        assert store.database.column("pending") == [30]
    repair(store)
    assert store.database.column("pending") == []


def test_a_rebuild_that_is_killed_is_repeated(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    for name in ("remove_own", "LexicalIndex"):
        with monkeypatch.context() as patched:
            patched.setattr(lexical_sync, name, killed)
            with pytest.raises(KeyboardInterrupt):
                store.rebuild_lexical()
        opened = Store(store.path)
        repair(opened)
        assert problems(opened) == []
        assert [number for number, _ in opened.search_lexical("n29", 1)] == [29]


def test_an_empty_index_has_digests_too(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "empty.tercet", WIDTH)
    assert problems(store) == []
    flip(store.path / LEXICAL / "meta.json", 5)
    assert problems(store)
