"""The checkpoints of a run: folders ``checkpoint-STEP``, each with the digests of its files.

The digests are written last, when everything else is on the disk. So a checkpoint without them was never
finished, and one that contradicts them was damaged later. Training continues from the newest whole one.
"""

import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tercet.errors import CheckpointWarning, FileError, OutputError, TrainingError
from tercet.files.atomic import sync_folder, sync_tree
from tercet.files.digest import file_digest
from tercet.files.removal import foreign_files, matches, remove_folder
from tercet.files.structured import read_json, write_json
from tercet.training.distributed import is_first_process

STATE = "trainer_state.json"
WEIGHTS = "model.safetensors"
DIGESTS = "digests.json"
FILES = (WEIGHTS, STATE, DIGESTS, "optimizer.pt", "scheduler.pt", "scaler.pt", "rng_state*.pth", ".*.partial")
"""What a checkpoint contains; a folder with anything else is never deleted."""
MIN_KEPT = 2
"""Checkpoints that are kept at least: if the newest one is damaged, training continues from the other."""

_NAME = re.compile(r"checkpoint-(\d+)")


class Checkpoints:
    """The checkpoints in a folder."""

    def __init__(self, folder: Path) -> None:
        if folder.is_symlink():
            raise OutputError(
                f"{folder} is a link: checkpoints need a folder of their own, replace it by one"
            )
        self.folder = folder

    def path(self, step: int) -> Path:
        """The folder of a step's checkpoint."""
        return self.folder / f"checkpoint-{step}"

    def all(self) -> list[Path]:
        """All checkpoints, whole or not, newest first."""
        found = (path for path in _named(self.folder) if path.is_dir() and not path.is_symlink())
        return sorted(found, key=_step, reverse=True)

    def seal(self, step: int) -> None:
        """Declare the checkpoint of a step whole: sync its files, then write their digests."""
        folder = self.path(step)
        sync_tree(folder)
        files = (file for file in sorted(folder.iterdir()) if file.name != DIGESTS)
        write_json(folder / DIGESTS, {file.name: file_digest(file) for file in files})
        sync_folder(self.folder)

    def discard(self, step: int) -> None:
        """Delete the checkpoint of a step, if there is one."""
        remove_folder(self.path(step), matches(*FILES))

    def rotate(self, step: int, *, keep: int, best: str | None) -> None:
        """Delete the oldest checkpoints, but neither that of ``step`` nor the best one.

        Args:
            keep: the number of checkpoints that stay.
            best: the path or name of the best checkpoint.
        """
        protected = {self.path(step).name, Path(best or "").name}
        written = [path for path in self.all() if _step(path) <= step]  # newer ones are damaged
        others = [path for path in written if path.name not in protected]
        room = max(keep, MIN_KEPT) - (len(written) - len(others))
        for path in others[max(room, 0) :]:
            with suppress(OutputError):  # somebody put other files into it: it stays
                remove_folder(path, matches(*FILES))

    def best(self, state_of: Path) -> Path | None:
        """The checkpoint that was the best one when ``state_of`` was written."""
        name = read_json(state_of / STATE, finite=False).get("best_model_checkpoint")
        return None if name is None else self.folder / Path(name).name

    def newest_whole(self) -> Path | None:
        """The checkpoint to continue from; None if none was ever finished.

        Warns about newer ones that are damaged, and raises if no whole one is left. Also raises if a newer
        one is a link or contains files of others: training comes to its step again, and must replace it.
        """
        damaged: list[str] = []
        for path in self.all():
            problem = self._problem(path)
            if not problem:
                self._check_replaceable(after=_step(path))
                _warn(damaged, f"training continues from {path.name}")
                return path
            damaged.append(problem)
        if any((path / DIGESTS).exists() for path in self.all()):
            raise TrainingError(
                f"no whole checkpoint is left in {self.folder} ({'; '.join(damaged)}): restore the files "
                "from a copy, or train again in a new folder"
            )
        self._check_replaceable(after=0)
        _warn(damaged, "training starts from the beginning")
        return None

    def _check_replaceable(self, *, after: int) -> None:
        """Raise if a checkpoint of a later step is a link, or contains what tercet did not write."""
        for path in _named(self.folder):
            stray = next(foreign_files(path, matches(*FILES)), None) if _step(path) > after else None
            if stray is not None:
                what = "is a link" if stray.is_symlink() else "was not written by tercet"
                raise OutputError(
                    f"{stray} {what}, and training will write {path.name} again: move it out of "
                    f"{self.folder}, then resume"
                )

    def _problem(self, path: Path) -> str:
        """Why training cannot continue from a checkpoint; empty if it can."""
        problem = checkpoint_problem(path)
        if problem:
            return problem
        best = self.best(path)
        return "" if best is None or best == path else checkpoint_problem(best, only=WEIGHTS)


def checkpoint_problem(path: Path, *, only: str = "") -> str:
    """What is wrong with a checkpoint; empty if every file is as it was written.

    Args:
        only: check only this file.
    """
    if path.is_symlink():
        return f"{path.name} is a link"
    if not (path / DIGESTS).is_file():
        return f"{path.name} is unfinished"
    try:
        digests = read_json(path / DIGESTS)
    except (FileError, OSError):
        return f"{DIGESTS} of {path.name} is damaged"
    for name in (only,) if only else (WEIGHTS, STATE, *digests):
        if not (path / name).is_file():
            return f"{name} of {path.name} is missing"
        if file_digest(path / name) != digests.get(name):
            return f"{name} of {path.name} is damaged"
    return ""


def _warn(damaged: list[str], consequence: str) -> None:
    if damaged and is_first_process():
        warnings.warn(f"{'; '.join(damaged)}: {consequence}", CheckpointWarning, stacklevel=3)


def _named(folder: Path) -> Iterator[Path]:
    """What is called like a checkpoint."""
    entries = folder.iterdir() if folder.is_dir() else ()
    return (path for path in entries if _NAME.fullmatch(path.name))


def _step(path: Path) -> int:
    return int(path.name.rpartition("-")[2])
