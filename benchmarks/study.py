"""The study of Humeau et al. (2020) on four dialogue sets: every training is one command, and can go on.

python benchmarks/study.py main --list                      # the commands
python benchmarks/study.py main --jobs 8 --data FOLDER      # trains what has no result yet, into runs/study
python benchmarks/study.py main --collect                   # figures into benchmarks/study.json

Settings that all runs of a machine share go behind --set, such as training.bf16=true on a GPU.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tercet.evaluate.significance import MeanOf, Sample, difference, figure
from tercet.files import read_json, read_json_if_there, write_json

ROOT = Path(__file__).parents[1]
RUNS = Path("runs/study")
KEPT = Path(__file__).with_name("study.json")

SETS = ("ubuntu", "convai2", "self-dialogue", "dailydialog")
SEEDS = (0, 1, 2)


class Row(NamedTuple):
    """One row of a table: a recipe with some settings changed, for several seeds."""

    name: str
    recipe: str
    changes: tuple[str, ...] = ()
    seeds: tuple[int, ...] = SEEDS
    against: str = ""
    """The row that it is tested against."""

    def command(self, seed: int, shared: tuple[str, ...] = ()) -> list[str]:
        """The training of one seed."""
        words = ["tercet", "train", f"recipes/study/{self.recipe}.toml", "--seed", str(seed)]
        for change in (*self.changes, *shared):
            words += ["--set", change]
        return [*words, "-o", str(self.folder(seed))]

    def folder(self, seed: int) -> Path:
        """Where that run lies."""
        return RUNS / f"{self.name.replace(' ', '-').replace('/', '-')}-{seed}"


def main_rows() -> list[Row]:
    """The three scorers on the four sets."""
    rows = []
    for each in SETS:
        bi, poly = f"{each} bi", f"{each} poly"
        rows += [
            Row(bi, f"bi-{each}"),
            Row(poly, f"poly-{each}", against=bi),
            Row(f"{each} poly first", f"poly-{each}", ('model.code_kind="first"',), against=bi),
            Row(f"{each} cross", f"cross-{each}", against=poly),
        ]
    return rows


def code_rows() -> list[Row]:
    """How many codes, and of which kind (the paper's table 5)."""
    return [
        Row(f"codes {kind} {count}", "poly-ubuntu", (f'model.code_kind="{kind}"', f"model.codes={count}"))
        for kind in ("learnt", "first", "last", "last_and_first")
        for count in (1, 4, 16, 64, 360)
        if (kind, count) != ("last_and_first", 1)
    ]


def other_rows() -> list[Row]:
    """Reductions, negatives, layers and scales."""
    rows = [
        Row(f"reduction {kind} {tokens}".strip(), "poly-ubuntu", changes)
        for kind, tokens, changes in (
            ("first", "", ('model.reduction="first"',)),
            ("mean_first", "16", ('model.reduction="mean_first"', "model.first_tokens=16")),
            ("mean_first", "64", ('model.reduction="mean_first"', "model.first_tokens=64")),
            ("mean", "", ()),
        )
    ]
    rows += [
        Row(f"negatives {size - 1}", "bi-ubuntu", (f"batches.examples={size}",))
        for size in (32, 64, 128, 256, 512)
    ]
    rows += [
        Row(f"layers {name} {kind}", f"{kind}-ubuntu", changes)
        for kind in ("bi", "cross")
        for name, changes in (
            ("top", ("training.freeze_embeddings=true", "training.freeze_layers=5")),
            ("top four", ("training.freeze_embeddings=true", "training.freeze_layers=2")),
            ("all but embeddings", ("training.freeze_embeddings=true",)),
            ("all", ()),
        )
    ]
    return rows + [
        Row(f"scale {name} {value}", "poly-ubuntu", (f"{setting}={value}",))
        for name, setting, values in (
            ("codes", "model.code_scale", (1, 3, 10, 30)),
            ("candidate", "model.candidate_scale", (1, 4, 10, 30)),
            ("score", "objective.score_scale", (5, 10, 20, 40)),
        )
        for value in values
    ]


PARTS = {"main": main_rows, "codes": code_rows, "others": other_rows}


def run(row: Row, seed: int, shared: tuple[str, ...], data: str) -> str:
    """Train one seed, or go on with it; says how that ended."""
    folder = row.folder(seed)
    if (folder / "result.json").is_file() and (folder / "model").is_dir():
        return f"{folder}: there"
    words = [sys.executable, "-m", *row.command(seed, shared)]
    if folder.is_dir():
        words.append("--resume")
    (ROOT / RUNS).mkdir(parents=True, exist_ok=True)
    log = ROOT / RUNS / f"{folder.name}.log"
    there = {**os.environ, "TERCET_DATA": data}
    with log.open("a", encoding="utf-8") as opened:
        ended = subprocess.run(words, cwd=ROOT, env=there, stdout=opened, stderr=opened, check=False)
    return f"{folder}: {'done' if ended.returncode == 0 else f'failed, see {log}'}"


def collected(rows: list[Row], shared: tuple[str, ...]) -> dict[str, Any]:
    """Figures of every row whose seeds are done: R@1, R@5 and MRR with intervals, and tests case by case.

    A case's value is its mean over the seeds, so that an interval says how much other cases would matter;
    the deviation over seeds stands beside it.
    """
    places: dict[str, np.ndarray] = {}
    found: dict[str, Any] = {}
    for row in rows:
        results = [read_json_if_there(ROOT / row.folder(seed) / "result.json") for seed in row.seeds]
        if not all("places" in result for result in results):
            continue
        places[row.name] = np.array([result["places"] for result in results])
        at_1 = (places[row.name] == 1).mean(axis=1)
        found[row.name] = {
            "command": shlex.join(row.command(0, shared)).replace("--seed 0", "--seed S"),
            "seeds": [float(value) for value in at_1],
            "deviation": float(at_1.std(ddof=1)) if len(at_1) > 1 else 0.0,
            "seconds": [result["train"].get("train_runtime") for result in results],
            "machine": _machine(ROOT / row.folder(row.seeds[0])),
            **{name: figure(sample)._asdict() for name, sample in _samples(places[row.name]).items()},
        }
        if row.against in places:
            ours, theirs = _samples(places[row.name])["R@1"], _samples(places[row.against])["R@1"]
            found[row.name]["against"] = {"row": row.against, **difference(ours, theirs)._asdict()}
    return found


def _machine(run: Path) -> str:
    known = read_json(run / "environment.json")
    return ", ".join(known["gpus"]) or f"{known['processors']} processors"


def _samples(places: np.ndarray) -> dict[str, Sample]:
    columns = {
        "R@1": (places == 1).mean(axis=0),
        "R@5": (places <= 5).mean(axis=0),
        "MRR": (1 / places).mean(axis=0),
    }
    return {name: Sample(MeanOf(name), {name: values}) for name, values in columns.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--only", default="", help="rows whose name holds this")
    parser.add_argument("--jobs", type=int, default=1, help="trainings side by side")
    parser.add_argument("--data", default=os.environ.get("TERCET_DATA", ""))
    parser.add_argument("--set", action="append", default=[], help="a setting of all runs")
    parser.add_argument("--list", action="store_true", help="print the commands and stop")
    parser.add_argument("--collect", action="store_true", help="write study.json and stop")
    given = parser.parse_args()
    rows = [row for row in PARTS[given.part]() if given.only in row.name]
    shared = tuple(given.set)
    if given.list:
        for row in rows:
            for seed in row.seeds:
                print(shlex.join(row.command(seed, shared)))
        return
    if not given.collect:
        todo = sorted((seed, place) for place, row in enumerate(rows) for seed in row.seeds)
        with ThreadPoolExecutor(given.jobs) as pool:
            begun = [pool.submit(run, rows[place], seed, shared, given.data) for seed, place in todo]
            for each in begun:
                print(each.result(), flush=True)
    kept = read_json_if_there(KEPT)
    write_json(KEPT, kept | {given.part: kept.get(given.part, {}) | collected(rows, shared)})
    print(json.dumps({name: row["R@1"]["value"] for name, row in collected(rows, shared).items()}, indent=1))


if __name__ == "__main__":
    main()
