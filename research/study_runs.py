"""The stored runs of the study, and the results of its rows.

``study.json`` stores the command of every run, a digest of its recipe, its machine, its training time, and
the rank of the right candidate in each case. Runs of several machines and days therefore add up, and any two
rows can be compared by a paired test. A run whose settings differ from those of its command is refused.
"""

import json
import re
import shlex
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from statistics import stdev
from typing import Any, TypeAlias
from zlib import compress, decompress

import numpy as np
from numpy.typing import NDArray
from study_rows import Row, rows_by_name

from tercet.evaluate.significance import MeanOf, Sample, difference, estimate
from tercet.files.structured import read_json, read_json_if_exists, read_toml, write_json
from tercet.settings.recipe import read_recipe

ROOT = Path(__file__).parents[1]
STORE = Path(__file__).with_name("study.json")
SEEDS = range(100)

Runs: TypeAlias = dict[str, dict[str, Any]]
"""Stored runs by the names of their folders."""


def stored_runs() -> Runs:
    """All stored runs."""
    return read_json_if_exists(STORE)


def finished_runs(folders: Iterable[Path]) -> Runs:
    """The results of those run folders that are finished."""
    return {
        folder.name: _run_result(folder)
        for folder in sorted(folders)
        if (folder / "model").is_dir() and "ranks" in read_json(folder / "result.json")
    }


def store_runs(runs: Runs, *, replace: bool = False) -> None:
    """Add runs to the stored ones.

    Args:
        replace: also overwrite stored runs of the same name.
    """
    every = stored_runs() | runs if replace else runs | stored_runs()
    write_json(STORE, dict(sorted(every.items())))


def check_same_command(row: Row, shared: tuple[str, ...], runs: Runs) -> None:
    """Raise if stored seeds of a row were trained with other settings than a new seed would be."""
    for seed in _seeds(row, runs):
        command = runs[row.run(seed).name]["command"]
        if command != shown_command(row.command(seed, shared)[1:]):
            raise SystemExit(
                f"{row.name}: stored seeds were trained by {command}: use its --set options, or --retrain"
            )


def row_results(rows: Iterable[Row], runs: Runs) -> dict[str, dict[str, Any]]:
    """R@1, R@5 and MRR with intervals, and paired tests, for every row with a stored run.

    The value of a case is its mean over the seeds, so an interval shows the effect of other cases; the
    standard deviation over seeds is reported beside it. Two rows are compared on the seeds that both have.
    A row may name itself in ``against``, which is ignored.

    Raises:
        SystemExit: the seeds of a row were trained by different commands.
    """
    rows = list(rows)
    known = rows_by_name() | {row.name: row for row in rows}
    return {
        row.name: _row_result(row, [known[other] for other in row.against if other != row.name], runs)
        for row in rows
        if _seeds(row, runs)
    }


def _row_result(row: Row, others: Iterable[Row], runs: Runs) -> dict[str, Any]:
    seeds = _seeds(row, runs)
    own = [runs[row.run(seed).name] for seed in seeds]
    if len({run["command"] for run in own}) > 1:
        raise SystemExit(f"{row.name}: the seeds were trained by different commands: see {STORE}")
    recalls = [float((_ranks(run) == 1).mean()) for run in own]
    result: dict[str, Any] = {
        "command": own[0]["command"],
        "machine": own[0]["machine"],
        "seeds": seeds,
        "each": recalls,
        "deviation": stdev(recalls) if len(recalls) > 1 else None,
        "seconds": [run["seconds"] for run in own if run["seconds"]],
    }
    ranks = rank_matrix(map(row.run, seeds), runs)
    for name, values in (("R@1", ranks == 1), ("R@5", ranks <= 5), ("MRR", 1 / ranks)):
        result[name] = estimate(sample(name, values))._asdict()
    result["against"] = [_comparison(row, other, runs) for other in others if _common_seeds(row, other, runs)]
    return result


def _comparison(row: Row, other: Row, runs: Runs) -> dict[str, Any]:
    common = _common_seeds(row, other, runs)
    ours, theirs = (sample("R@1", rank_matrix(map(each.run, common), runs) == 1) for each in (row, other))
    return {"row": other.name, "seeds": common, **difference(ours, theirs)._asdict()}


def _common_seeds(row: Row, other: Row, runs: Runs) -> list[int]:
    return [seed for seed in _seeds(row, runs) if seed in _seeds(other, runs)]


def _seeds(row: Row, runs: Runs) -> list[int]:
    return [seed for seed in SEEDS if row.run(seed).name in runs]


def rank_matrix(folders: Iterable[Path], runs: Runs) -> NDArray[np.uint8]:
    """``[runs, cases]``: the rank of the right candidate."""
    return np.array([_ranks(runs[folder.name]) for folder in folders])


def sample(name: str, values: NDArray[Any]) -> Sample:
    """A sample for tests and intervals: each case is its mean over the runs.

    Args:
        values: ``[runs, cases]``
    """
    return Sample(MeanOf(name), {name: values.mean(axis=0)})


def provenance(folder: Path) -> dict[str, str]:
    """Command, recipe digest and machine of a run.

    Raises:
        SystemExit: the command has other settings today.
    """
    words = read_json(folder / "environment.json")["command"][1:]
    _check_settings(folder, words)
    return {
        "command": shown_command(words),
        "recipe": recipe_digest(ROOT / words[1]),
        "machine": _machine(folder),
    }


def _run_result(folder: Path) -> dict[str, Any]:
    result = read_json(folder / "result.json")
    return {
        **provenance(folder),
        "seconds": round(result["train"].get("train_runtime", 0)) or None,  # a resumed run has no time
        "ranks": packed(result["ranks"]),
    }


def _check_settings(folder: Path, words: list[str]) -> None:
    """Raise if the command has other settings today."""
    changes = [after for word, after in pairwise(words) if word == "--set"]
    seed = next(int(after) for word, after in pairwise(words) if word == "--seed")
    recipe = read_recipe(ROOT / words[1], changes).with_seed(seed)
    if json.loads(json.dumps(recipe.resolved())) != read_json(folder / "config.json"):
        raise SystemExit(
            f"the settings of {folder} differ from those of {words[1]} today: train it again or remove it"
        )


def recipe_digest(path: Path) -> str:
    """A digest of the settings in a recipe, without its description."""
    settings = {name: part for name, part in read_toml(path).items() if name != "about"}
    return sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]


def packed(ranks: Sequence[int] | NDArray[Any]) -> str:
    """Ranks, each below 256, as text."""
    return b64encode(compress(np.array(ranks, dtype=np.uint8).tobytes(), 9)).decode("ascii")


def _ranks(run: dict[str, Any]) -> NDArray[np.uint8]:
    return np.frombuffer(decompress(b64decode(run["ranks"])), dtype=np.uint8)


def shown_command(words: Sequence[str]) -> str:
    """The command of a run for any seed, without its output folder."""
    text = shlex.join(["tercet", *(word for word in words if word != "--resume")])
    text = re.sub(r"--seed \d+", "--seed S", re.sub(r" -o \S+", "", text))
    return re.sub(r"-\d+/model\b", "-S/model", text)


def _machine(folder: Path) -> str:
    environment = read_json(folder / "environment.json")
    return ", ".join(environment["gpus"]) or f"{environment['processors']} processors"
