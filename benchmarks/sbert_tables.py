"""Sentence-BERT's ablations (Reimers & Gurevych, 2019, table 6) and objectives; each training is one command.

python benchmarks/sbert_tables.py --list                     # the commands
python benchmarks/sbert_tables.py --jobs 8 --data FOLDER     # trains what is missing, measures everything
python benchmarks/sbert_tables.py --collect --data FOLDER    # measures what is trained

Figures go to benchmarks/sbert_tables.json. Settings that all runs of a machine share go behind --set, such as
training.bf16=true on a GPU.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from study import ROOT, train_side_by_side
from study_kept import origin
from study_rows import folder_name, training

from tercet.files import read_json_if_there, write_json

RUNS = Path("runs/sbert")
KEPT = Path(__file__).with_name("sbert_tables.json")
TASKS = ("stsb-dev", "sick-dev")

POOLING: dict[str, tuple[str, ...]] = {
    "mean": (),
    "max": ('model.pooling=["max"]',),
    "first": ('model.pooling=["first"]',),
}
CONCATENATIONS: dict[str, tuple[str, ...]] = {
    "u, v": ('objective.concatenation=["u", "v"]',),
    "|u − v|": ('objective.concatenation=["difference"]',),
    "u ∗ v": ('objective.concatenation=["product"]',),
    "|u − v|, u ∗ v": ('objective.concatenation=["difference", "product"]',),
    "u, v, u ∗ v": ('objective.concatenation=["u", "v", "product"]',),
    "u, v, |u − v|": (),
    "u, v, |u − v|, u ∗ v": ('objective.concatenation=["u", "v", "difference", "product"]',),
}
"""What differs from the recipe."""


class Row(NamedTuple):
    """A recipe with some settings changed, for several seeds."""

    table: str
    name: str
    recipe: str
    changes: tuple[str, ...] = ()

    def run(self, seed: int) -> Path:
        """Its folder; rows of equal settings share it."""
        return RUNS / folder_name(self.recipe, self.changes, seed)

    def command(self, seed: int, shared: tuple[str, ...]) -> list[str]:
        """The training of one seed."""
        return training(self.recipe, self.run(seed), (*self.changes, *shared), seed)


def rows() -> list[Row]:
    """Poolings and concatenations after NLI, poolings after STSb, and what is learnt before or instead."""
    found = [
        Row(f"pooling, {recipe}", kind, recipe, changes)
        for recipe in ("sbert-nli", "sbert-stsb")
        for kind, changes in POOLING.items()
    ]
    found += [
        Row("concatenation, sbert-nli", parts, "sbert-nli", changes)
        for parts, changes in CONCATENATIONS.items()
    ]
    order = ('objective.kind="order"', "objective.score_scale=20")
    return [
        *found,
        Row("objective", "cosines of STSb", "sbert-stsb"),
        Row("objective", "order of STSb", "sbert-stsb", order),
        Row("objective", "NLI, then STSb", "sbert-nli-then-stsb"),
    ]


def measured(done: list[Row], seeds: range, data: str) -> list[dict[str, Any]]:
    """Spearman of each row on the dev files, over all seeds."""
    models = [
        f"{place}=" + ",".join(str(row.run(seed) / "model") for seed in seeds)
        for place, row in enumerate(done)
    ]
    tasks = [f"tasks/{task}.toml" for task in TASKS]
    words = [sys.executable, "-m", "tercet", "evaluate", *models, *tasks, "--json", "--data", data]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    results = json.loads(ended.stdout.splitlines()[-1])["tasks"]
    return [
        {
            task: result["rows"][place]["measures"]["spearman"]
            for task, result in zip(TASKS, results, strict=True)
        }
        for place in range(len(done))
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=1, help="trainings side by side")
    parser.add_argument("--seeds", type=int, default=3, help="of each row: 0, 1, ...")
    parser.add_argument("--data", default=os.environ.get("TERCET_DATA", "."))
    parser.add_argument("--set", action="append", default=[], help="a setting of all runs")
    parser.add_argument("--list", action="store_true", help="print the commands and stop")
    parser.add_argument("--collect", action="store_true", help="measure what is trained and stop")
    given = parser.parse_args()
    shared, seeds = tuple(given.set), range(given.seeds)
    commands = {row.run(seed): row.command(seed, shared) for seed in seeds for row in rows()}
    if given.list:
        print(*map(shlex.join, commands.values()), sep="\n")
        return
    data = str(Path(given.data).resolve())
    well = given.collect or train_side_by_side(commands, jobs=given.jobs, data=data)
    found: dict[str, dict[str, Any]] = read_json_if_there(KEPT)  # rows of other machines
    done = [row for row in rows() if all((ROOT / row.run(seed) / "model").is_dir() for seed in seeds)]
    for row, figures in zip(done, measured(done, seeds, data) if done else (), strict=True):
        kept = found.setdefault(row.table, {})
        if kept.get(row.name, {}).get("seeds", 0) > len(seeds):
            raise SystemExit(f"{row.table}, {row.name}: more seeds than {len(seeds)} are kept, see {KEPT}")
        kept[row.name] = {**origin(ROOT / row.run(0)), "seeds": len(seeds), **figures}
        print(row.table, row.name, *(f"{100 * figures[task]['value']:.1f}" for task in TASKS), flush=True)
    write_json(KEPT, found)
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
