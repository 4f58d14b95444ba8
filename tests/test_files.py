import os
from pathlib import Path

import pytest

import tercet
from tercet.files import new_file, new_folder, read_json, read_json_list


def test_a_file_appears_only_when_it_is_done(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with new_file(path) as partial:
        partial.write_text("whole")
        assert not path.exists()
    assert path.read_text() == "whole"
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_nothing_behind(tmp_path: Path, failure: type[BaseException]) -> None:
    for maker, fill in ((new_file, Path.touch), (new_folder, lambda folder: (folder / "part").touch())):
        with pytest.raises(failure), maker(tmp_path / "out") as partial:
            fill(partial)
            raise failure
    assert os.listdir(tmp_path) == []


def test_whoever_may_read_a_folder_may_read_its_files(tmp_path: Path) -> None:
    """Weights too, which safetensors write for their owner alone."""
    with new_folder(tmp_path / "model") as folder:
        (folder / "weights").touch(mode=0o600)
    made = tmp_path / "model"
    assert (made / "weights").stat().st_mode & 0o777 == made.stat().st_mode & 0o666


def test_what_exists_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    for maker in (new_file, new_folder):
        with pytest.raises(tercet.OutputError, match="out exists: choose another path"), maker(path):
            pytest.fail("the block must not run")
    assert path.read_text() == "old"


def test_what_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with pytest.raises(tercet.OutputError, match="another process"), new_file(path) as partial:
        partial.write_text("ours")
        path.write_text("theirs")
    assert path.read_text() == "theirs"
    assert os.listdir(tmp_path) == ["out"]


def test_overwriting_replaces_only_in_the_end(tmp_path: Path) -> None:
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
        pytest.raises(tercet.OutputError, match="is a folder that exists"),
        new_file(tmp_path, overwrite=True),
    ):
        pytest.fail("the block must not run")


def test_a_device_is_never_overwritten(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(tercet.OutputError, match="is a device or a pipe"), new_file(pipe, overwrite=True):
        pytest.fail("the block must not run")


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with new_file(tmp_path / "link", overwrite=True) as partial:
        partial.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_a_folder_that_takes_no_files_is_named() -> None:
    with pytest.raises(tercet.OutputError, match="/proc"), new_file(Path("/proc/vectors.npy")):
        pytest.fail("the block must not run")


def test_a_missing_parent_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(tercet.OutputError, match="nowhere is not a folder"),
        new_file(tmp_path / "nowhere" / "out"),
    ):
        pytest.fail("the block must not run")


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "is not JSON"), ("[1]", "must hold a JSON dict, got list"), (None, "is missing")],
)
def test_a_broken_json_file_is_named(tmp_path: Path, content: str | None, message: str) -> None:
    file = tmp_path / "config.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(tercet.ModelError, match=rf"config\.json {message}"):
        read_json(file)


def test_a_json_list_is_read_as_one(tmp_path: Path) -> None:
    file = tmp_path / "modules.json"
    file.write_text('[{"a": 1}]')
    assert read_json_list(file) == [{"a": 1}]
