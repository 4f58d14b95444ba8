"""The store: committed changes survive kills, full disks, damage and concurrent writers."""

import shutil
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.errors import BrokenIndexError, InputError, LockedIndexError, OutputError
from tercet.index import store as store_module
from tercet.index.items import Item
from tercet.index.lexical_sync import LexicalSync
from tercet.index.repair import Encoding
from tercet.index.repair import repair as repair_store
from tercet.index.store import DATABASE, SEGMENTS, Store
from tercet.index.verify import problems
from tercet.records import Certainty, Codes, Floats, Ints

WIDTH = 6
NAMES = ("cat", "dog", "bird", "fish", "tree", "house")


def vector(text: str) -> Floats:
    """A random unit vector that is determined by the text."""
    drawn = np.random.default_rng(list(text.encode())).standard_normal(WIDTH, dtype=np.float32)
    return drawn / np.linalg.norm(drawn)


def vectors(texts: list[str]) -> Floats:
    return np.stack([vector(text) for text in texts])


def items(*names: str) -> list[Item]:
    return [Item(name, f"the {name}", {"letters": len(name), "first": name[0]}) for name in names]


def put(store: Store, *names: str) -> None:
    new = items(*names)
    store.add(new, vectors([item.text for item in new]))


def query(text: str) -> Codes:
    return Codes(vector(text)[None, None], np.ones((1, 1), dtype=np.bool_))


def ids(store: Store, text: str, k: int = 3, subset: "Ints | None" = None) -> list[str]:
    numbers = store.search(query(text), k, subset=subset).ids[0]
    known = store.items(numbers)
    return [known[number].id for number in numbers.tolist() if number >= 0]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store.create(tmp_path / "some.tercet", WIDTH, metadata={"model": "tiny"})
    put(store, *NAMES)
    return store


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "BUFFER_SIZE", 4)


def repair(store: Store) -> int:
    """The number of vectors that a repair encoded."""
    return repair_store(
        store,
        Encoding(
            lambda texts: vectors(list(texts)),
            lambda changed: store.update(changed, vectors([item.text for item in changed])),
        ),
    )


def everything(store: Store) -> dict[str, str]:
    """Texts by id, of the candidates that are found by their own vectors."""
    return {
        item.id: item.text
        for item in store.items(np.arange(store.database.next_number())).values()
        if ids(store, item.text, 1) == [item.id]
    }


@pytest.mark.parametrize("buffer_size", [4, 8192])
def test_added_candidates_are_found_also_after_reopening(
    tmp_path: Path, buffer_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "BUFFER_SIZE", buffer_size)
    store = Store.create(tmp_path / "some.tercet", WIDTH, metadata={"model": "tiny"})
    for name in NAMES:
        put(store, name)
    for opened in (store, Store(store.path)):
        assert len(opened) == 6
        assert ids(opened, "the fish", 1) == ["fish"]
        assert len(ids(opened, "the fish", 10)) == 6
        assert opened.metadata("model") == "tiny"
        assert [number for number, _ in opened.search_lexical("a fish", 3)] == [3]
    assert problems(store) == []


def test_a_removed_candidate_is_not_found_and_its_id_is_free(store: Store, small_segments: None) -> None:
    put(store, "river", "sea", "sky", "sun")  # a segment
    store.remove(["sea", "cat"])
    assert len(store) == 8
    assert "sea" not in ids(store, "the sea", 10)
    assert store.search_lexical("sea", 3) == []
    with pytest.raises(InputError, match="has no candidate 'sea': nothing was removed"):
        store.remove(["dog", "sea"])
    assert "dog" in ids(store, "the dog", 1)
    put(store, "sea")
    assert ids(store, "the sea", 1) == ["sea"]
    assert problems(store) == []


def test_an_update_replaces_text_vector_and_terms(store: Store) -> None:
    store.update([Item("cat", "a lion", {}), Item("new", "a moon", {})], vectors(["a lion", "a moon"]))
    assert len(store) == 7
    assert ids(store, "a lion", 1) == ["cat"]
    assert store.search_lexical("cat", 3) == []
    assert len(store.search_lexical("lion moon", 3)) == 2


def test_existing_or_repeated_ids_change_nothing(store: Store) -> None:
    for names, message in [
        (("new", "cat"), "'cat' exists already: update"),
        (("b", "a", "a"), "ids must be distinct, but 'a' is repeated"),
    ]:
        with pytest.raises(InputError, match=message):
            put(store, *names)
    with pytest.raises(InputError, match=r"vectors must be \[1, 6\]"):
        store.add(items("new"), np.zeros((1, 5), dtype=np.float32))
    assert len(store) == 6
    assert store.search_lexical("new", 3) == []


def test_candidates_are_selected_by_metadata(store: Store) -> None:
    def selected(**conditions: object) -> set[str]:
        return {item.id for item in store.items(store.where(conditions)).values()}

    assert selected(letters=3) == {"cat", "dog"}
    assert selected(letters=[3, 5]) == {"cat", "dog", "house"}
    assert selected(letters=4, first="b") == {"bird"}
    for unknown in ("colour", 'x" OR 1 --'):
        with pytest.raises(InputError, match="in its metadata: the columns are 'first', 'letters'"):
            selected(**{unknown: 1})
    assert ids(store, "the fish", 9, subset=store.where({"letters": 3})) == ids(
        store, "the fish", 9, subset=store.where({"letters": [3]})
    )
    assert set(ids(store, "the fish", 9, subset=store.where({"letters": 3}))) == {"cat", "dog"}


def test_compacting_keeps_all_candidates(store: Store, small_segments: None) -> None:
    put(store, "river", "sea", "sky", "sun")
    store.remove(["dog", "sky"])
    before = everything(store)
    store.compact(graph_threshold=1)
    assert len(list((store.path / SEGMENTS).iterdir())) == 1
    assert everything(store) == before == everything(Store(store.path))
    assert set(store.search(query("the sun"), 1).certainty) == {Certainty.CERTIFIED_UP_TO_RECALL}
    assert store.search(query("the sun"), 1, exact=True).certainty == (Certainty.CERTIFIED,)
    put(store, "moon")
    store.remove(["sun"])
    assert ids(store, "the moon", 1) == ["moon"]
    assert "sun" not in ids(store, "the sun", 20)
    assert problems(store) == []
    for id_ in list(everything(store)):
        store.remove([id_])
    store.compact()
    assert len(store) == 0
    assert ids(store, "the sun") == []


def test_readers_see_each_commit_and_an_open_snapshot_does_not_change(store: Store) -> None:
    reader = Store(store.path)
    before = reader.index()
    put(store, "river")
    store.remove(["cat"])
    assert len(before) == 6
    assert ids(reader, "the river", 1) == ["river"]
    assert "cat" not in ids(reader, "the cat", 9)
    store.compact()
    assert ids(reader, "the river", 1) == ["river"]


def test_a_second_writer_is_refused_while_readers_continue(store: Store) -> None:
    with Store(store.path).writer():
        with pytest.raises(
            LockedIndexError, match=r"another process is writing to .*: wait until it has finished"
        ):
            put(store, "river")
        assert ids(store, "the fish", 1) == ["fish"]
    put(store, "river")


def test_a_full_disk_changes_nothing(
    store: Store, small_segments: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def disk_full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(np, "save", disk_full)
        with pytest.raises(OutputError, match="no space left on the device"):
            put(store, "river", "sea", "sky", "sun")
    assert len(store) == 6
    assert everything(store).keys() == set(NAMES)
    store.database.query(f"PRAGMA max_page_count = {store.database.query('PRAGMA page_count')[0][0]}")
    with pytest.raises(OutputError, match="full"):
        store.add([Item("long", "x" * 200_000, {})], vectors(["x"]))
    assert everything(store).keys() == set(NAMES)


def test_broken_segments_are_found_and_encoded_again(store: Store, small_segments: None) -> None:
    put(store, "river", "sea", "sky", "sun")
    before = everything(store)
    folder = next(iter(sorted((store.path / SEGMENTS).iterdir())))
    (folder / "vectors.npy").write_bytes((folder / "vectors.npy").read_bytes()[:-7])
    assert any("segment" in line for line in problems(store))
    with pytest.raises(BrokenIndexError, match='run "tercet index repair"'):
        ids(Store(store.path), "the sea")
    opened = Store(store.path)
    assert repair(opened) > 0
    assert problems(opened) == []
    assert everything(opened) == before

    other = next((store.path / SEGMENTS).iterdir())
    content = bytearray((other / "vectors.npy").read_bytes())
    content[-3] ^= 64  # one bit
    (other / "vectors.npy").write_bytes(content)
    assert "modified after they were written: vectors" in " ".join(problems(Store(store.path)))
    shutil.rmtree(other)
    opened = Store(store.path)
    repair(opened)
    assert everything(opened) == before


def test_files_of_a_killed_writer_are_deleted_by_the_next(store: Store) -> None:
    for name in ("000000000007-0123abcd", ".0123456789ab.partial"):
        orphan = store.path / SEGMENTS / name
        orphan.mkdir()
        (orphan / "vectors.npy").write_bytes(b"half")
        put(store, name)
        assert not orphan.exists()


def test_the_lexical_index_catches_up_after_a_kill(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(LexicalSync, "update", lambda self: None)  # killed between the two commits
        put(store, "river")
        store.remove(["cat"])
    assert store.search_lexical("river", 3) == []
    put(store, "sea")
    found = store.items(np.array([number for number, _ in store.search_lexical("river sea cat", 5)]))
    assert {item.id for item in found.values()} == {"river", "sea"}


def test_a_folder_that_is_not_an_index_is_named(tmp_path: Path, store: Store) -> None:
    with pytest.raises(InputError, match='is not an index: build one with "tercet index build"'):
        Store(tmp_path)
    with pytest.raises(OutputError, match="exists"):
        Store.create(store.path, WIDTH)
    (store.path / "store.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(BrokenIndexError, match="is not a valid database"):
        Store(store.path)


def test_kill_9_at_any_moment_leaves_the_last_committed_state(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "benchmarks" / "kill_index.py"
    done = subprocess.run(
        [sys.executable, str(script), "--rounds", "15", "--folder", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "15 rounds" in done.stdout


def test_candidates_without_an_id_get_a_free_number(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "numbers.tercet", WIDTH)
    put(store, "1", "2", "3")
    store.add([Item("", "a"), Item("", "b"), Item("4", "c")], vectors(["a", "b", "c"]))
    assert {item.text: item.id for item in store.items(np.arange(9)).values()} == {
        "the 1": "1",
        "the 2": "2",
        "the 3": "3",
        "a": "3+",
        "b": "4+",
        "c": "4",
    }
    with pytest.raises(InputError, match="an update needs the id of every candidate"):
        store.update([Item("", "d")], vectors(["d"]))


def test_values_that_json_cannot_hold_are_refused_before_anything_is_written(store: Store) -> None:
    for item in (
        Item("x", "x", {"a": float("nan")}),
        Item("x", "x", {"a": np.int64(1)}),
        Item("\ud800", "x"),
    ):
        with pytest.raises(InputError, match="cannot be stored as JSON"):
            store.add([item], vectors(["x"]))
    assert len(store) == 6


@pytest.mark.parametrize(
    ("id_", "text", "message"),
    [
        (5, "x", "the id of an Item must be a string, got int 5"),
        (None, "x", "the id of an Item must be a string, got None"),
        ("x", 5, "the text of an Item must be a string, got int 5"),
        ("x", b"x", "the text of an Item must be a string, got bytes b'x'"),
    ],
)
def test_the_id_and_the_text_of_an_item_are_strings(id_: Any, text: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Item(id_, text)


def test_conditions_accept_strings_numbers_bools_and_none(store: Store) -> None:
    store.add([Item("none", "none", {"letters": None, "a.b": 1, 'c"d': 2})], vectors(["none"]))
    assert len(store.where({"letters": np.int64(3)})) == 2
    assert {item.id for item in store.items(store.where({"letters": [None, 5]})).values()} == {
        "none",
        "house",
    }
    assert len(store.where({"a.b": 1})) == 1
    assert len(store.where({"letters": []})) == 0
    for invalid in ({"a": 1}, b"x", 2**70):
        with pytest.raises(InputError, match="letters="):
            store.where({"letters": invalid})


def test_a_graph_that_lost_most_of_its_candidates_is_not_used(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "graph.tercet", WIDTH, lexical=False)
    names = [f"n{n}" for n in range(1500)]
    put(store, *names)
    store.compact(graph_threshold=1)
    store.remove(names[:1000])
    result = store.search(query("the n1200"), 20)
    assert result.certainty == (Certainty.CERTIFIED,)
    assert result.ids[0].tolist() == store.search(query("the n1200"), 20, exact=True).ids[0].tolist()


def test_a_store_works_without_a_broken_graph_or_lexical_index_and_repairs_them(store: Store) -> None:
    store.compact(graph_threshold=1)
    (graph,) = store.path.glob("segments/*/graph.faiss")
    graph.write_bytes(graph.read_bytes()[:60])
    (store.path / "lexical" / "meta.json").write_text("garbage")
    opened = Store(store.path)
    assert ids(opened, "the fish", 1) == ["fish"]
    with pytest.raises(BrokenIndexError, match='lexical is broken: run "tercet index repair"'):
        opened.search_lexical("fish", 1)
    put(opened, "river")
    assert [line.split(":")[0][:5] for line in problems(opened)] == ["graph", "lexic"]
    opened.remove(["river"])
    repair(opened)
    with opened.writer():
        opened.rebuild_lexical()
    assert problems(opened) == []
    assert len(opened.search_lexical("fish", 1)) == 1


def test_threads_that_share_a_store_wait_for_each_other(store: Store) -> None:
    def add(start: int) -> None:
        for number in range(start, start + 15):
            put(store, f"t{number}")

    def search() -> None:
        for _ in range(60):
            found = store.search(query("the fish"), 5).ids[0].tolist()
            assert len(set(found)) == 5

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(add, 100), pool.submit(add, 200), pool.submit(search)]:
            done.result()
    assert len(store) == 36
    assert problems(store) == []


def test_a_reader_retries_if_a_writer_deletes_files_meanwhile(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.compact()
    reader, load = Store(store.path), store_module.Segment.load
    calls = []

    def slow(folder: Path) -> object:
        if not calls:
            calls.append(folder)
            put(store, "river")
            store.compact()  # deletes the segment that the reader is about to load
        return load(folder)

    monkeypatch.setattr(store_module.Segment, "load", slow)
    assert len(reader.index()) == 7


def test_a_closed_store_raises_an_error(store: Store) -> None:
    store.close()
    with pytest.raises(InputError, match="open it again"):
        len(store)


def test_an_update_of_buffered_candidates_leaves_one_of_each(store: Store, small_segments: None) -> None:
    store.compact()
    put(store, "a", "b")  # buffered
    updated = [Item("a", "the other a"), *items("c", "d", "e")]
    store.update(updated, vectors([item.text for item in updated]))  # enough for a segment
    assert problems(store) == []
    assert ids(store, "the other a", 1) == ["a"]
    assert len(store.index()) == len(store) == 11


def test_an_index_of_format_1_is_refused(tmp_path: Path) -> None:
    """Format 1 kept its metadata in a table called ``facts``."""
    (tmp_path / "old.tercet").mkdir()
    with closing(sqlite3.connect(tmp_path / "old.tercet" / DATABASE)) as old, old:
        old.execute("CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
        old.execute("INSERT INTO facts VALUES ('format', '1')")
    with pytest.raises(
        InputError, match=r'has index format 1, .* build it again in a new folder, with "tercet index build"'
    ):
        Store(tmp_path / "old.tercet")


def test_an_index_of_a_later_format_is_refused(store: Store) -> None:
    store.set_metadata({"format": 4})
    with pytest.raises(InputError, match="has index format 4, but this version of tercet reads format 3"):
        Store(store.path)


def test_the_summary_counts_and_names_the_model(store: Store) -> None:
    store.remove(["cat"])
    summary = store.summary()
    assert (summary["candidates"], summary["lexical"], summary["width"]) == (5, "yes", WIDTH)
    assert (summary["model"], summary["storage"]) == ("tiny", "float32")
    assert summary["bytes"] > 0


@pytest.mark.parametrize(("threshold", "graphs"), [(6, 1), (7, 0)])
def test_a_graph_is_built_for_as_many_vectors_as_the_threshold(
    store: Store, threshold: int, graphs: int
) -> None:
    store.compact(graph_threshold=threshold)
    assert len(list(store.path.glob("segments/*/graph.faiss"))) == graphs
