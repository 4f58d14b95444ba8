"""What came of the study's runs, and the figures of its rows.

``study.json`` keeps of every run its command, machine, training time, and the place of the right candidate in
each case: runs of several machines and days add up, and any two rows can be tested against each other.
"""

import re
import shlex
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import stdev
from typing import Any
from zlib import compress, decompress

import numpy as np
from numpy.typing import NDArray
from study_rows import Row

from tercet.evaluate.significance import MeanOf, Sample, difference, figure
from tercet.files import read_json, read_json_if_there, write_json

KEPT = Path(__file__).with_name("study.json")
SEEDS = range(10)

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


def keep(runs: Runs) -> None:
    """Add runs to those that are kept."""
    write_json(KEPT, dict(sorted((kept_runs() | runs).items())))


def figures(rows: Iterable[Row], runs: Runs) -> dict[str, dict[str, Any]]:
    """Of every row with a run: R@1, R@5 and MRR with intervals, and tests case by case.

    A case's value is its mean over the seeds, so that an interval says how much other cases would matter;
    the deviation over seeds stands beside it. Rows are tested on the seeds that both have.
    """
    known = {row.name: row for row in rows}
    return {
        row.name: _figures(row, known.get(row.against), runs) for row in known.values() if _seeds(row, runs)
    }


def _figures(row: Row, against: Row | None, runs: Runs) -> dict[str, Any]:
    seeds = _seeds(row, runs)
    mine = [runs[row.run(seed).name] for seed in seeds]
    at_1 = [float((_places(run) == 1).mean()) for run in mine]
    found: dict[str, Any] = {
        "command": mine[0]["command"],
        "machine": mine[0]["machine"],
        "seeds": seeds,
        "each": at_1,
        "deviation": stdev(at_1) if len(at_1) > 1 else None,
        "seconds": [run["seconds"] for run in mine if run["seconds"]],
    }
    places = _all_places(row, seeds, runs)
    for name, values in (("R@1", places == 1), ("R@5", places <= 5), ("MRR", 1 / places)):
        found[name] = figure(_sample(name, values))._asdict()
    both = [seed for seed in seeds if against and seed in _seeds(against, runs)]
    if against and both:
        ours, theirs = (_sample("R@1", _all_places(each, both, runs) == 1) for each in (row, against))
        found["against"] = {"row": against.name, "seeds": both, **difference(ours, theirs)._asdict()}
    return found


def _seeds(row: Row, runs: Runs) -> list[int]:
    return [seed for seed in SEEDS if row.run(seed).name in runs]


def _all_places(row: Row, seeds: Iterable[int], runs: Runs) -> NDArray[np.uint8]:
    """``[seeds, cases]``."""
    return np.array([_places(runs[row.run(seed).name]) for seed in seeds])


def _sample(name: str, values: NDArray[Any]) -> Sample:
    return Sample(MeanOf(name), {name: values.mean(axis=0)})


def _outcome(folder: Path) -> dict[str, Any]:
    result = read_json(folder / "result.json")
    return {
        "command": _command(folder),
        "machine": _machine(folder),
        "seconds": round(result["train"]["train_runtime"]),
        "places": packed(result["places"]),
    }


def packed(places: Sequence[int] | NDArray[Any]) -> str:
    """Places, each below 256, as text."""
    return b64encode(compress(np.array(places, dtype=np.uint8).tobytes(), 9)).decode("ascii")


def _places(run: dict[str, Any]) -> NDArray[np.uint8]:
    return np.frombuffer(decompress(b64decode(run["places"])), dtype=np.uint8)


def _command(folder: Path) -> str:
    """How a run was really started, for any seed."""
    _, *words = read_json(folder / "environment.json")["command"]
    text = shlex.join(["tercet", *(word for word in words if word != "--resume")])
    return re.sub(r"--seed \d+", "--seed S", re.sub(r" -o \S+", "", text))


def _machine(folder: Path) -> str:
    known = read_json(folder / "environment.json")
    return ", ".join(known["gpus"]) or f"{known['processors']} processors"
