"""Hostile folders: a store deletes only its own files, and notices every change of them."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
from tests.index.test_store import NAMES, WIDTH, ids, items, put, query, repair, vectors

from tercet.errors import BrokenIndexError, InputError, OutputError, TercetError
from tercet.index import connection, tables
from tercet.index import store as store_module
from tercet.index.items import Item
from tercet.index.repair import Encoding
from tercet.index.repair import repair as repair_store
from tercet.index.store import DATABASE, LEXICAL, SEGMENTS, Store
from tercet.index.verify import problems
from tercet.records import Part

SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Two segments, and two candidates in the buffer."""
    monkeypatch.setattr(store_module, "BUFFER_SIZE", 4)
    store = Store.create(tmp_path / "some.tercet", WIDTH, metadata={"model": "tiny"})
    for start in range(0, 8, 4):
        put(store, *(f"n{number}" for number in range(start, start + 4)))
    put(store, *NAMES[:2])
    return store


def photos(folder: Path) -> Path:
    """A file of the user in a new folder."""
    (folder / "photos").mkdir(parents=True)
    photo = folder / "photos" / "cat.jpg"
    photo.write_bytes(b"a cat")
    return photo


def edit(store: Store, statement: str) -> None:
    """Change the database as another program would."""
    store.close()
    with closing(sqlite3.connect(store.path / DATABASE)) as connection, connection:
        connection.execute(statement)


def test_a_writer_keeps_folders_and_files_that_are_not_its_own(store: Store) -> None:
    mine = photos(store.path / SEGMENTS)
    within = photos(store.path / SEGMENTS / "000000000009-0123abcd")
    (within.parents[1] / "mine.npy").write_bytes(b"mine")
    store.remove(["n1"])
    store.compact()
    repair(store)
    assert mine.read_bytes() == within.read_bytes() == b"a cat"
    assert (within.parents[1] / "mine.npy").exists()


def test_a_rebuilt_lexical_index_keeps_files_that_are_not_its_own(store: Store) -> None:
    mine = photos(store.path / LEXICAL)
    (store.path / LEXICAL / "meta.json").write_text("garbage")
    opened = Store(store.path)
    repair(opened)
    assert len(opened.search_lexical("cat", 3)) == 1
    assert mine.read_bytes() == b"a cat"


@pytest.mark.parametrize("suffix", ["fast", "term", "idx"])
def test_damaged_terms_are_a_broken_index_and_never_a_panic(suffix: str, store: Store) -> None:
    store.close()
    for file in (store.path / LEXICAL).glob(f"*.{suffix}"):
        with file.open("r+b") as opened:  # in place: tantivy has mapped the file
            opened.write(bytes(file.stat().st_size))
    with suppress(BrokenIndexError):
        Store(store.path).search_lexical("the cat", 3)


def test_other_users_may_read_the_lexical_index(store: Store) -> None:
    readable = {file.stat().st_mode & 0o044 for file in (store.path / LEXICAL).glob("*.json")}
    assert readable == {store.path.stat().st_mode & 0o044}


def test_a_deleted_index_leaves_files_that_are_not_its_own(store: Store) -> None:
    mine = photos(store.path)
    store.delete()
    assert mine.read_bytes() == b"a cat"
    assert [path.name for path in store.path.iterdir()] == ["photos"]


def test_a_deleted_index_leaves_no_folder(store: Store) -> None:
    store.compact(graph_threshold=1)
    store.delete()
    assert not store.path.exists()


@pytest.mark.parametrize("name", [SEGMENTS, LEXICAL, DATABASE, "writer.lock"])
def test_an_index_with_a_link_is_refused_and_nothing_is_written_through_it(
    name: str, store: Store, tmp_path: Path
) -> None:
    mine = photos(tmp_path / "home")
    target = mine if name in (DATABASE, "writer.lock") else mine.parent
    place = store.path / name
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink()
    place.symlink_to(target)
    for use in (lambda: Store(store.path), lambda: store.remove(["n1"])):
        with pytest.raises(BrokenIndexError, match=f"{name} is a symbolic link, but an index contains none"):
            use()
    assert mine.read_bytes() == b"a cat"


def test_a_link_to_an_index_may_be_opened(store: Store, tmp_path: Path) -> None:
    (tmp_path / "link.tercet").symlink_to(store.path)
    linked = Store(tmp_path / "link.tercet")
    put(linked, "river")
    assert ids(store, "the river", 1) == ["river"]


def edited_text(store: Store) -> None:
    edit(store, "UPDATE candidates SET text = 'a lion' WHERE id = 'n1'")


def edited_metadata(store: Store) -> None:
    edit(store, "UPDATE candidates SET metadata = '{}' WHERE id = 'n1'")


def edited_vector(store: Store) -> None:
    edit(store, f"UPDATE buffered SET vector = zeroblob({4 * WIDTH})")


def shortened_vector(store: Store) -> None:
    edit(store, "UPDATE buffered SET vector = x'00'")


def vector_of_another_type(store: Store) -> None:
    edit(store, f"UPDATE buffered SET vector = printf('%.{4 * WIDTH}c', 'x')")


def lost_segments(store: Store) -> None:
    shutil.rmtree(store.path / SEGMENTS)


def edited_manifest(store: Store) -> None:
    file = next((store.path / SEGMENTS).glob("*/segment.json"))
    file.write_text(json.dumps(json.loads(file.read_text()) | {"max_norm": 0.001}))


DAMAGES = [
    edited_text,
    edited_metadata,
    edited_vector,
    shortened_vector,
    vector_of_another_type,
    lost_segments,
    edited_manifest,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_every_damage_is_found_and_repaired(damage: Callable[[Store], None], store: Store) -> None:
    damage(store)
    opened = Store(store.path)
    assert problems(opened)
    repair(opened)
    assert problems(opened) == problems(Store(store.path)) == []
    assert len(opened) == 10
    assert ids(opened, "the n6", 1) == ["n6"]


def test_a_repair_encodes_an_edited_text_as_it_is_now(store: Store) -> None:
    edited_text(store)
    opened = Store(store.path)
    assert "candidates: 1 modified: 'n1'" in problems(opened)
    assert repair(opened) == 1
    assert ids(opened, "a lion", 1) == ["n1"]
    assert len(opened.search_lexical("lion", 3)) == 1


def test_edited_settings_of_an_index_are_not_repaired(store: Store) -> None:
    edit(store, "UPDATE metadata SET value = '\"other\"' WHERE name = 'model'")
    opened = Store(store.path)
    assert problems(opened) == ["settings of the index: modified: 'model'"]
    with pytest.raises(BrokenIndexError, match="cannot be repaired: settings of the index: modified"):
        repair(opened)


def test_edited_chunks_are_found_and_repaired(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "chunks.tercet", WIDTH, chunked=True)
    halves = [Part(0, 3), Part(3, 8)]

    def change(changed: list[Item]) -> None:
        parts = [item.text[part.start : part.end] for item in changed for part in halves]
        store.update(changed, vectors(parts), parts=[halves] * len(changed))

    change(items("cats", "dogs"))
    edit(store, "UPDATE chunks SET stop = 5 WHERE number = 3")
    store = Store(store.path)
    assert problems(store) == ["candidates: 2 modified: 'cats', 'dogs'"]
    repair_store(store, Encoding(lambda texts: vectors(list(texts)), change))
    assert problems(store) == []
    assert len(store.owners.all_vectors()) == 4


def flipped(store: Store, position: int) -> None:
    """Flip a bit of the database, whose log is merged first."""
    store.database.query("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    file = store.path / DATABASE
    content = bytearray(file.read_bytes())
    content[position] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("seed", range(40))
def test_a_flipped_bit_of_the_database_is_never_repaired_in_name_only(seed: int, store: Store) -> None:
    size = (store.path / DATABASE).stat().st_size
    flipped(store, int(np.random.default_rng(seed).integers(size)))
    try:
        opened = Store(store.path)
        repair(opened)
    except (BrokenIndexError, InputError):
        return  # refused, which is honest
    assert problems(opened) == []
    put(opened, "river")
    assert ids(opened, "the river", 1) == ["river"]


def malformed(store: Store) -> None:
    """An index of the database that lacks a row."""
    page_size = 4096
    ((root,),) = store.database.query(
        "SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_candidates_1'"
    )
    store.database.query("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray((store.path / DATABASE).read_bytes())
    place = content.index(b"n5", (root - 1) * page_size)
    content[place : place + 2] = b"zz"
    store.close()
    (store.path / DATABASE).write_bytes(content)


def test_writers_refuse_a_malformed_database_until_it_is_repaired(store: Store) -> None:
    malformed(store)
    opened = Store(store.path)
    assert problems(opened)
    for write in (lambda: put(opened, "river"), lambda: opened.remove(["n1"]), opened.compact):
        with pytest.raises(BrokenIndexError, match='is malformed: run "tercet index repair"'):
            write()
    repair(opened)
    put(opened, "river")
    assert problems(opened) == []


def test_a_database_without_its_tables_is_broken(store: Store) -> None:
    edit(store, "DROP TABLE candidates")
    with pytest.raises(BrokenIndexError, match=r"the definition of candidates, .* was modified"):
        Store(store.path)


def test_metadata_that_is_not_json_is_named(store: Store) -> None:
    edit(store, "UPDATE candidates SET metadata = '{' WHERE id = 'n1'")
    opened = Store(store.path)
    with pytest.raises(BrokenIndexError, match="the metadata of 'n1' is not a JSON object"):
        opened.items(np.arange(10))


@pytest.mark.parametrize("key", ['a"b', "a.b", "$[0]", "a'b", "한국", "a\\b", "", "a b]"])
def test_a_column_may_have_any_name(key: str, store: Store) -> None:
    store.add([Item("odd", "odd", {key: 1}), Item("nested", "nested", {"a": {"b": 1}})], vectors(["a", "b"]))
    assert [item.id for item in store.items(store.where({key: 1})).values()] == ["odd"]


def test_many_conditions_and_many_values_are_answered(store: Store) -> None:
    store.add([Item("wide", "wide", {f"c{n}": n for n in range(3000)})], vectors(["wide"]))
    found = store.where({f"c{n}": n for n in range(3000)})
    assert [item.id for item in store.items(found).values()] == ["wide"]
    ordered = {f"c{n}": n for n in range(3000)} | {"letters": {"!=": 9}}
    assert len(store.where(ordered)) == 1
    assert len(store.where({"letters": list(range(300_000))})) == 10
    assert len(store.where({f"c{n}": {">=": n} for n in range(1200)})) == 1


def test_a_request_that_sqlite_cannot_answer_is_no_damage(store: Store) -> None:
    with pytest.raises(InputError, match="cannot answer this request"):
        store.database.query(f"SELECT {' + '.join('1' * 1200)}")


def test_a_database_that_another_process_locks_is_called_locked(store: Store) -> None:
    with closing(sqlite3.connect(store.path / DATABASE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        store.database.query("PRAGMA busy_timeout = 50")
        with pytest.raises(OutputError, match=r"is locked .*: try again"):
            put(store, "river")
        other.execute("ROLLBACK")
    put(store, "river")


@pytest.mark.parametrize("k", [10**8, 10**11, 2**70])
def test_a_large_k_returns_all_candidates(k: int, store: Store) -> None:
    result = store.search(query("the n1"), k)
    assert result.ids.shape == (1, 10)
    assert len(store.search_lexical("the", k)) == 10
    store.compact(graph_threshold=1)
    assert store.search(query("the n1"), k).ids.shape == (1, 10)


READ = """
import sys
from pathlib import Path
from tests.index.test_store import ids, put
from tercet.errors import OutputError
from tercet.index.store import Store
from tercet.index.verify import problems
store = Store(Path(sys.argv[1]))
try:
    put(store, "river")
except OutputError as error:
    print("refused" if "ermission denied" in str(error) else error)
found = store.items(__import__("numpy").array([n for n, _ in store.search_lexical("the n1", 1)]))
print(len(store), ids(store, "the n1", 1), [item.id for item in found.values()], problems(store))
"""


OPEN = """
import sys
from pathlib import Path
from tercet.errors import OutputError
from tercet.index.store import Store
try:
    print(len(Store(Path(sys.argv[1]))))
except OutputError as error:
    print(error)
"""


def read_only(path: Path) -> None:
    for place, _, files in os.walk(path):
        for name in files:
            Path(place, name).chmod(0o444)
        Path(place).chmod(0o555)


def as_a_reader(script: str, path: Path) -> str:
    """The output of a script in a process that file permissions apply to, which they do not to root."""
    command = [sys.executable, "-c", script, str(path)]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv is missing, and root may write to any file")
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner", *command]
    paths = os.pathsep.join(map(str, (SOURCE, SOURCE.parent)))
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("graph_threshold", [1, 10_000])
def test_a_read_only_index_is_searched_but_not_changed(store: Store, graph_threshold: int) -> None:
    store.compact(graph_threshold=graph_threshold)
    store.close()
    read_only(store.path)
    assert as_a_reader(READ, store.path).splitlines() == ["refused", "10 ['n1'] ['n1'] []"]


def test_a_read_only_index_is_searched_while_another_process_has_it_open(store: Store) -> None:
    len(store)
    read_only(store.path)
    assert as_a_reader(READ, store.path).splitlines() == ["refused", "10 ['n1'] ['n1'] []"]


def test_a_read_only_index_whose_log_was_left_says_what_to_do(store: Store, tmp_path: Path) -> None:
    copy = tmp_path / "copy.tercet"
    shutil.copytree(store.path, copy)  # with the log, as a killed process leaves it
    store.close()
    assert (copy / f"{DATABASE}-wal").stat().st_size
    (copy / f"{DATABASE}-shm").unlink(missing_ok=True)
    read_only(copy)
    assert "open it once where it can be written" in as_a_reader(OPEN, copy)


def test_an_immutable_index_is_read_again_after_a_change(store: Store) -> None:
    store.close()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tables, "is_writable", lambda file: False)
        patched.setattr(tables, "open_to_read", lambda file: (connection._open(file, "ro&immutable=1"), True))
        reader = Store(store.path)
        assert len(reader) == 10
    writer = Store(store.path)
    put(writer, "river")
    writer.close()
    assert ids(reader, "the river", 1) == ["river"]
    assert len(reader) == 11


def test_a_reader_whose_file_was_deleted_returns_no_old_rows(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.close()
    monkeypatch.setattr(tables, "is_writable", lambda file: False)
    with monkeypatch.context() as patched:
        patched.setattr(tables, "open_to_read", lambda file: (connection._open(file, "ro&immutable=1"), True))
        reader = Store(store.path)
    (store.path / DATABASE).unlink()
    for _ in range(2):
        with pytest.raises(TercetError):
            ids(reader, "the n1", 1)
