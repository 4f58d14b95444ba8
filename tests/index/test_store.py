"""The store: what is written stays, whatever happens in between."""

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tercet.errors import BrokenIndexError, InputError, LockedIndexError, OutputError
from tercet.index import store as store_module
from tercet.index.items import Item
from tercet.index.repair import problems, repair
from tercet.index.store import SEGMENTS, Store
from tercet.records import Codes, Floats

WIDTH = 6
WORDS = ("cat", "dog", "bird", "fish", "tree", "house")


def vector(text: str) -> Floats:
    """A text's own vector, the same every time."""
    drawn = np.random.default_rng(list(text.encode())).standard_normal(WIDTH, dtype=np.float32)
    return drawn / np.linalg.norm(drawn)


def vectors(texts: list[str]) -> Floats:
    return np.stack([vector(text) for text in texts])


def items(*names: str) -> list[Item]:
    return [Item(name, f"the {name}", {"letters": len(name), "first": name[0]}) for name in names]


def put(store: Store, *names: str) -> None:
    made = items(*names)
    store.add(made, vectors([item.text for item in made]))


def ask(text: str) -> Codes:
    return Codes(vector(text)[None, None], np.ones((1, 1), dtype=np.bool_))


def ids(store: Store, text: str, k: int = 3, **how: object) -> list[str]:
    found = store.search(ask(text), k, **how).ids[0]
    known = store.items(found)
    return [known[number].id for number in found.tolist() if number >= 0]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store.create(tmp_path / "some.tercet", WIDTH, facts={"model": "tiny"})
    put(made, *WORDS)
    return made


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "FEW", 4)


def everything(store: Store) -> dict[str, str]:
    """Text by id, of those that can be found by their own vectors."""
    return {
        item.id: item.text
        for item in store.items(np.arange(store.database.next_number())).values()
        if ids(store, item.text, 1) == [item.id]
    }


@pytest.mark.parametrize("few", [4, 8192])
def test_what_is_put_in_is_found_also_after_opening_again(
    tmp_path: Path, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "FEW", few)
    store = Store.create(tmp_path / "some.tercet", WIDTH, facts={"model": "tiny"})
    for name in WORDS:
        put(store, name)
    for opened in (store, Store(store.path)):
        assert len(opened) == 6
        assert ids(opened, "the fish", 1) == ["fish"]
        assert len(ids(opened, "the fish", 10)) == 6
        assert opened.fact("model") == "tiny"
        assert [number for number, _ in opened.search_words("a fish", 3)] == [3]
    assert problems(store) == []


def test_what_is_removed_is_gone_and_its_id_is_free(store: Store, small_segments: None) -> None:
    put(store, "river", "sea", "sky", "sun")  # a segment
    store.remove(["sea", "cat"])
    assert len(store) == 8
    assert "sea" not in ids(store, "the sea", 10)
    assert store.search_words("sea", 3) == []
    with pytest.raises(InputError, match="there is no candidate 'sea'"):
        store.remove(["dog", "sea"])
    assert "dog" in ids(store, "the dog", 1)
    put(store, "sea")
    assert ids(store, "the sea", 1) == ["sea"]
    assert problems(store) == []


def test_an_update_replaces_text_vector_and_words(store: Store) -> None:
    store.update([Item("cat", "a lion", {}), Item("new", "a moon", {})], vectors(["a lion", "a moon"]))
    assert len(store) == 7
    assert ids(store, "a lion", 1) == ["cat"]
    assert store.search_words("cat", 3) == []
    assert len(store.search_words("lion moon", 3)) == 2


def test_ids_that_are_taken_or_come_twice_change_nothing(store: Store) -> None:
    for names, message in [(("new", "cat"), "'cat' is there already"), (("a", "a"), "'a' comes again")]:
        with pytest.raises(InputError, match=message):
            put(store, *names)
    with pytest.raises(InputError, match=r"vectors must be \[1, 6\]"):
        store.add(items("new"), np.zeros((1, 5), dtype=np.float32))
    assert len(store) == 6
    assert store.search_words("new", 3) == []


def test_metadata_chooses(store: Store) -> None:
    def chosen(**wanted: object) -> set[str]:
        return {item.id for item in store.items(store.where(wanted)).values()}

    assert chosen(letters=3) == {"cat", "dog"}
    assert chosen(letters=[3, 5]) == {"cat", "dog", "house"}
    assert chosen(letters=4, first="b") == {"bird"}
    assert chosen(colour="red") == set()
    assert chosen(**{'x" OR 1 --': 1}) == set()
    assert ids(store, "the fish", 9, among=store.where({"letters": 3})) == ids(
        store, "the fish", 9, among=store.where({"letters": [3]})
    )
    assert set(ids(store, "the fish", 9, among=store.where({"letters": 3}))) == {"cat", "dog"}


def test_compacting_keeps_what_is_there(store: Store, small_segments: None) -> None:
    put(store, "river", "sea", "sky", "sun")
    store.remove(["dog", "sky"])
    before = everything(store)
    store.compact(graph_from=1)
    assert len(list((store.path / SEGMENTS).iterdir())) == 1
    assert everything(store) == before == everything(Store(store.path))
    assert set(store.search(ask("the sun"), 1).certainty) == {"certified up to the index's recall"}
    assert store.search(ask("the sun"), 1, exact=True).certainty == ("certified",)
    put(store, "moon")
    store.remove(["sun"])
    assert ids(store, "the moon", 1) == ["moon"]
    assert "sun" not in ids(store, "the sun", 20)
    assert problems(store) == []
    for name in list(everything(store)):
        store.remove([name])
    store.compact()
    assert len(store) == 0
    assert ids(store, "the sun") == []


def test_readers_see_each_change_whole_while_somebody_writes(store: Store) -> None:
    reader = Store(store.path)
    before = reader.index()
    put(store, "river")
    store.remove(["cat"])
    assert len(before) == 6
    assert ids(reader, "the river", 1) == ["river"]
    assert "cat" not in ids(reader, "the cat", 9)
    store.compact()
    assert ids(reader, "the river", 1) == ["river"]


def test_a_second_writer_is_refused_and_readers_go_on(store: Store) -> None:
    with Store(store.path).writer():
        with pytest.raises(LockedIndexError, match="is being written to by another process"):
            put(store, "river")
        assert ids(store, "the fish", 1) == ["fish"]
    put(store, "river")


def test_a_full_disk_changes_nothing(
    store: Store, small_segments: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(np, "save", no_room)
        with pytest.raises(OutputError, match="No space left on device"):
            put(store, "river", "sea", "sky", "sun")
    assert len(store) == 6
    assert everything(store).keys() == set(WORDS)
    store.database.ask(f"PRAGMA max_page_count = {store.database.ask('PRAGMA page_count')[0][0]}")
    with pytest.raises(OutputError, match="full"):
        store.add([Item("long", "x" * 200_000, {})], vectors(["x"]))
    assert everything(store).keys() == set(WORDS)


def test_broken_files_are_found_and_made_again(store: Store, small_segments: None) -> None:
    put(store, "river", "sea", "sky", "sun")
    before = everything(store)
    folder = next(iter(sorted((store.path / SEGMENTS).iterdir())))
    (folder / "vectors.npy").write_bytes((folder / "vectors.npy").read_bytes()[:-7])
    assert any("segment" in line for line in problems(store))
    with pytest.raises(BrokenIndexError, match="run tercet index repair"):
        ids(Store(store.path), "the sea")
    opened = Store(store.path)
    assert repair(opened, lambda texts: vectors(list(texts))) > 0
    assert problems(opened) == []
    assert everything(opened) == before

    other = next((store.path / SEGMENTS).iterdir())
    content = bytearray((other / "vectors.npy").read_bytes())
    content[-3] ^= 64  # one bit
    (other / "vectors.npy").write_bytes(content)
    assert "changed since they were written: vectors" in " ".join(problems(Store(store.path)))
    shutil.rmtree(other)
    opened = Store(store.path)
    repair(opened, lambda texts: vectors(list(texts)))
    assert everything(opened) == before


def test_what_was_killed_before_its_transaction_is_swept_away(store: Store) -> None:
    orphan = store.path / SEGMENTS / "orphan"
    orphan.mkdir()
    (orphan / "vectors.npy").write_bytes(b"half")
    put(store, "river")
    assert not orphan.exists()


def test_words_hear_of_what_they_missed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Store, "_tell_words", lambda self: None)  # killed between the two
        put(store, "river")
        store.remove(["cat"])
    assert store.search_words("river", 3) == []
    put(store, "sea")
    found = store.items(np.array([number for number, _ in store.search_words("river sea cat", 5)]))
    assert {item.id for item in found.values()} == {"river", "sea"}


def test_what_is_no_store_is_named(tmp_path: Path, store: Store) -> None:
    with pytest.raises(InputError, match="is no index: make one with tercet index build"):
        Store(tmp_path)
    with pytest.raises(OutputError, match="exists"):
        Store.create(store.path, WIDTH)
    (store.path / "store.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(BrokenIndexError, match="is no whole database"):
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
    with pytest.raises(InputError, match="an update needs the id of each candidate"):
        store.update([Item("", "d")], vectors(["d"]))


def test_what_json_cannot_hold_is_refused_before_anything_is_written(store: Store) -> None:
    for item in (
        Item("x", "x", {"a": float("nan")}),
        Item("x", "x", {"a": np.int64(1)}),
        Item("\ud800", "x"),
    ):
        with pytest.raises(InputError, match="cannot be kept as JSON"):
            store.add([item], vectors(["x"]))
    assert len(store) == 6


def test_metadata_is_compared_with_what_can_be_compared(store: Store) -> None:
    store.add([Item("none", "none", {"letters": None, "a.b": 1, 'c"d': 2})], vectors(["none"]))
    assert len(store.where({"letters": np.int64(3)})) == 2
    assert {item.id for item in store.items(store.where({"letters": [None, 5]})).values()} == {
        "none",
        "house",
    }
    assert len(store.where({"a.b": 1})) == 1
    assert len(store.where({"letters": []})) == 0
    for wrong in ({"a": 1}, b"x", 2**70):
        with pytest.raises(InputError, match="letters="):
            store.where({"letters": wrong})


def test_a_graph_that_lost_most_of_its_candidates_is_not_asked(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "graph.tercet", WIDTH, words=False)
    names = [f"n{n}" for n in range(1500)]
    put(store, *names)
    store.compact(graph_from=1)
    store.remove(names[:1000])
    found = store.search(ask("the n1200"), 20)
    assert found.certainty == ("certified",)
    assert found.ids[0].tolist() == store.search(ask("the n1200"), 20, exact=True).ids[0].tolist()


def test_a_broken_graph_or_index_of_words_is_done_without_and_repaired(store: Store) -> None:
    store.compact(graph_from=1)
    (graph,) = store.path.glob("segments/*/graph.faiss")
    graph.write_bytes(graph.read_bytes()[:60])
    (store.path / "words" / "meta.json").write_text("garbage")
    opened = Store(store.path)
    assert ids(opened, "the fish", 1) == ["fish"]
    with pytest.raises(BrokenIndexError, match="words is broken: run tercet index repair"):
        opened.search_words("fish", 1)
    put(opened, "river")
    assert [line.split(":")[0][:5] for line in problems(opened)] == ["graph"]  # words still have to hear
    opened.remove(["river"])
    repair(opened, lambda texts: vectors(list(texts)))
    with opened.writer():
        opened.retell_words()
    assert problems(opened) == []
    assert len(opened.search_words("fish", 1)) == 1


def test_threads_of_one_store_wait_for_each_other(store: Store) -> None:
    def add(start: int) -> None:
        for number in range(start, start + 15):
            put(store, f"t{number}")

    def look() -> None:
        for _ in range(60):
            found = store.search(ask("the fish"), 5).ids[0].tolist()
            assert len(set(found)) == 5

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(add, 100), pool.submit(add, 200), pool.submit(look)]:
            done.result()
    assert len(store) == 36
    assert problems(store) == []


def test_a_reader_looks_again_when_files_vanish_under_its_eyes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.compact()
    reader, load = Store(store.path), store_module.Segment.load
    calls = []

    def slow(folder: Path) -> object:
        if not calls:
            calls.append(folder)
            put(store, "river")
            store.compact()  # sweeps away what the reader is about to load
        return load(folder)

    monkeypatch.setattr(store_module.Segment, "load", slow)
    assert len(reader.index()) == 7


def test_a_closed_store_says_so(store: Store) -> None:
    store.close()
    with pytest.raises(InputError, match="open it again"):
        len(store)


def test_an_update_of_what_waits_for_a_segment_leaves_one_of_it(store: Store, small_segments: None) -> None:
    store.compact()
    put(store, "a", "b")  # they wait
    made = [Item("a", "the other a"), *items("c", "d", "e")]
    store.update(made, vectors([item.text for item in made]))  # enough for a segment
    assert problems(store) == []
    assert ids(store, "the other a", 1) == ["a"]
    assert len(store.index()) == len(store) == 11
