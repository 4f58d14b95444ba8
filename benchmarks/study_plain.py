"""BM25 and the packaged bi-encoder as it is, on the study's four sets, kept beside what is trained.

TERCET_DATA=FOLDER python benchmarks/study_plain.py
"""

import os
from pathlib import Path

from study_kept import keep, packed
from study_rows import AS_THEY_ARE, SETS

from tercet.evaluate.named import parse_name
from tercet.evaluate.run import Evaluation
from tercet.evaluate.tasks.config import read_task
from tercet.evaluate.tasks.load import load_task

ROOT = Path(__file__).parents[1]
SEED = 0
"""There is no chance in it; rows of figures have seeds."""


def main() -> None:
    if "TERCET_DATA" not in os.environ:
        raise SystemExit("say where the data sets lie: TERCET_DATA=FOLDER python benchmarks/study_plain.py")
    root = Path(os.environ["TERCET_DATA"])
    evaluation = Evaluation([parse_name(source) for source in AS_THEY_ARE.values()], tell=print)
    for each in SETS:
        task = f"tasks/{each.replace('-', '_')}.toml"
        table = evaluation.table(load_task(read_task(str(ROOT / task)), root=root))
        keep(
            {
                f"{name}-{each}-{SEED}": {
                    "command": f"tercet evaluate {source} {task}",
                    "machine": f"{os.cpu_count()} processors",
                    "seconds": None,
                    "places": packed(row.first.columns["place"]),
                }
                for (name, source), row in zip(AS_THEY_ARE.items(), table.rows, strict=True)
            }
        )


if __name__ == "__main__":
    main()
