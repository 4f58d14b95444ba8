"""A damaged checkpoint is noticed, and training continues from an older whole one."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.training.test_trainer import SETTINGS, FolderOf, assert_same, run, weights_of

from tercet.errors import CheckpointWarning, OutputError, TrainingError
from tercet.training.checkpoints import Checkpoints

KEPT = replace(SETTINGS, save_total_limit=3)
FILES = ("model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json")

Damage = Callable[[Path], object]


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


DAMAGES: dict[str, Damage] = {
    "truncated": lambda file: file.write_bytes(file.read_bytes()[:-7]),
    "flipped": flip,
    "empty": lambda file: file.write_bytes(b""),
    "broken JSON": lambda file: file.write_text('{"global_step": 1'),
    "missing": Path.unlink,
}


@pytest.fixture(scope="module")
def trained(
    tiny_folder: FolderOf, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, torch.Tensor]]:
    """The checkpoints of a run, and its final weights."""
    folder = tmp_path_factory.mktemp("trained") / "checkpoints"
    scorer, _ = run(tiny_folder("bert"), folder, KEPT)
    return folder, weights_of(scorer)


@pytest.fixture
def folder(trained: tuple[Path, dict[str, torch.Tensor]], tmp_path: Path) -> Path:
    """A copy of these checkpoints."""
    return Path(shutil.copytree(trained[0], tmp_path / "checkpoints"))


def checkpoints(folder: Path, count: int) -> None:
    """Folders with a state, weights and digests, as written at the steps 5, 10 and so on."""
    for step in range(5, 5 * count + 1, 5):
        path = Checkpoints(folder).path(step)
        path.mkdir(parents=True)
        (path / "model.safetensors").write_text(f"weights {step}")
        (path / "trainer_state.json").write_text(
            f'{{"best_model_checkpoint": "elsewhere/checkpoint-{step}"}}'
        )
        Checkpoints(folder).seal(step)


@pytest.mark.parametrize(
    ("damage", "file"),
    [("truncated", "model.safetensors"), ("flipped", "optimizer.pt"), ("broken JSON", "trainer_state.json")],
)
def test_a_run_with_a_damaged_newest_checkpoint_ends_with_the_same_weights(
    damage: str, file: str, trained: tuple[Path, dict[str, torch.Tensor]], folder: Path, tiny_folder: FolderOf
) -> None:
    newest, older, *_ = Checkpoints(folder).all()
    DAMAGES[damage](newest / file)
    said = f"{file} of {newest.name} is damaged: training continues from {older.name}"
    with pytest.warns(CheckpointWarning, match=said):
        scorer, _ = run(tiny_folder("bert"), folder, KEPT, resume=True)
    assert_same(trained[1], weights_of(scorer))
    assert Checkpoints(folder).newest_whole() == newest  # it was written again


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("file", [*FILES, "digests.json"])
def test_every_damage_to_every_file_is_noticed(damage: str, file: str, folder: Path) -> None:
    newest, older, *_ = Checkpoints(folder).all()
    DAMAGES[damage](newest / file)
    with pytest.warns(CheckpointWarning, match=f"{newest.name} is (damaged|missing|unfinished)"):
        assert Checkpoints(folder).newest_whole() == older


def test_a_checkpoint_without_its_best_weights_is_not_whole(tmp_path: Path) -> None:
    checkpoints(tmp_path, 2)
    (tmp_path / "checkpoint-10" / "trainer_state.json").write_text(
        '{"best_model_checkpoint": "checkpoint-5"}'
    )
    Checkpoints(tmp_path).seal(10)
    assert Checkpoints(tmp_path).newest_whole() == tmp_path / "checkpoint-10"
    flip(tmp_path / "checkpoint-5" / "model.safetensors")
    with pytest.raises(TrainingError, match=r"model.safetensors of checkpoint-5 is damaged"):
        Checkpoints(tmp_path).newest_whole()


@pytest.mark.parametrize("stray", ["", "model.safetensors", "photo.jpg", "file"])
def test_a_later_checkpoint_that_cannot_be_replaced_is_an_error_when_resuming_starts(
    stray: str, tmp_path: Path
) -> None:
    """Otherwise the run would fail hours later, when it comes to that step again."""
    checkpoints(tmp_path, 3)
    newest = tmp_path / "checkpoint-15"
    if stray in ("", "file"):
        newest.rename(tmp_path / "elsewhere")
        newest.touch() if stray else newest.symlink_to(tmp_path / "elsewhere")
    elif stray == "photo.jpg":
        (newest / stray).touch()
        flip(newest / "trainer_state.json")
    else:
        (newest / stray).rename(tmp_path / "elsewhere")
        (newest / stray).symlink_to(tmp_path / "elsewhere")
        flip(newest / "trainer_state.json")
    what = "is a link" if stray in ("", "model.safetensors") else "was not written by tercet"
    with pytest.raises(
        OutputError, match=f"{what}, and training will write checkpoint-15 again: move it out"
    ):
        Checkpoints(tmp_path).newest_whole()


def test_a_link_to_an_older_checkpoint_does_not_matter_unless_it_is_the_best(tmp_path: Path) -> None:
    checkpoints(tmp_path, 2)
    (tmp_path / "checkpoint-5").rename(tmp_path / "elsewhere")
    (tmp_path / "checkpoint-5").symlink_to(tmp_path / "elsewhere")
    assert Checkpoints(tmp_path).newest_whole() == tmp_path / "checkpoint-10"
    state = tmp_path / "checkpoint-10" / "trainer_state.json"
    state.write_text('{"best_model_checkpoint": "checkpoint-5"}')
    Checkpoints(tmp_path).seal(10)
    with pytest.raises(TrainingError, match=r"no whole checkpoint is left in .*checkpoint-5 is a link"):
        Checkpoints(tmp_path).newest_whole()


def test_no_whole_checkpoint_is_an_error_that_names_the_files(folder: Path, tiny_folder: FolderOf) -> None:
    for path in Checkpoints(folder).all():
        flip(path / "optimizer.pt")
    with pytest.raises(TrainingError, match=r"no whole checkpoint is left in .*optimizer.pt of checkpoint-"):
        run(tiny_folder("bert"), folder, KEPT, resume=True)


def test_checkpoints_that_were_never_finished_are_no_error(tmp_path: Path) -> None:
    (tmp_path / "checkpoint-5").mkdir()
    (tmp_path / "checkpoint-5" / "trainer_state.json").write_text("{}")
    with pytest.warns(CheckpointWarning, match="checkpoint-5 is unfinished: training starts from the begin"):
        assert Checkpoints(tmp_path).newest_whole() is None


def test_the_newest_checkpoint_is_that_of_the_highest_step(tmp_path: Path) -> None:
    checkpoints(tmp_path, 20)
    assert Checkpoints(tmp_path).newest_whole() == tmp_path / "checkpoint-100"
    assert Checkpoints(tmp_path / "none").newest_whole() is None


@pytest.mark.parametrize(("keep", "kept"), [(1, [15, 20]), (2, [15, 20]), (3, [10, 15, 20])])
def test_at_least_two_checkpoints_are_kept(keep: int, kept: list[int], tmp_path: Path) -> None:
    checkpoints(tmp_path, 4)
    Checkpoints(tmp_path).rotate(20, keep=keep, best=None)
    assert [path.name for path in reversed(Checkpoints(tmp_path).all())] == [f"checkpoint-{n}" for n in kept]


def test_the_best_checkpoint_is_kept_and_newer_damaged_ones_do_not_count(tmp_path: Path) -> None:
    checkpoints(tmp_path, 5)
    Checkpoints(tmp_path).rotate(20, keep=2, best="elsewhere/checkpoint-5")
    assert [path.name for path in Checkpoints(tmp_path).all()] == [f"checkpoint-{n}" for n in (25, 20, 5)]


def test_only_our_own_checkpoints_are_deleted(tmp_path: Path) -> None:
    checkpoints(tmp_path, 5)
    photos = tmp_path / "photos"
    photos.mkdir()
    (photos / "summer.jpg").touch()
    shutil.rmtree(tmp_path / "checkpoint-5")
    (tmp_path / "checkpoint-5").symlink_to(photos)
    shutil.copytree(photos, tmp_path / "checkpoint-photos")
    shutil.copytree(photos, tmp_path / "checkpoint-10" / "photos")
    Checkpoints(tmp_path).rotate(25, keep=2, best=None)
    left = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("summer.jpg")}
    assert left == {f"{each}/summer.jpg" for each in ("photos", "checkpoint-photos", "checkpoint-10/photos")}
    assert not (tmp_path / "checkpoint-15").exists()
    with pytest.raises(OutputError, match="checkpoint-5 was not written by tercet"):
        Checkpoints(tmp_path).discard(5)


def test_a_training_deletes_nothing_of_others(tiny_folder: FolderOf, tmp_path: Path) -> None:
    for name in ("photos", "checkpoint-photos", "checkpoint-1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "summer.jpg").touch()
    run(tiny_folder("bert"), tmp_path)
    assert len(list(tmp_path.rglob("summer.jpg"))) == 3


def test_a_link_is_refused_as_folder_of_checkpoints(tiny_folder: FolderOf, tmp_path: Path) -> None:
    checkpoints(tmp_path / "other", 3)
    (tmp_path / "link").symlink_to(tmp_path / "other")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OutputError, match="link is a link: checkpoints need a folder of their own"):
        run(tiny_folder("bert"), tmp_path / "link")
    assert sorted(tmp_path.rglob("*")) == before
