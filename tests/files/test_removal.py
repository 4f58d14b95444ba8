"""Nothing is deleted that we did not write."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tercet.errors import OutputError
from tercet.files.atomic import new_file, new_folder
from tercet.files.removal import matches, remove_folder

OURS = matches("*.json", "model/*.json")
A_DAY = 24 * 60 * 60


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder that must survive."""
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "summer.jpg").write_text("sea")
    return folder


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    folder = tmp_path / "ours"
    (folder / "model").mkdir(parents=True)
    (folder / "a.json").touch()
    (folder / "model" / "b.json").touch()
    return folder


def make_old(path: Path, *, seconds: float = A_DAY + 60) -> None:
    then = time.time() - seconds
    for each in (path, *path.rglob("*")):
        os.utime(each, (then, then), follow_symlinks=False)


def test_a_folder_of_our_files_is_removed(ours: Path) -> None:
    remove_folder(ours, OURS)
    assert not ours.exists()
    remove_folder(ours, OURS)


@pytest.mark.parametrize(
    "put",
    [
        lambda ours, photos: photos.rename(ours / "photos"),
        lambda ours, photos: photos.rename(ours / "model" / "photos"),
        lambda ours, photos: (ours / "photos").symlink_to(photos),
        lambda ours, photos: (ours / "c.json").symlink_to(photos / "summer.jpg"),
        lambda ours, photos: (ours / "photos").mkdir(),
    ],
    ids=["inside", "deep inside", "link to a folder", "link to a file", "empty folder"],
)
def test_a_folder_with_anything_else_stays_as_it_is(
    put: Callable[[Path, Path], object], ours: Path, photos: Path, tmp_path: Path
) -> None:
    put(ours, photos)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OutputError, match="was not written by tercet: move it out of"):
        remove_folder(ours, OURS)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_link_to_a_folder_is_not_followed(ours: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(ours)
    with pytest.raises(OutputError, match="link was not written by tercet"):
        remove_folder(tmp_path / "link", OURS)
    assert (ours / "a.json").exists()


def write_beside(folder: Path, *, kind: str) -> None:
    with (new_file if kind == "file" else new_folder)(folder / "out") as partial:
        if kind == "file":
            partial.touch()


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_partial_files_of_killed_processes_are_swept_by_the_next_writer(tmp_path: Path, kind: str) -> None:
    (tmp_path / ".0123456789ab.partial").write_text("half")
    (tmp_path / ".ba9876543210.partial" / "inner").mkdir(parents=True)
    (tmp_path / ".ba9876543210.partial" / "inner" / "file").touch()
    make_old(tmp_path)
    write_beside(tmp_path, kind=kind)
    assert os.listdir(tmp_path) == ["out"]


def test_partial_files_that_somebody_may_be_writing_stay(tmp_path: Path) -> None:
    (tmp_path / ".0123456789ab.partial").write_text("half")
    (tmp_path / ".ba9876543210.partial").mkdir()
    make_old(tmp_path, seconds=A_DAY - 60)
    (tmp_path / ".ba9876543211.partial").mkdir()
    (tmp_path / ".ba9876543211.partial" / "file").touch()
    make_old(tmp_path / ".ba9876543211.partial")
    (tmp_path / ".ba9876543211.partial" / "file").write_text("more")  # changes the file, not the folder
    before = set(os.listdir(tmp_path))
    write_beside(tmp_path, kind="file")
    assert set(os.listdir(tmp_path)) == before | {"out"}


@pytest.mark.parametrize(
    "name",
    [
        "0123456789ab.partial",
        ".0123456789ab.partial.txt",
        ".0123456789AB.partial",
        ".my.partial",
        "x.partial",
    ],
)
def test_files_with_other_names_are_never_swept(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    make_old(tmp_path)
    write_beside(tmp_path, kind="file")
    assert (tmp_path / name).read_text() == "mine"


def test_the_sweep_follows_no_link(tmp_path: Path, photos: Path) -> None:
    links = {".0123456789ab.partial": photos, ".0123456789ac.partial": photos / "summer.jpg"}
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    inner = tmp_path / ".ba9876543210.partial"
    inner.mkdir()
    (inner / "link").symlink_to(photos)
    make_old(tmp_path)
    write_beside(tmp_path, kind="file")
    assert all((tmp_path / name).is_symlink() for name in links)
    assert not inner.exists()
    assert (photos / "summer.jpg").read_text() == "sea"
