"""Files and folders survive a power failure whole: every sync happens, and before the name appears."""

from pathlib import Path

import pytest
from tests.files.forgetful_disk import ForgetfulDisk

from tercet.files.atomic import new_file, new_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def write_file(path: Path, *, overwrite: bool = False, text: str = "text") -> None:
    with new_file(path, overwrite=overwrite) as partial:
        partial.write_text(text)


def write_folder(path: Path) -> None:
    with new_folder(path) as partial:
        (partial / "inner" / "innermost").mkdir(parents=True)
        (partial / "a.txt").write_text("a")
        (partial / "inner" / "innermost" / "b.txt").write_text("b")


def test_a_new_file_is_synced_then_linked_then_its_folder_is_synced(folder: Path) -> None:
    disk = ForgetfulDisk(folder)
    with disk.recording():
        write_file(folder / "out")
    assert disk.calls == ["fsync home/.", "link home/out", "fsync home"]


def test_an_overwritten_file_is_synced_then_renamed_then_its_folder_is_synced(folder: Path) -> None:
    disk = ForgetfulDisk(folder)
    with disk.recording():
        write_file(folder / "out", overwrite=True)
    assert disk.calls == ["fsync home/.", "replace home/out", "fsync home"]


def test_without_hard_links_a_new_file_is_renamed_between_the_syncs(folder: Path) -> None:
    disk = ForgetfulDisk(folder, hard_links=False)
    with disk.recording():
        write_file(folder / "out")
    assert disk.calls == ["fsync home/.", "link home/out", "rename home/out", "fsync home"]
    assert [path.name for path in folder.iterdir()] == ["out"]


def test_a_new_folder_is_synced_from_the_inside_before_it_is_renamed(folder: Path) -> None:
    disk = ForgetfulDisk(folder)
    with disk.recording():
        write_folder(folder / "out")
    *synced, renamed, last = disk.calls
    assert (renamed, last) == ("rename home/out", "fsync home")
    inside = [
        "fsync home/./inner/innermost/b.txt",
        "fsync home/./inner/innermost",
        "fsync home/./inner",
        "fsync home/.",
    ]
    assert [call for call in synced if call in inside] == inside
    assert synced.index("fsync home/./a.txt") < synced.index("fsync home/.")


@pytest.mark.parametrize("hard_links", [True, False])
@pytest.mark.parametrize("kind", ["file", "overwritten file", "folder"])
def test_after_a_power_failure_a_final_name_is_never_half(
    kind: str, folder: Path, *, hard_links: bool
) -> None:
    disk = ForgetfulDisk(folder, hard_links=hard_links)
    path = folder / "out"
    checked = []

    def check() -> None:
        if path.exists():
            checked.append(disk.has(path))

    disk.after_call = check
    with disk.recording():
        if kind == "folder":
            write_folder(path)
        else:
            write_file(path, text="old")
        if kind == "overwritten file":
            write_file(path, overwrite=True, text="new")
    assert len(checked) >= 2
    assert all(checked)
    assert disk.has_name(path)  # what was announced is there, not only what is there is whole


def test_the_forgetful_disk_notices_a_file_that_was_not_synced(folder: Path) -> None:
    disk = ForgetfulDisk(folder)
    (folder / "out").write_text("text")
    assert not disk.has(folder / "out")
    assert not disk.has_name(folder / "out")
