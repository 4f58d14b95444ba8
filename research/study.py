"""Train the models of the study (Humeau et al., 2020, on four dialogue sets). Interrupted runs are resumed.

python research/study.py main --list                       # print the commands
python research/study.py main --jobs 8 --data FOLDER       # train what has no result yet, into runs/study
python research/study.py codes ablations --seeds 1         # two parts, seed 0 only
python research/study.py main --collect                    # store finished runs in research/study.json

Pass settings that all runs of a machine share with --set, such as training.bf16=true on a GPU. Runs that are
stored already, from any machine, are trained again only with --retrain. A GPU that trains many models side by
side has memory for a few cross-encoders only: --cross-jobs limits them.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from study_rows import INPUTS, PARTS, RUNS, Row
from study_runs import check_same_command, finished_runs, row_results, store_runs, stored_runs

ROOT = Path(__file__).parents[1]


def train(run: Path, words: list[str], data: str) -> bool:
    """Whether a training, or the rest of it, succeeded. Its checkpoints are removed then."""
    with (run.parent / f"{run.name}.log").open("a", encoding="utf-8") as log:
        finished = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=ROOT,
            env={**os.environ, "TERCET_DATA": data},
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if finished.returncode == 0:
        for checkpoints in run.rglob("checkpoints"):  # a gigabyte per run
            shutil.rmtree(checkpoints)
    return finished.returncode == 0


def train_side_by_side(
    commands: dict[Path, list[str]], *, jobs: int, data: str, cross_jobs: int | None = None
) -> bool:
    """Whether all trainings that have no result yet succeeded.

    Args:
        commands: by run folder; the log of a run is written beside its folder.
        cross_jobs: jobs reserved for cross-encoders; the others train everything else. Default: any job
            trains any model.
    """
    for run in commands:
        (ROOT / run).parent.mkdir(parents=True, exist_ok=True)
    with (
        ThreadPoolExecutor(jobs - (cross_jobs or 0)) as pool,
        ThreadPoolExecutor(cross_jobs or 1) as cross_pool,
    ):
        futures = {
            run: (cross_pool if cross_jobs and run.name.startswith("cross") else pool).submit(
                train, ROOT / run, words, data
            )
            for run, words in commands.items()
        }
        for run, future in futures.items():
            print(f"{run}: {'finished' if future.result() else f'failed, see {run}.log'}", flush=True)
    return all(future.result() for future in futures.values())


def main() -> None:
    options = _options()
    rows = [row for part in options.part for row in PARTS[part]() if options.only in row.name]
    shared, seeds, stored = tuple(options.set), range(options.seeds), stored_runs()
    inputs = {
        run: words
        for part in options.part
        if part in INPUTS
        for run, words in INPUTS[part](shared, seeds).items()
    }
    commands = {row.run(seed): row.command(seed, shared) for seed in seeds for row in rows}
    if options.list:
        for run, words in (inputs | commands).items():
            print(shlex.join(words), "# stored" if run.name in stored else "")
        return
    succeeded = options.collect or _train_missing(rows, inputs, commands, options)
    finished = finished_runs((ROOT / RUNS).glob("*/"))
    store_runs(finished, replace=options.retrain)
    print(f"{len(finished)} finished runs here, {len(stored_runs())} stored")
    for name, row in row_results(rows, stored_runs()).items():
        print(f"{name}: R@1 {100 * row['R@1']['value']:.1f}, seeds {', '.join(map(str, row['seeds']))}")
    sys.exit(0 if succeeded else 1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=PARTS, nargs="+")
    parser.add_argument("--only", default="", help="train only rows whose name contains this")
    parser.add_argument("--jobs", type=int, default=1, help="trainings side by side")
    parser.add_argument("--cross-jobs", type=int, help="how many of the jobs train cross-encoders")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds per row, from 0")
    parser.add_argument("--data", default=os.environ.get("TERCET_DATA", "."), help="folder of the data sets")
    parser.add_argument("--set", action="append", default=[], help="a setting of all runs")
    parser.add_argument("--list", action="store_true", help="print the commands, and which runs are stored")
    parser.add_argument("--retrain", action="store_true", help="also train runs that are stored")
    parser.add_argument("--collect", action="store_true", help="only store finished runs")
    options = parser.parse_args()
    if options.seeds < 1 or options.jobs < 1:
        parser.error("--seeds and --jobs must be at least 1")
    if options.cross_jobs is not None and not 0 < options.cross_jobs < options.jobs:
        parser.error("--cross-jobs must be at least 1 and below --jobs")
    if not any(options.only in row.name for part in options.part for row in PARTS[part]()):
        parser.error(f"no row has a name that contains {options.only!r}")
    return options


def _train_missing(
    rows: list[Row],
    inputs: dict[Path, list[str]],
    commands: dict[Path, list[str]],
    options: argparse.Namespace,
) -> bool:
    """Whether all trainings succeeded, those of the inputs first."""
    stored, data = stored_runs(), str(Path(options.data).resolve())
    missing = {run: words for run, words in commands.items() if options.retrain or run.name not in stored}
    for row in rows:
        if not options.retrain and any(row.run(seed) in missing for seed in range(options.seeds)):
            check_same_command(row, tuple(options.set), stored)
    return all(
        train_side_by_side(group, jobs=options.jobs, data=data, cross_jobs=options.cross_jobs)
        for group in ((inputs, missing) if missing else ())
    )


if __name__ == "__main__":
    main()
