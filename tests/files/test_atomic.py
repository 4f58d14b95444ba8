"""Atomic writes: complete under the final name, or not at all."""

import errno
import os
from pathlib import Path

import pytest

from tercet.errors import FileError, OutputError
from tercet.files.atomic import new_file, new_folder, sync_folder
from tercet.files.structured import read_json, read_json_list


def test_a_file_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with new_file(path) as partial:
        partial.write_text("complete")
        assert not path.exists()
    assert path.read_text() == "complete"
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_nothing_behind(tmp_path: Path, failure: type[BaseException]) -> None:
    for write, fill in ((new_file, Path.touch), (new_folder, lambda folder: (folder / "part").touch())):
        with pytest.raises(failure), write(tmp_path / "out") as partial:
            fill(partial)
            raise failure
    assert os.listdir(tmp_path) == []


def test_files_get_the_permissions_of_their_folder(tmp_path: Path) -> None:
    """safetensors writes files that only their owner can read."""
    with new_folder(tmp_path / "model") as partial:
        (partial / "weights").touch(mode=0o600)
    folder = tmp_path / "model"
    assert (folder / "weights").stat().st_mode & 0o777 == folder.stat().st_mode & 0o666


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    for write in (new_file, new_folder):
        with pytest.raises(OutputError, match="out exists: choose another path"), write(path):
            pytest.fail("the block must not run")
    assert path.read_text() == "old"


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with pytest.raises(OutputError, match="another process"), new_file(path) as partial:
        partial.write_text("ours")
        path.write_text("theirs")
    assert path.read_text() == "theirs"
    assert os.listdir(tmp_path) == ["out"]


def test_overwriting_replaces_the_file_only_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    with pytest.raises(ValueError, match="oops"), new_file(path, overwrite=True) as partial:
        partial.write_text("half")
        raise ValueError("oops")
    assert path.read_text() == "old"
    with new_file(path, overwrite=True) as partial:
        partial.write_text("new")
    assert path.read_text() == "new"


def test_a_folder_is_never_overwritten(tmp_path: Path) -> None:
    with (
        pytest.raises(OutputError, match=r"the folder .* exists: choose another path"),
        new_file(tmp_path, overwrite=True),
    ):
        pytest.fail("the block must not run")


def test_a_device_is_never_overwritten(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OutputError, match="is a device or a pipe"), new_file(pipe, overwrite=True):
        pytest.fail("the block must not run")


def test_a_link_is_kept_and_its_target_written(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with new_file(tmp_path / "link", overwrite=True) as partial:
        partial.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_a_folder_that_cannot_be_written_is_named() -> None:
    with pytest.raises(OutputError, match="/proc"), new_file(Path("/proc/vectors.npy")):
        pytest.fail("the block must not run")


def test_a_missing_parent_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(OutputError, match="nowhere is not a folder"),
        new_file(tmp_path / "nowhere" / "out"),
    ):
        pytest.fail("the block must not run")


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "is not valid JSON"), ("[1]", "must contain a JSON dict, got list"), (None, "is missing")],
)
def test_a_broken_json_file_is_named(tmp_path: Path, content: str | None, message: str) -> None:
    file = tmp_path / "config.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(FileError, match=rf"config\.json {message}"):
        read_json(file)


def test_a_json_list_is_read_as_a_list(tmp_path: Path) -> None:
    file = tmp_path / "modules.json"
    file.write_text('[{"a": 1}]')
    assert read_json_list(file) == [{"a": 1}]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_names_the_file_that_was_being_written(tmp_path: Path, number: int) -> None:
    with (
        pytest.raises(OutputError, match=r"cannot write .*out: no space left on the device"),
        new_file(tmp_path / "out"),
    ):
        raise OSError(number, os.strerror(number))


def test_a_folder_that_was_synced_is_not_left_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opening, opened = os.open, list[int]()

    def noted(path: Path, flags: int) -> int:
        opened.append(opening(path, flags))
        return opened[-1]

    monkeypatch.setattr(os, "open", noted)
    sync_folder(tmp_path)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened[0])
