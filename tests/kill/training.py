"""Kills and full disks while a model is trained: runs resume, and end with the model of an unkilled run."""

import json
import random
import shutil
import time
import warnings
from pathlib import Path
from typing import Any

from tests.kill.children import Ended, Tell, run_child
from tests.training.small_recipes import tables

from tercet.files.digest import file_digest
from tercet.settings.recipe import make_recipe
from tercet.training.checkpoints import Checkpoints, checkpoint_problem
from tercet.training.run import run_recipe

JSON_FILES = ("config.json", "data.json", "environment.json", "result.json")


class Training:
    """Runs of one recipe, one after the other, and the weights that each must end with."""

    def __init__(self, folder: Path, backbone: Path) -> None:
        table = tables(backbone, training={"epochs": 2, "learning_rate": 1e-3, "evals_per_epoch": 3})
        self._recipe = make_recipe(table, name="kills")
        self._folder = folder
        self.finished = 0
        """Runs that ended with the right weights."""
        start = time.monotonic()
        run_child(lambda _: self._train(folder / "whole"))
        self._seconds = time.monotonic() - start
        self._expected = file_digest(folder / "whole" / "model" / "model.safetensors")

    def kill(self, chance: random.Random) -> Ended:
        """Kill a process that starts or resumes the run, then check its folder."""
        return self._once(seconds=chance.uniform(0, self._seconds))

    def fill_disk(self, chance: random.Random, max_bytes: int) -> Ended:
        """Train until the disk is full, then check the run folder."""
        return self._once(max_bytes=max_bytes)

    def finish(self) -> None:
        """Resume the last run to its end."""
        if self._run.exists():
            self._once()

    @property
    def _run(self) -> Path:
        return self._folder / "run"

    def _train(self, folder: Path) -> None:
        warnings.simplefilter("ignore")
        run_recipe(self._recipe, folder, resume=True, device="cpu")

    def _once(self, **options: Any) -> Ended:
        def train(tell: Tell) -> None:
            self._train(self._run)
            tell("done")

        ended = run_child(train, **options)
        self._check()
        if "done" in ended.told:
            if file_digest(self._run / "model" / "model.safetensors") != self._expected:
                raise SystemExit("a resumed run ended with other weights than an unkilled one")
            shutil.rmtree(self._run)
            self.finished += 1
        return ended

    def _check(self) -> None:
        """No file under its final name is half; checkpoints are whole or recognizably unfinished."""
        for file in filter(Path.exists, (self._run / name for name in JSON_FILES)):
            json.loads(file.read_text(encoding="utf-8"))
        for path in Checkpoints(self._run / "checkpoints").all():
            problem = checkpoint_problem(path)
            if problem and "unfinished" not in problem:
                raise SystemExit(f"after a kill, {problem}")
        weights = self._run / "model" / "model.safetensors"
        if weights.parent.exists() and file_digest(weights) != self._expected:
            raise SystemExit("the model of a killed run is not that of an unkilled one")
