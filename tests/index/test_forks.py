"""A process that is forked while an index is open cannot write to that index, and may write to others."""

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.index.test_store import WIDTH, put

from tercet.errors import TercetError
from tercet.index.store import Store
from tercet.index.verify import problems

REFUSAL = 'close it before the fork, or start processes with multiprocessing.get_context("spawn")'

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="only POSIX systems fork")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(tmp_path / "some.tercet", WIDTH, lexical=False)


def forked(work: Callable[[], object]) -> str:
    """The error of tercet with which a forked process ended; empty if there was none."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except TercetError as error:
            os.write(writing, str(error).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        told = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return told


def write_alone(path: Path, name: str) -> None:
    """Add a candidate in a process that was not forked, which closes the index as its only user."""
    script = (
        "import sys; from tests.index.test_store import *; s = Store(Path(sys.argv[1])); put(s, sys.argv[2])"
    )
    subprocess.run([sys.executable, "-c", script, str(path), name], check=True, timeout=120)


@pytest.mark.parametrize("place", ["some.tercet", "link.tercet"])
def test_a_forked_process_cannot_open_an_index_that_its_parent_has_open(
    place: str, store: Store, tmp_path: Path
) -> None:
    (tmp_path / "link.tercet").symlink_to(store.path)
    assert forked(lambda: put(Store(tmp_path / place), "cat")).endswith(REFUSAL)
    assert len(store) == 0


def test_a_forked_process_cannot_open_it_after_it_dropped_what_it_inherited(store: Store) -> None:
    path, held = store.path, [store]
    del store

    def work() -> None:
        held.clear()
        gc.collect()
        put(Store(path), "cat")

    assert forked(work).endswith(REFUSAL)
    write_alone(path, "dog")
    put(held[0], "bird")
    assert len(Store(path)) == 2


def test_the_child_of_a_child_is_refused_too(store: Store) -> None:
    def work() -> None:
        assert forked(lambda: Store(store.path)).endswith(REFUSAL)

    assert forked(work) == ""


def test_a_forked_process_may_open_an_index_that_its_parent_has_closed(store: Store) -> None:
    store.close()
    assert forked(lambda: put(Store(store.path), "cat")) == ""
    assert len(Store(store.path)) == 1


def test_a_forked_process_may_open_an_index_that_its_parent_let_go(store: Store) -> None:
    held = [Store(store.path)]
    store.close()
    held.clear()
    gc.collect()
    assert forked(lambda: put(Store(store.path), "cat")) == ""


def test_a_copied_index_keeps_its_locks(store: Store, tmp_path: Path) -> None:
    put(store, "cat")
    store.copy(tmp_path / "copy.tercet")
    write_alone(store.path, "dog")
    put(store, "bird")
    assert len(Store(store.path)) == 3
    write_alone(store.path, "fish")
    assert len(store) == 4


def test_a_forked_process_may_create_an_index_and_the_parent_open_it(store: Store, tmp_path: Path) -> None:
    other = tmp_path / "other.tercet"
    assert forked(lambda: put(Store.create(other, WIDTH, lexical=False), "cat")) == ""
    assert len(Store(other)) == 1
    assert problems(store) == []
