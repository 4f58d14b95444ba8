"""Indexes in PostgreSQL: certificates, faults of the server, secrets, and the migration."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tercet
from tercet.errors import DatabaseError, InputError, LockedIndexError, OutputError, StaleIndexError
from tercet.index.exact import ExactIndex
from tercet.index.items import Item
from tercet.index.opening import create_store, migration, open_store
from tercet.index.protocol import CandidateStore, View
from tercet.records import Certainty, Codes, Floats
from tests.databases.places import Places
from tests.databases.servers import FAST, PostgresServer

pytestmark = pytest.mark.slow
psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'tercet[pgvector]'")

WIDTH = 12


@pytest.fixture
def place(places: Places) -> str:
    return places.new("postgres")


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server that the test may stop and kill, so it writes to disk."""
    server = PostgresServer(settings=())
    yield server
    server.close()


def draw(*shape: int, seed: int) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def filled(place: str, vectors: Floats, **options: Any) -> CandidateStore:
    store = create_store(place, vectors.shape[1], **options)
    store.add([Item(str(at), f"text {at}", {"even": at % 2 == 0}) for at in range(len(vectors))], vectors)
    return store


def codes_of(vectors: Floats) -> Codes:
    return Codes(vectors, np.ones(vectors.shape[:2], dtype=np.bool_))


def found(
    store: CandidateStore, codes: Codes, k: int, *, scale: float = 1.0, exact: bool = False, where: Any = None
) -> tuple[list[list[int]], list[list[float]], Certainty]:
    def read(view: View) -> Any:
        selection = view.select(where) if where else None
        return view.by_vectors(codes, k, scale=scale, exact=exact, selection=selection)

    rankings = store.read(read)
    return (
        [list(ranking.scores) for ranking in rankings],
        [list(ranking.scores.values()) for ranking in rankings],
        rankings[0].certainty,
    )


ADVERSARIAL: dict[str, Callable[[], tuple[Floats, Floats]]] = {
    "random": lambda: (draw(400, WIDTH, seed=1), draw(3, 8, WIDTH, seed=2)),
    "norms of many sizes": lambda: (
        draw(400, WIDTH, seed=1) * np.float32(10) ** draw(400, 1, seed=3),
        draw(3, 8, WIDTH, seed=2) * 5,
    ),
    "almost equal": lambda: (
        draw(1, WIDTH, seed=1) + np.float32(1e-4) * draw(400, WIDTH, seed=2),
        draw(1, 1, WIDTH, seed=1) + np.float32(1e-4) * draw(3, 8, WIDTH, seed=4),
    ),
    "all equal": lambda: (np.ones((50, WIDTH), np.float32), draw(3, 8, WIDTH, seed=2)),
    "all products negative": lambda: (np.abs(draw(300, WIDTH, seed=1)), -np.abs(draw(3, 8, WIDTH, seed=2))),
    "tiny codes": lambda: (draw(300, WIDTH, seed=1), draw(3, 4, WIDTH, seed=2) * np.float32(1e-9)),
    "huge codes": lambda: (draw(300, WIDTH, seed=1), draw(3, 4, WIDTH, seed=2) * np.float32(1e9)),
    "zeros": lambda: (np.zeros((30, WIDTH), np.float32), draw(2, 4, WIDTH, seed=2)),
}


@pytest.mark.parametrize("storage", ["float32", "float16"])
@pytest.mark.parametrize("kind", list(ADVERSARIAL))
def test_a_certified_result_is_that_of_a_full_scan(place: str, kind: str, storage: Any) -> None:
    vectors, codes = ADVERSARIAL[kind]()
    store = filled(place, vectors, storage=storage, lexical=False)
    reference = ExactIndex(WIDTH)
    stored = vectors.astype(np.float16).astype(np.float32) if storage == "float16" else vectors
    reference.add(np.arange(len(vectors)), stored)
    for k, scale in ((1, 1.0), (5, 30.0), (5, 0.1), (len(vectors) + 3, 1.0)):
        if kind == "huge codes" and scale > 1:
            continue
        expected = reference.search(codes_of(codes), k, scale=scale)
        ids, scores, certainty = found(store, codes_of(codes), k, scale=scale)
        assert certainty is Certainty.CERTIFIED
        assert ids == [row[row >= 0].tolist() for row in expected.ids]
        assert scores == [row[np.isfinite(row)].tolist() for row in expected.scores]


@pytest.mark.parametrize("storage", ["float32", "float16"])
def test_a_result_of_the_graph_says_so_and_exact_search_does_not_use_it(place: str, storage: Any) -> None:
    vectors, codes = draw(3000, WIDTH, seed=1), codes_of(draw(4, 6, WIDTH, seed=2))
    store = filled(place, vectors, storage=storage, lexical=False)
    expected = found(store, codes, 10)
    store.compact(graph_threshold=1)
    assert store.summary()["graphs"] == 1
    by_graph = found(store, codes, 10)
    assert by_graph[2] is Certainty.CERTIFIED_UP_TO_RECALL
    assert found(store, codes, 10, exact=True) == expected
    shared = [len(set(a) & set(b)) for a, b in zip(by_graph[0], expected[0], strict=True)]
    assert sum(shared) >= 0.98 * 40
    few = found(store, codes, 3, where={"even": True})
    assert few[2] is Certainty.CERTIFIED_UP_TO_RECALL
    assert all(number % 2 == 0 for row in few[0] for number in row)
    store.remove([str(at) for at in range(40, 3000)])
    assert [len(row) for row in found(store, codes, 100)[0]] == [40] * 4


def test_a_search_sees_one_state_although_others_write(place: str) -> None:
    store = filled(place, draw(200, WIDTH, seed=1), lexical=False)
    other = open_store(place)
    codes = codes_of(draw(1, 4, WIDTH, seed=2))

    def twice(view: View) -> tuple[Any, Any]:
        before = view.by_vectors(codes, 5, scale=1.0, exact=False)[0]
        other.remove([str(number) for number in before.scores])
        better = Item("better", "better", {})
        other.add([better], 100 * codes.vectors[:, 0])
        return before, view.by_vectors(codes, 5, scale=1.0, exact=False)[0]

    before, after = store.read(twice)
    assert after == before
    assert found(store, codes, 1)[0] == [[200]]


def test_certificates_hold_while_a_writer_changes_everything(place: str) -> None:
    """Every result equals the scan of a state that existed: all candidates of one writing round."""
    rounds, count = 12, 60
    states = [draw(count, WIDTH, seed=100 + at) for at in range(rounds)]
    codes = codes_of(draw(1, 4, WIDTH, seed=2))
    expected = []
    for vectors in states:
        index = ExactIndex(WIDTH)
        index.add(np.arange(count), vectors)
        expected.append(index.search(codes, 5).scores[0].tolist())
    store = filled(place, states[0], lexical=False)
    reader, failed, stop = open_store(place), [], threading.Event()

    def read() -> None:
        while not stop.is_set():
            _, scores, certainty = found(reader, codes, 5)
            if certainty is not Certainty.CERTIFIED or scores[0] not in expected:
                failed.append(scores)

    thread = threading.Thread(target=read)
    thread.start()
    for vectors in states[1:]:
        store.update([Item(str(at), "text", {}) for at in range(count)], vectors)
    stop.set()
    thread.join()
    assert failed == []


def test_numbers_too_large_for_half_precision_are_refused(place: str) -> None:
    store = create_store(place, WIDTH, storage="float16", lexical=False)
    with pytest.raises(InputError, match="float16 holds numbers up to 65,504, got 7e"):
        store.add([Item("a", "a")], np.full((1, WIDTH), 7e4, np.float32))
    with pytest.raises(InputError, match="storage must be one of float32, float16, got 'int8'"):
        create_store(place + "b", WIDTH, storage="int8")


def test_several_writers_wait_for_each_other_and_lose_nothing(place: str) -> None:
    create_store(place, WIDTH).close()

    def write(name: int) -> None:
        store = open_store(place)
        for at in range(10):
            store.add([Item("", f"{name} {at}"), Item("", "x")], draw(2, WIDTH, seed=at))
        store.close()

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store = open_store(place)
    assert sorted(int(item.id) for item in store) == list(range(80))
    assert store.problems() == []


def test_the_migration_can_be_run_by_hand_and_is_then_used(place: str, tiny: tercet.BiEncoder) -> None:
    sql = migration(place, 16, storage="float16", lexical=True, chunked=False)
    with psycopg.connect(place.rpartition("/")[0]) as connection:
        connection.execute(sql)
    with pytest.raises(InputError, match="were created with another 'storage'"):
        tercet.Retriever(tiny, index=place)
    with tercet.Retriever(tiny, index=place, storage="float16") as retriever:
        retriever.add(["a dog ran", "old house"])
        assert retriever.search("a dog ran", 1)[0].id == "0"
    with pytest.raises(OutputError, match="is an index: open it"):
        tercet.Retriever(tiny, index=place, storage="float16")


def test_names_of_schemas_and_tables_are_those_of_the_address(places: Places) -> None:
    base = places.server("postgres").url
    create_store(f"{base}/my_search.Häuser", WIDTH)
    with psycopg.connect(base) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'my_search'").fetchall()
    assert sorted(name for (name,) in rows) == ["Häuser", "Häuser_settings", "Häuser_vectors"]
    for name in ('a"b', "a b", "1a", "a;DROP TABLE x", "x" * 41):
        with pytest.raises(InputError, match="the name of an index is a letter and then letters"):
            open_store(f"{base}/{name}")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("mysql://localhost/a/b", "postgresql:// or postgres:// or qdrant://, got mysql://"),
        ("postgresql://localhost/a", "the address of an index is postgresql://USER@HOST/DATABASE/INDEX"),
        ("postgresql://localhost:x/a/b", "the postgresql address is malformed"),
        ("postgresql://localhost/a/b?ef_search=many", "ef_search must be a whole number, got 'many'"),
        ("postgresql://localhost/a/b?text_search=a'b", "must be the name of a text search configuration"),
    ],
)
def test_an_address_that_is_wrong_is_refused(address: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_store(address)


def test_a_missing_index_and_other_tables_are_named(places: Places, place: str) -> None:
    with pytest.raises(InputError, match=r"is not an index: build one with .*--to postgresql://tercet@127"):
        open_store(place)
    with psycopg.connect(places.server("postgres").url) as connection:
        connection.execute(f"CREATE TABLE {place.rpartition('/')[2]} (a int)")
    with pytest.raises(OutputError, match="exists and is not an index: choose another name"):
        create_store(place, WIDTH)


def test_another_model_and_another_version_are_refused(
    places: Places, place: str, tiny: tercet.BiEncoder, tiny_folder: Callable[[str], Path]
) -> None:
    tercet.Retriever(tiny, index=place).close()
    with pytest.raises(StaleIndexError, match="was built by the bi-encoder"):
        tercet.Retriever.open(place, tercet.BiEncoder.from_backbone(tiny_folder("electra")))
    with psycopg.connect(places.server("postgres").url) as connection:
        connection.execute(
            f"UPDATE {place.rpartition('/')[2]}_settings SET value = '9' WHERE name = 'format'"
        )
    with pytest.raises(InputError, match="has format 9, but this version of tercet reads format 1"):
        tercet.Retriever.open(place, tiny)


def test_words_are_split_by_the_configuration_of_the_index(place: str) -> None:
    store = create_store(f"{place}?text_search=german", WIDTH)
    store.add(
        [Item("a", "alte Häuser"), Item("b", "it's a 'quoted' \\ back & | ! word")], draw(2, WIDTH, seed=1)
    )
    for text, expected in (("das Haus", [0]), ("'quoted' \\ & | !:*", [1]), ("das", []), ("!", [])):
        assert list(store.read(lambda view, text=text: view.by_words(text, 5))) == expected


def test_a_nul_character_is_refused_and_finds_nothing(place: str) -> None:
    store = create_store(place, WIDTH)
    for item in (Item("a\0", "x"), Item("a", "x\0"), Item("a", "x", {"k": "\0"}), Item("a", "x", {"\0": 1})):
        with pytest.raises(InputError, match="PostgreSQL cannot store the character NUL"):
            store.add([item], draw(1, WIDTH, seed=1))
    store.add([Item("a", "x", {"k": "\\u0000"})], draw(1, WIDTH, seed=1))
    assert store.get(["a"])[0].metadata == {"k": "\\u0000"}
    assert not store.contains("a\0")


def test_a_read_only_server_is_searched_and_not_changed(places: Places, place: str) -> None:
    store = filled(place, draw(20, WIDTH, seed=1))
    read_only = open_store(f"{place}?options=-c%20default_transaction_read_only%3Don")
    assert len(found(read_only, codes_of(draw(1, 2, WIDTH, seed=2)), 3)[0][0]) == 3
    with pytest.raises(DatabaseError, match="read-only, such as a replica: write to the primary"):
        read_only.remove(["1"])
    assert len(store) == 20


def test_a_writer_that_never_ends_and_a_slow_statement_are_errors(places: Places, place: str) -> None:
    filled(place, draw(20, WIDTH, seed=1))
    store = open_store(f"{place}?timeout_seconds=1")
    with psycopg.connect(places.server("postgres").url) as connection:
        connection.execute(f"SELECT * FROM {place.rpartition('/')[2]}_settings FOR UPDATE")
        with pytest.raises(LockedIndexError, match=r"another program has been writing to .* for 1 s"):
            store.remove(["1"])
    with psycopg.connect(places.server("postgres").url) as connection:
        connection.execute(f"LOCK TABLE {place.rpartition('/')[2]}")
        with pytest.raises((LockedIndexError, DatabaseError), match=r"1 s|raise timeout_seconds"):
            len(store)


def test_lost_connections_and_a_restart_are_survived(own_server: PostgresServer) -> None:
    store = filled(f"{own_server.url}/faq", draw(50, WIDTH, seed=1))
    codes = codes_of(draw(1, 3, WIDTH, seed=2))
    expected = found(store, codes, 5)
    with psycopg.connect(own_server.url, autocommit=True) as connection:
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tercet'"
        connection.execute(end)
    assert found(store, codes, 5) == expected

    calls = []

    def break_once(view: View) -> Any:
        calls.append(view)
        if len(calls) == 1:
            own_server.kill()
            threading.Timer(0.5, own_server.start).start()
        return view.by_vectors(codes, 5, scale=1.0, exact=False)

    (ranking,) = store.read(break_once)
    assert list(ranking.scores) == expected[0][0]
    assert len(calls) >= 2
    store.add([Item("new", "new")], draw(1, WIDTH, seed=5))
    assert len(store) == 51
    own_server.stop()
    began = time.monotonic()
    with pytest.raises(DatabaseError, match="check the address and whether the server runs"):
        len(store)
    assert time.monotonic() - began < 30


def test_a_write_whose_answer_is_lost_happens_once(places: Places, place: str) -> None:
    """The connection ends just after the commit: the write is not repeated, although it looks failed."""
    store: Any = create_store(place, WIDTH)
    lost = [True]
    run = store._connections.run

    def run_and_lose(call: Any, **options: Any) -> Any:
        def losing(connection: Any) -> Any:
            result = call(connection)
            if lost and lost.pop():
                connection.close()
                raise psycopg.OperationalError("the connection is lost")
            return result

        return run(losing, **options)

    store._writes._connections = type("Losing", (), {"run": staticmethod(run_and_lose)})()
    store.add([Item("", "once"), Item("", "once too")], draw(2, WIDTH, seed=1))
    assert [item.text for item in store] == ["once", "once too"]


def test_no_message_contains_the_password() -> None:
    secret = "s3cret%2Fword"
    server = PostgresServer(FAST, password="s3cret/word")
    try:
        base = f"postgresql://tercet:{secret}@127.0.0.1:{server.port}"
        store = filled(f"{base}/postgres/faq", draw(5, WIDTH, seed=1))
        shown = [repr(store), store.name, json.dumps(store.summary())]
        for address in (
            f"{base}/postgres/nothing",
            f"{base}/nothing/faq",
            f"{base.replace('word', 'wrong')}/postgres/faq",
            f"postgresql://tercet@127.0.0.1:{server.port}/postgres/faq?password={secret}x",
        ):
            with pytest.raises((InputError, DatabaseError)) as caught:
                open_store(address)
            shown += [str(caught.value), repr(caught.value)]
        done = subprocess.run(
            [sys.executable, "-m", "tercet", "index", "info", f"{base}/postgres/nothing"],
            capture_output=True,
            text=True,
            check=False,
        )
        shown += [done.stdout, done.stderr]
        assert done.returncode == 1
        assert [text for text in shown if "s3cret" in text] == []
        assert "check the password" in " ".join(shown) or "password authentication failed" in " ".join(shown)
    finally:
        server.close()


def test_a_server_without_pgvector_is_named(own_server: PostgresServer, tmp_path: Path) -> None:
    store = filled(f"{own_server.url}/faq", draw(5, WIDTH, seed=1))
    store.close()
    with psycopg.connect(own_server.url, autocommit=True) as connection:
        connection.execute("DROP EXTENSION vector CASCADE")
    with pytest.raises(DatabaseError, match="the extension vector is missing: CREATE EXTENSION vector"):
        open_store(f"{own_server.url}/faq")
