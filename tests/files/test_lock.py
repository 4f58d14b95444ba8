"""Locks: one process at a time, and errors that name what is wrong."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tercet.errors import OutputError
from tercet.files.lock import exclusive


def refuse() -> None:
    raise OutputError("somebody else writes")


def never() -> None:
    pytest.fail("the lock is free")


def test_a_busy_lock_is_refused(tmp_path: Path) -> None:
    with (
        exclusive(tmp_path / "lock", never),
        pytest.raises(OutputError, match="somebody else writes"),
        exclusive(tmp_path / "lock", refuse),
    ):
        pytest.fail("two blocks run at once")


def test_a_lock_is_free_again_after_its_block(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="oops"), exclusive(tmp_path / "lock", never):
            raise ValueError("oops")


def test_a_block_waits_for_a_busy_lock_if_it_is_not_refused(tmp_path: Path) -> None:
    entered, waits, order = threading.Event(), threading.Event(), []

    def hold() -> None:
        with exclusive(tmp_path / "lock", never):
            entered.set()
            waits.wait(30)
            order.append("first")

    holder = threading.Thread(target=hold)
    holder.start()
    assert entered.wait(30)
    with exclusive(tmp_path / "lock", waits.set):
        order.append("second")
    holder.join()
    assert order == ["first", "second"]


def test_a_lock_in_a_missing_folder_is_an_error_that_names_it(tmp_path: Path) -> None:
    with (
        pytest.raises(OutputError, match="nowhere is not a folder: create it first"),
        exclusive(tmp_path / "nowhere" / "lock", never),
    ):
        pytest.fail("the block must not run")
    assert not (tmp_path / "nowhere").exists()


@contextmanager
def without_permission() -> Iterator[Path]:
    """A folder in which this process may not write, even if it belongs to root."""
    with TemporaryDirectory() as folder:  # not tmp_path, which other users cannot enter
        Path(folder).chmod(0o555)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)
        try:
            yield Path(folder)
        finally:
            os.seteuid(user)
            Path(folder).chmod(0o755)


def test_a_lock_without_permission_is_an_error_that_names_the_folder() -> None:
    with (
        without_permission() as folder,
        pytest.raises(OutputError, match=f"cannot write to {folder}: Permission denied"),
        exclusive(folder / "lock", never),
    ):
        pytest.fail("the block must not run")
