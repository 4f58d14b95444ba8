"""Measure BM25 and the untrained bi-encoder on the study's four sets and store them in ``study.json``.

TERCET_DATA=FOLDER python research/study_baselines.py
"""

import os
from pathlib import Path

from study_rows import BASELINES, SETS
from study_runs import packed, store_runs

from tercet.evaluate.model_names import parse_model_name
from tercet.evaluate.run import Evaluation
from tercet.evaluate.tasks.load import load_task
from tercet.settings.tasks import read_task

ROOT = Path(__file__).parents[1]
SEED = 0
"""Nothing is random here, but every stored run has a seed."""


def main() -> None:
    if "TERCET_DATA" not in os.environ:
        raise SystemExit("TERCET_DATA must name the folder of the data sets: set it and try again")
    root = Path(os.environ["TERCET_DATA"])
    evaluation = Evaluation([parse_model_name(source) for source in BASELINES.values()], report=print)
    for name in SETS:
        task = f"tasks/{name.replace('-', '_')}.toml"
        table = evaluation.table(load_task(read_task(str(ROOT / task)), root=root))
        store_runs(
            {
                f"{baseline}-{name}-{SEED}": {
                    "command": f"tercet evaluate {source} {task}",
                    "machine": f"{os.cpu_count()} processors",
                    "seconds": None,
                    "ranks": packed(row.first.columns["rank"]),
                }
                for (baseline, source), row in zip(BASELINES.items(), table.rows, strict=True)
            }
        )


if __name__ == "__main__":
    main()
