"""Train and measure the ablations of Sentence-BERT (Reimers & Gurevych, 2019, table 6) and other objectives.

python research/sbert_tables.py --list                     # print the commands
python research/sbert_tables.py --jobs 8 --data FOLDER     # train what is missing, measure everything
python research/sbert_tables.py --collect --data FOLDER    # measure what is trained

Results go to research/sbert_tables.json. Pass settings that all runs of a machine share with --set, such as
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
from study_rows import folder_name, train_command
from study_runs import provenance

from tercet.files.structured import read_json_if_exists, write_json

RUNS = Path("runs/sbert")
STORE = Path(__file__).with_name("sbert_tables.json")
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
"""Settings that differ from the recipe's."""


class Row(NamedTuple):
    """A recipe with some settings changed, trained with several seeds."""

    table: str
    name: str
    recipe: str
    changes: tuple[str, ...] = ()

    def run(self, seed: int) -> Path:
        """The run folder; rows with equal settings share it."""
        return RUNS / folder_name(self.recipe, self.changes, seed)

    def command(self, seed: int, shared: tuple[str, ...]) -> list[str]:
        """The training command of one seed."""
        return train_command(f"recipes/{self.recipe}.toml", self.run(seed), (*self.changes, *shared), seed)


def rows() -> list[Row]:
    """Poolings and concatenations on NLI, poolings on STSb, and other objectives."""
    poolings = [
        Row(f"pooling, {recipe}", kind, recipe, changes)
        for recipe in ("sbert-nli", "sbert-stsb")
        for kind, changes in POOLING.items()
    ]
    concatenations = [
        Row("concatenation, sbert-nli", parts, "sbert-nli", changes)
        for parts, changes in CONCATENATIONS.items()
    ]
    cosent = ('objective.kind="cosent"', "objective.score_scale=20")
    return [
        *poolings,
        *concatenations,
        Row("objective", "cosine on STSb", "sbert-stsb"),
        Row("objective", "CoSENT on STSb", "sbert-stsb", cosent),
        Row("objective", "NLI, then STSb", "sbert-nli-then-stsb"),
    ]


def measure(trained: list[Row], seeds: range, data: str) -> list[dict[str, Any]]:
    """Spearman's ρ of each row on the dev files, over all seeds."""
    models = [
        f"{position}=" + ",".join(str(row.run(seed) / "model") for seed in seeds)
        for position, row in enumerate(trained)
    ]
    tasks = [f"tasks/{task}.toml" for task in TASKS]
    words = [sys.executable, "-m", "tercet", "evaluate", *models, *tasks, "--json", "--data", data]
    finished = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    results = json.loads(finished.stdout.splitlines()[-1])["tasks"]
    return [
        {
            task: result["rows"][position]["metrics"]["spearman"]
            for task, result in zip(TASKS, results, strict=True)
        }
        for position in range(len(trained))
    ]


def main() -> None:
    options = _options()
    shared, seeds = tuple(options.set), range(options.seeds)
    commands = {row.run(seed): row.command(seed, shared) for seed in seeds for row in rows()}
    if options.list:
        print(*map(shlex.join, commands.values()), sep="\n")
        return
    data = str(Path(options.data).resolve())
    succeeded = options.collect or train_side_by_side(commands, jobs=options.jobs, data=data)
    trained = [row for row in rows() if all((ROOT / row.run(seed) / "model").is_dir() for seed in seeds)]
    tables: dict[str, dict[str, Any]] = read_json_if_exists(STORE)  # with rows of other machines
    for row, metrics in zip(trained, measure(trained, seeds, data) if trained else (), strict=True):
        stored = tables.setdefault(row.table, {})
        if stored.get(row.name, {}).get("seeds", 0) > len(seeds):
            raise SystemExit(f"{row.table}, {row.name}: {STORE} has more seeds than {len(seeds)}")
        stored[row.name] = {**provenance(ROOT / row.run(0)), "seeds": len(seeds), **metrics}
        print(row.table, row.name, *(f"{100 * metrics[task]['value']:.1f}" for task in TASKS), flush=True)
    write_json(STORE, tables)
    sys.exit(0 if succeeded else 1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=1, help="trainings side by side")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds per row, from 0")
    parser.add_argument("--data", default=os.environ.get("TERCET_DATA", "."), help="folder of the data sets")
    parser.add_argument("--set", action="append", default=[], help="a setting of all runs")
    parser.add_argument("--list", action="store_true", help="print the commands and stop")
    parser.add_argument("--collect", action="store_true", help="only measure what is trained")
    return parser.parse_args()


if __name__ == "__main__":
    main()
