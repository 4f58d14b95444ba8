"""Rows that were deleted, added, exchanged or given other types are noticed, and no repair hides a loss."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest
from tests.index.test_damage import edit
from tests.index.test_store import NAMES, WIDTH, ids, items, put, vectors

from tercet.errors import BrokenIndexError, TercetError
from tercet.files.digest import file_digest
from tercet.index import segment, segment_files
from tercet.index import store as store_module
from tercet.index.items import Item
from tercet.index.lexical_sync import LexicalSync
from tercet.index.reading import get_items
from tercet.index.repair import Encoding
from tercet.index.repair import repair as repair_store
from tercet.index.row_digests import COLUMNS
from tercet.index.store import DATABASE, Store
from tercet.index.totals import TABLES
from tercet.index.verify import problems
from tercet.records import Part

HALVES = [Part(0, 3), Part(3, 8)]
UNREADABLE = ["'{'", "'[1]'", "'7'", "''", "x'ff'"]


def change(store: Store, changed: list[Item]) -> None:
    parts = [item.text[part.start : part.end] for item in changed for part in HALVES]
    store.update(changed, vectors(parts), parts=[HALVES] * len(changed))


def repair(store: Store, *, accept_loss: bool = False) -> int:
    encoding = Encoding(lambda texts: vectors(list(texts)), lambda changed: change(store, list(changed)))
    return repair_store(store, encoding, accept_loss=accept_loss)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Chunked, with rows in every table: segments, and removed, buffered and pending candidates."""
    monkeypatch.setattr(store_module, "BUFFER_SIZE", 8)
    store = Store.create(tmp_path / "some.tercet", WIDTH, chunked=True, metadata={"model": "tiny"})
    change(store, items("n1", "n2", "n3", "n4"))
    change(store, items("n5", "n6", "n7", "n8"))
    store.remove(["n2"])
    change(store, items(*NAMES[:2]))
    with monkeypatch.context() as patched:
        patched.setattr(LexicalSync, "update", lambda self: None)
        change(store, items("bird"))
    assert all(store.database.query(f"SELECT * FROM {table}") for table in TABLES)
    assert problems(store) == []
    return store


def noticed(path: Path) -> bool:
    """Whether an index that was edited has problems, or cannot even be opened."""
    try:
        return bool(problems(Store(path)))
    except TercetError:
        return True


def rows_of(store: Store, table: str) -> list[int]:
    return [rowid for (rowid,) in store.database.query(f"SELECT rowid FROM {table}")]


@pytest.mark.parametrize("table", [*TABLES, "totals", "sqlite_sequence"])
def test_every_deleted_row_is_noticed(table: str, store: Store) -> None:
    rows = rows_of(store, table)
    store.close()
    for row in rows:
        copy = shutil.copytree(store.path, store.path.with_name(f"{row}.tercet"))
        with closing(sqlite3.connect(copy / DATABASE)) as connection, connection:
            connection.execute(f"DELETE FROM {table} WHERE rowid = {row}")
        assert noticed(copy), row


@pytest.mark.parametrize("rows", ["candidates WHERE id = 'n8'", "chunks WHERE number = 1"])
def test_a_deleted_row_is_noticed_after_later_changes(rows: str, store: Store) -> None:
    edit(store, f"DELETE FROM {rows}")
    opened = Store(store.path)
    change(opened, items("fish", "n5"))
    opened.remove(["n6"])
    opened.update_metadata({"n7": {"seen": True}})
    opened.compact()
    assert any("were written" in line for line in problems(opened))


WRITES: dict[str, Callable[[Store], object]] = {
    "add or update": lambda store: change(store, items("fish")),
    "update metadata": lambda store: store.update_metadata({"n7": {"seen": True}}),
    "remove": lambda store: store.remove(["n6"]),
    "compact": lambda store: store.compact(),
    "set metadata": lambda store: store.set_metadata({"model": "other"}),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize(
    ("edited", "refusal"),
    [
        ("UPDATE metadata SET value = '\"bj\"' WHERE name = 'kind'", r"settings .* modified \('kind'\)"),
        ("DELETE FROM metadata WHERE name = 'model'", "settings of the index were modified: nothing was"),
        ("INSERT INTO metadata VALUES ('finished', 'true', 0)", r"settings .* modified \('finished'\)"),
        ("UPDATE segments SET manifest_digest = upper(manifest_digest)", "list of segments was modified"),
        ("DELETE FROM segments", "list of segments was modified"),
    ],
)
def test_writers_refuse_settings_and_segments_that_another_program_changed(
    edited: str, refusal: str, write: str, store: Store
) -> None:
    store.set_metadata({"kind": "bi"})
    edit(store, edited)
    opened = Store(store.path)
    with pytest.raises(BrokenIndexError, match=refusal):
        WRITES[write](opened)
    assert problems(opened)


def test_a_writer_notices_a_change_that_came_after_its_first_write(store: Store) -> None:
    store.remove(["n6"])
    with closing(sqlite3.connect(store.path / DATABASE)) as connection, connection:
        connection.execute("UPDATE metadata SET value = '7' WHERE name = 'width'")
    with pytest.raises(BrokenIndexError, match=r"settings of the index were modified \('width'\)"):
        store.remove(["n7"])


def test_a_repair_writes_nothing_with_settings_that_were_modified(store: Store) -> None:
    edit(store, "UPDATE metadata SET value = '\"int8\"' WHERE name = 'storage'")
    edit(store, "UPDATE candidates SET text = 'a lion' WHERE id = 'n5'")
    encoded: list[object] = []
    with pytest.raises(BrokenIndexError, match="cannot be repaired: settings of the index: modified"):
        repair_store(Store(store.path), Encoding(lambda texts: vectors(list(texts)), encoded.append))
    assert encoded == []


def test_an_exchanged_segment_is_found_and_encoded_again(store: Store) -> None:
    names = [name for (name,) in store.database.query("SELECT name FROM segments ORDER BY name")]
    digests = [store.segments.manifest_digest(name) for name in names]
    edit(store, "UPDATE segments SET name = 'x' || name")
    for name, other, digest in zip(names, reversed(names), reversed(digests), strict=True):
        edit(
            store,
            f"UPDATE segments SET name = '{other}', manifest_digest = '{digest}' WHERE name = 'x{name}'",
        )
    opened = Store(store.path)
    assert problems(opened) == ["segments: 2 modified in the list of segments"]
    assert repair(opened) == 14
    assert problems(opened) == []
    change(opened, items("fish"))
    assert ids(opened, "the", 1)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE totals SET last = 0 WHERE name IN ('candidates', 'chunks')",
        "UPDATE sqlite_sequence SET seq = 0",
    ],
)
def test_numbers_are_not_used_again_though_one_record_of_them_was_changed(
    statement: str, store: Store
) -> None:
    used = store.database.next_number("chunks")
    store.remove(["bird"])
    edit(store, statement)
    opened = Store(store.path)
    change(opened, items("fish"))
    assert opened.owners.all_vectors()[-2:].tolist() == [used, used + 1]
    assert problems(opened) == []


TEXTUAL = [(table, name) for table, types in COLUMNS.items() for name in types if types[name] == "TEXT"]


@pytest.mark.parametrize(
    ("table", "column", "type_"),
    [*((*column, "BLOB") for column in TEXTUAL), ("buffered", "vector", "TEXT"), ("chunks", "stop", "BLOB")],
)
def test_a_value_of_another_type_is_noticed(table: str, column: str, type_: str, store: Store) -> None:
    row = rows_of(store, table)[0]
    edit(store, f"UPDATE {table} SET {column} = CAST({column} AS {type_}) WHERE rowid = {row}")
    assert noticed(store.path)


@pytest.mark.parametrize("column", ["id", "text", "metadata"])
def test_a_repair_gives_a_value_its_type_again(column: str, store: Store) -> None:
    edit(store, f"UPDATE candidates SET {column} = CAST({column} AS BLOB) WHERE id = 'n5'")
    opened = Store(store.path)
    assert problems(opened) == ["candidates: 1 modified: 'n5'"]
    assert repair(opened) == 0
    assert problems(opened) == []
    number = opened.database.numbers(["n5"])["n5"]
    assert opened.database.query("SELECT text FROM candidates WHERE number = ?", [number]) == [("the n5",)]


@pytest.mark.parametrize("table", ["segments", "buffered", "removed", "pending", "chunks", "sqlite_sequence"])
def test_a_repair_makes_again_what_follows_from_the_candidates(table: str, store: Store) -> None:
    edit(store, f"DELETE FROM {table}")
    opened = Store(store.path)
    assert problems(opened)
    repair(opened)
    assert problems(opened) == problems(Store(store.path)) == []
    assert len(opened) == 10
    assert len(opened.owners.all_vectors()) == 20
    assert len(opened.search_lexical("bird", 3)) == 1
    change(opened, items("new"))
    assert len(opened) == 11


def test_a_repair_does_not_hide_that_candidates_are_gone(store: Store) -> None:
    edit(store, "DELETE FROM candidates WHERE id IN ('n5', 'n6')")
    opened = Store(store.path)
    for _ in range(2):
        with pytest.raises(BrokenIndexError, match=r"candidates: 8 rows, but 10 were written.*--accept-loss"):
            repair(opened)
        assert "candidates: 8 rows, but 10 were written" in problems(opened)
    repair(opened, accept_loss=True)
    assert problems(opened) == []
    assert (len(opened), len(opened.owners.all_vectors())) == (8, 16)


def test_a_repair_does_not_hide_that_a_candidate_has_an_old_row(store: Store) -> None:
    statement = "SELECT metadata, digest FROM candidates WHERE id = 'n5'"
    ((metadata, digest),) = store.database.query(statement)
    store.update_metadata({"n5": {"seen": True}})
    edit(store, f"UPDATE candidates SET metadata = '{metadata}', digest = {digest} WHERE id = 'n5'")
    opened = Store(store.path)
    assert problems(opened) == ["candidates: the rows are not those that were written"]
    with pytest.raises(BrokenIndexError, match=r"not those that were written.*--accept-loss"):
        repair(opened)
    repair(opened, accept_loss=True)
    assert problems(opened) == []


def test_a_repair_finds_the_new_text_though_the_list_of_pending_ones_is_lost(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(store, items("fish"))
    with monkeypatch.context() as patched:
        patched.setattr(LexicalSync, "update", lambda self: None)
        change(store, [Item("n5", "a lion in it")])
    edit(store, "DELETE FROM pending")
    opened = Store(store.path)
    assert problems(opened) == ["pending: 0 rows, but 2 were written"]
    repair(opened)
    assert problems(opened) == []
    assert len(opened.search_lexical("lion", 3)) == 1


@pytest.mark.parametrize("name", ["model", "chunked", "width", "format"])
def test_a_deleted_setting_is_never_repaired_in_name_only(name: str, store: Store) -> None:
    edit(store, f"DELETE FROM metadata WHERE name = '{name}'")
    assert noticed(store.path)
    with pytest.raises(TercetError, match="build it again"):
        repair(Store(store.path), accept_loss=True)
    assert noticed(store.path)


@pytest.mark.parametrize("value", UNREADABLE)
def test_metadata_that_is_not_json_is_cleared_only_if_the_loss_is_accepted(value: str, store: Store) -> None:
    edit(store, f"UPDATE candidates SET metadata = {value} WHERE id = 'n5'")
    opened = Store(store.path)
    assert problems(opened) == ["candidates: 1 modified: 'n5'"]
    with pytest.raises(BrokenIndexError, match=r"metadata that is not a JSON object: 'n5'.*--accept-loss"):
        repair(opened)
    assert problems(opened) == ["candidates: 1 modified: 'n5'"]
    repair(opened, accept_loss=True)
    assert problems(opened) == []
    assert get_items(opened.database, ["n5"]) == [Item("n5", "the n5", {})]


def test_a_condition_on_metadata_that_is_not_json_names_the_repair(store: Store) -> None:
    edit(store, "UPDATE candidates SET metadata = '{' WHERE id = 'n5'")
    with pytest.raises(BrokenIndexError, match='metadata that is not JSON: run "tercet index repair"'):
        Store(store.path).where({"letters": 2})


def test_a_setting_that_is_not_json_cannot_be_repaired_and_says_what_to_do(store: Store) -> None:
    edit(store, "UPDATE metadata SET value = '{' WHERE name = 'width'")
    with pytest.raises(BrokenIndexError, match="restore the index from a backup, or build it again"):
        Store(store.path)


@pytest.mark.parametrize(
    ("table", "before", "after"),
    [
        ("segments", "manifest_digest", "manifest_diggst"),
        ("candidates", "text TEXT", "text TEXU"),
        ("chunks", "stop INTEGER NOT NULL", "stop INTEGER"),
        ("totals", "last INTEGER", "last REAL"),
        ("chunks_of_candidate", "chunks (candidate)", "chunks (number)"),
    ],
)
def test_an_index_whose_tables_have_other_definitions_is_refused(
    store: Store, table: str, before: str, after: str
) -> None:
    change_schema = "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = ?"
    with closing(sqlite3.connect(store.path / DATABASE)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        assert connection.execute(change_schema, [before, after, table]).rowcount == 1
    with pytest.raises(BrokenIndexError, match=f"the definition of {table} was modified: restore the index"):
        Store(store.path)


def test_rows_change_only_in_a_transaction(store: Store) -> None:
    with pytest.raises(RuntimeError, match="in one transaction"):
        store.database.set_metadata({"model": "other"})


WRITE = """
import sys, time
from tests.index.test_store import *
store_module.BUFFER_SIZE = 20
store, end, number = Store(Path(sys.argv[1])), time.monotonic() + 4, 0
while time.monotonic() < end:
    put(store, *(f"x{number + n}" for n in range(5)))
    number += 5
    if number % 20 == 0:
        store.remove([f"x{number - 1}"])
        store.compact()
"""


def test_a_verification_beside_a_writer_raises_no_false_alarm(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "busy.tercet", WIDTH)
    with subprocess.Popen([sys.executable, "-c", WRITE, str(store.path)]) as writer:
        found = [problems(store) for _ in iter(writer.poll, 0)]
    assert [each for each in found if each] == []
    assert len(found) > 10


@pytest.mark.parametrize(
    ("module", "earlier_reads"),
    [(segment, 0), (segment_files, 0), (segment_files, 1)],
    ids=["before its vectors are read", "before its manifest is read", "before its graph is read"],
)
def test_a_segment_that_vanishes_while_it_is_verified_is_no_problem(
    module: ModuleType, earlier_reads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.create(tmp_path / "busy.tercet", WIDTH)
    put(store, *NAMES)
    store.compact(graph_threshold=1)
    (before,), reads = store.segments.names(), list[Path]()

    def after_a_writer(file: Path) -> str:
        """The digest of a file, which another writer replaced by a new segment before it was read."""
        reads.append(file)
        if len(reads) == earlier_reads + 1:
            with closing(Store(store.path)) as writer:
                writer.remove(["cat"])
                writer.compact(graph_threshold=1)
        return file_digest(file)

    monkeypatch.setattr(module, "file_digest", after_a_writer)
    assert problems(store) == []
    assert reads[earlier_reads].parent.name == before
    assert not reads[earlier_reads].exists()
