"""The folder of a run: one run at a time, resuming, and failed checkpoints."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.training.small_recipes import (
    COSINE,
    PAIR_ROWS,
    ROOT,
    FolderOf,
    assert_same_model,
    run,
    tables,
    write_rows,
    write_toml,
)

from tercet.errors import InputError, OutputError
from tercet.settings.recipe import make_recipe
from tercet.training.checkpoints import DIGESTS
from tercet.training.run_folder import RunFolder

pytestmark = pytest.mark.filterwarnings("ignore::tercet.errors.TruncationWarning")


def test_a_finished_run_is_not_repeated(tiny_folder: FolderOf, tmp_path: Path) -> None:
    table = tables(tiny_folder("bert"), training={"epochs": 1})
    folder = tmp_path / "with" / "parents" / "run"
    first = run(table, folder)
    before = (folder / "metrics.jsonl").stat().st_mtime_ns
    assert run(table, folder, resume=True) == first
    assert (folder / "metrics.jsonl").stat().st_mtime_ns == before
    with pytest.raises(OutputError, match="exists: choose another folder, or continue the run"):
        run(table, folder)


@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_has_one_run_at_a_time(tiny_folder: FolderOf, tmp_path: Path, *, resume: bool) -> None:
    """Two runs would overwrite each other's checkpoints. A run that has just started counts too."""
    table, path = tables(tiny_folder("bert"), training={"epochs": 1}), tmp_path / "run"
    folder = RunFolder(path)
    with folder.open(make_recipe(table, name="test").resolved(), resume=False):
        for created in (folder.path, folder.checkpoints):
            created.mkdir(exist_ok=True)
            with pytest.raises(OutputError, match=r"another process is training in .*: wait for it"):
                run(table, path, resume=resume)
        assert (path / "config.json").is_file()
    folder.checkpoints.rmdir()
    run(table, path, resume=resume)


@pytest.mark.parametrize("resume", [False, True])
def test_a_run_that_was_killed_at_its_start_can_be_started_again(
    tiny_folder: FolderOf, tmp_path: Path, *, resume: bool
) -> None:
    """Its folder contains only the lock and a partial file."""
    path = tmp_path / "run"
    path.mkdir()
    (path / ".lock").touch()
    (path / ".0123456789ab.partial").touch()
    run(tables(tiny_folder("bert"), training={"epochs": 1}), path, resume=resume)


@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_of_other_files_stays_unchanged(
    tiny_folder: FolderOf, tmp_path: Path, *, resume: bool
) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "first.txt").touch()
    with pytest.raises(OutputError, match="choose another folder"):
        run(tables(tiny_folder("bert")), tmp_path / "letters", resume=resume)
    assert [file.name for file in (tmp_path / "letters").iterdir()] == ["first.txt"]


def test_a_run_does_not_resume_with_other_settings(tiny_folder: FolderOf, tmp_path: Path) -> None:
    run(tables(tiny_folder("bert"), training={"epochs": 1}), tmp_path / "run")
    with pytest.raises(
        InputError, match=r"was started with other settings \(batches.batch_size, training.epochs, "
    ):
        run(tables(tiny_folder("bert"), batches={"batch_size": 8}), tmp_path / "run", resume=True)


def test_a_run_that_failed_before_training_can_be_started_again(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    table = tables(tiny_folder("bert"), training={"epochs": 1, "metric_for_best_model": "luck"})
    with pytest.raises(
        InputError, match="metric_for_best_model must be one of loss, recall_at_1, mrr, got 'luck'"
    ):
        run(table, tmp_path / "run")
    run(tables(tiny_folder("bert"), training={"epochs": 1}), tmp_path / "run")


def test_a_folder_that_is_not_a_run_cannot_be_resumed(tiny_folder: FolderOf, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    with pytest.raises(OutputError, match="is not a resumable run"):
        run(tables(tiny_folder("bert")), tmp_path, resume=True)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_a_run_does_not_resume_with_other_data(tiny_folder: FolderOf, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.jsonl", PAIR_ROWS)
    table = tables(tiny_folder("bert"), data={"train": {"files": file}}, objective=COSINE)
    run(table, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "model")
    write_rows(tmp_path / "rows.jsonl", [*PAIR_ROWS[1:], PAIR_ROWS[0]])
    with pytest.raises(InputError, match="was started with other data or another number of processes"):
        run(table, tmp_path / "run", resume=True)


def test_a_run_does_not_resume_with_another_number_of_threads(tiny_folder: FolderOf, tmp_path: Path) -> None:
    table = tables(tiny_folder("bert"), training={"epochs": 1})
    run(table, tmp_path / "run")
    recorded = json.loads((tmp_path / "run" / "data.json").read_text())["identity"]
    assert recorded["threads"] == torch.get_num_threads()
    shutil.rmtree(tmp_path / "run" / "model")
    before = torch.get_num_threads()
    torch.set_num_threads(before + 1)
    try:
        message = f"with {before} CPU threads, got {before + 1}, .*: set OMP_NUM_THREADS={before} to resume"
        with pytest.raises(InputError, match=message):
            run(table, tmp_path / "run", resume=True)
    finally:
        torch.set_num_threads(before)
    run(table, tmp_path / "run", resume=True)


@pytest.mark.parametrize("name", ["checkpoints", "before", "adapter"])
def test_a_run_folder_with_a_link_is_refused_and_nothing_behind_it_is_deleted(
    name: str, tiny_folder: FolderOf, tmp_path: Path
) -> None:
    table = tables(tiny_folder("bert"), training={"epochs": 1})
    photos = tmp_path / "elsewhere" / "checkpoint-1"
    photos.mkdir(parents=True)
    (photos / "summer.jpg").touch()
    folder = tmp_path / "run"
    with RunFolder(folder).open(make_recipe(table, name="test").resolved(), resume=False):
        pass  # a run that was killed at its start
    (folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match=f"{name} is a link, and a run needs a folder"):
        run(table, folder, resume=True)
    assert (photos / "summer.jpg").exists()


def test_a_run_folder_is_removed_only_if_a_run_wrote_all_of_it(tiny_folder: FolderOf, tmp_path: Path) -> None:
    table = tables(tiny_folder("bert"), training={"epochs": 1})
    folder = tmp_path / "run"
    run(table, folder)
    shutil.copytree(folder, folder / "before")
    for parent in (folder, folder / "model", folder / "checkpoints", folder / "before"):
        photos = parent / "photos"
        photos.mkdir()
        (photos / "summer.jpg").touch()
        with pytest.raises(OutputError, match=r"was not written by tercet"):
            RunFolder(folder).remove()
        assert (photos / "summer.jpg").exists()
        assert (folder / "result.json").exists()
        shutil.rmtree(photos)
    RunFolder(folder).remove()
    assert not folder.exists()


def test_a_run_that_stopped_early_does_not_continue(tiny_folder: FolderOf, tmp_path: Path) -> None:
    training = {"epochs": 10, "patience": 1, "learning_rate": 0.05, "evals_per_epoch": 3}
    table = tables(tiny_folder("bert"), training=training)
    first = run(table, tmp_path / "run")
    assert first["train"]["step"] < 60
    (tmp_path / "run" / "model").rename(tmp_path / "model")
    resumed = run(table, tmp_path / "run", resume=True)
    assert resumed["train"]["step"] == first["train"]["step"]
    assert_same_model(tmp_path / "model", tmp_path / "run" / "model")


def start_command(arguments: list[str], **options: Any) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tercet", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "200"},
        **options,
    )


def wait_for_a_checkpoint(folder: Path, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 120
    while not any((folder / "checkpoints").glob(f"checkpoint-*/{DIGESTS}")):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_run_resumes_to_the_same_model(
    number: signal.Signals, tiny_folder: FolderOf, tmp_path: Path
) -> None:
    table = tables(
        tiny_folder("bert"),
        batches={"batch_size": 16, "negatives": 3},
        training={"epochs": 15, "evals_per_epoch": 1, "learning_rate": 1e-3},
    )
    recipe = write_toml(tmp_path / "recipe.toml", table)
    # in a process of its own, as the resumed run: libraries of other tests change how torch adds numbers
    run_whole = start_command(["train", str(recipe), "-o", str(tmp_path / "whole"), "--device", "cpu"])
    _, errors = run_whole.communicate(timeout=240)
    assert run_whole.returncode == 0, errors
    whole = json.loads((tmp_path / "whole" / "result.json").read_text())
    arguments = ["train", str(recipe), "-o", str(tmp_path / "run"), "--device", "cpu"]
    stopped = start_command(arguments)
    wait_for_a_checkpoint(tmp_path / "run", stopped)
    stopped.send_signal(number)
    _, errors = stopped.communicate(timeout=120)
    if number != signal.SIGKILL:
        assert stopped.returncode == 130
        assert "stopping after this step, with a checkpoint" in errors
        assert "with a checkpoint: continue with --resume" in errors
        assert "Traceback" not in errors
    assert not (tmp_path / "run" / "model").exists()
    resumed = start_command([*arguments, "--resume"])
    _, errors = resumed.communicate(timeout=240)
    assert resumed.returncode == 0, errors
    assert_same_model(tmp_path / "whole" / "model", tmp_path / "run" / "model")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    missing = whole["train"].keys() - result["train"].keys()
    assert missing == {"train_runtime"}  # it would cover only the last part of the run


FULL_DISK = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from tercet.cli import main
sys.argv = ["tercet", *sys.argv[1:]]
main()
"""


def test_a_failed_checkpoint_is_an_error_and_leaves_no_partial_one(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    recipe = write_toml(tmp_path / "recipe.toml", tables(tiny_folder("bert")))
    arguments = ["train", str(recipe), "-o", str(tmp_path / "run"), "--device", "cpu"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "cannot write a checkpoint to" in done.stderr
    assert "free disk space and continue from the last one" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "run" / "checkpoints").glob("checkpoint-*"))


def test_a_full_disk_is_an_error_before_training(
    tiny_folder: FolderOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage:
        free = 1000

    monkeypatch.setattr("tercet.training.trainer.shutil.disk_usage", lambda _: Usage)
    with pytest.raises(OutputError, match=r"2 checkpoints and the one being written need .* MB in"):
        run(tables(tiny_folder("bert")), tmp_path / "run")
