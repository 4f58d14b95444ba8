"""What came of the study's runs, and the figures of its rows.

``study.json`` keeps of every run its command, a digest of its recipe, machine, training time, and the place
of the right candidate in each case: runs of several machines and days add up, and any two rows can be tested
against each other. A run whose settings are not those that its command has now is refused.
"""

import json
import re
import shlex
import tomllib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from statistics import stdev
from typing import Any
from zlib import compress, decompress

import numpy as np
from numpy.typing import NDArray
from study_rows import Row, rows_by_name

from tercet.evaluate.significance import MeanOf, Sample, difference, figure
from tercet.files import read_json, read_json_if_there, write_json
from tercet.training.recipe import read_recipe
from tercet.training.run import with_seed

ROOT = Path(__file__).parents[1]
KEPT = Path(__file__).with_name("study.json")
SEEDS = range(100)

Runs = dict[str, dict[str, Any]]


def kept_runs() -> Runs:
    """All runs, by the names of their folders."""
    return read_json_if_there(KEPT)


def finished_runs(folders: Iterable[Path]) -> Runs:
    """What has come of those that are done."""
    return {
        folder.name: _outcome(folder)
        for folder in sorted(folders)
        if (folder / "model").is_dir() and "places" in read_json(folder / "result.json")
    }


def keep(runs: Runs, *, again: bool = False) -> None:
    """Add runs to those that are kept, which stay as they are unless they were to be trained again."""
    every = kept_runs() | runs if again else runs | kept_runs()
    write_json(KEPT, dict(sorted(every.items())))


def check_alike(row: Row, shared: tuple[str, ...], runs: Runs) -> None:
    """Raise if runs of a row are kept that had other settings than a new one would have."""
    for seed in _seeds(row, runs):
        known = runs[row.run(seed).name]["command"]
        if known != shown_command(row.command(seed, shared)[1:]):
            raise SystemExit(f"{row.name}: what is kept was trained by {known}: take its --set, or --again")


def figures(rows: Iterable[Row], runs: Runs) -> dict[str, dict[str, Any]]:
    """Of every row with a run: R@1, R@5 and MRR with intervals, and tests case by case.

    Raises:
        SystemExit: runs of one row have other commands.

    A case's value is its mean over the seeds, so that an interval says how much other cases would matter;
    the deviation over seeds stands beside it. Rows are tested on the seeds that both have, and may name
    rows of any part, or themselves, which is no test.
    """
    rows = list(rows)
    known = rows_by_name() | {row.name: row for row in rows}
    there = [row for row in rows if _seeds(row, runs)]
    return {
        row.name: _figures(row, [known[other] for other in row.against if other != row.name], runs)
        for row in there
    }


def _figures(row: Row, others: Iterable[Row], runs: Runs) -> dict[str, Any]:
    seeds = _seeds(row, runs)
    mine = [runs[row.run(seed).name] for seed in seeds]
    if len({run["command"] for run in mine}) > 1:
        raise SystemExit(f"{row.name}: its seeds were trained by different commands, see {KEPT}")
    at_1 = [float((_places(run) == 1).mean()) for run in mine]
    found: dict[str, Any] = {
        "command": mine[0]["command"],
        "machine": mine[0]["machine"],
        "seeds": seeds,
        "each": at_1,
        "deviation": stdev(at_1) if len(at_1) > 1 else None,
        "seconds": [run["seconds"] for run in mine if run["seconds"]],
    }
    places = all_places(map(row.run, seeds), runs)
    for name, values in (("R@1", places == 1), ("R@5", places <= 5), ("MRR", 1 / places)):
        found[name] = figure(sample(name, values))._asdict()
    found["against"] = [_test(row, other, runs) for other in others if _in_both(row, other, runs)]
    return found


def _test(row: Row, other: Row, runs: Runs) -> dict[str, Any]:
    both = _in_both(row, other, runs)
    ours, theirs = (sample("R@1", all_places(map(each.run, both), runs) == 1) for each in (row, other))
    return {"row": other.name, "seeds": both, **difference(ours, theirs)._asdict()}


def _in_both(row: Row, other: Row, runs: Runs) -> list[int]:
    return [seed for seed in _seeds(row, runs) if seed in _seeds(other, runs)]


def _seeds(row: Row, runs: Runs) -> list[int]:
    return [seed for seed in SEEDS if row.run(seed).name in runs]


def all_places(folders: Iterable[Path], runs: Runs) -> NDArray[np.uint8]:
    """``[runs, cases]``: where the right candidate came."""
    return np.array([_places(runs[folder.name]) for folder in folders])


def sample(name: str, values: NDArray[Any]) -> Sample:
    """Cases to be tested, each the mean over its runs, from ``[runs, cases]``."""
    return Sample(MeanOf(name), {name: values.mean(axis=0)})


def origin(folder: Path) -> dict[str, str]:
    """How and where a run was trained.

    Raises:
        SystemExit: its command has other settings today.
    """
    words = read_json(folder / "environment.json")["command"][1:]
    _check_settings(folder, words)
    return {
        "command": shown_command(words),
        "recipe": recipe_digest(ROOT / words[1]),
        "machine": _machine(folder),
    }


def _outcome(folder: Path) -> dict[str, Any]:
    result = read_json(folder / "result.json")
    return {
        **origin(folder),
        "seconds": round(result["train"].get("train_runtime", 0)) or None,  # none of a run in several parts
        "places": packed(result["places"]),
    }


def _check_settings(folder: Path, words: list[str]) -> None:
    """Raise if the command has other settings today."""
    changes = [after for word, after in pairwise(words) if word == "--set"]
    seed = next(int(after) for word, after in pairwise(words) if word == "--seed")
    recipe = with_seed(read_recipe(ROOT / words[1], changes), seed)
    if json.loads(json.dumps(recipe.resolved())) != read_json(folder / "config.json"):
        raise SystemExit(f"{folder} has other settings than {words[1]} now: train it again, or remove it")


def recipe_digest(path: Path) -> str:
    """Of what a recipe says, its description left out."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    said = json.dumps({name: part for name, part in table.items() if name != "about"}, sort_keys=True)
    return sha256(said.encode()).hexdigest()[:12]


def packed(places: Sequence[int] | NDArray[Any]) -> str:
    """Places, each below 256, as text."""
    return b64encode(compress(np.array(places, dtype=np.uint8).tobytes(), 9)).decode("ascii")


def _places(run: dict[str, Any]) -> NDArray[np.uint8]:
    return np.frombuffer(decompress(b64decode(run["places"])), dtype=np.uint8)


def shown_command(words: Sequence[str]) -> str:
    """How a run is started, for any seed."""
    text = shlex.join(["tercet", *(word for word in words if word != "--resume")])
    text = re.sub(r"--seed \d+", "--seed S", re.sub(r" -o \S+", "", text))
    return re.sub(r"-\d+/model\b", "-S/model", text)


def _machine(folder: Path) -> str:
    known = read_json(folder / "environment.json")
    return ", ".join(known["gpus"]) or f"{known['processors']} processors"
