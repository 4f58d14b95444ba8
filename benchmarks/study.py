"""The study of Humeau et al. (2020) on four dialogue sets: every training is one command, and can go on.

python benchmarks/study.py main --list                      # the commands
python benchmarks/study.py main --jobs 8 --data FOLDER      # trains what has no result yet, into runs/study
python benchmarks/study.py codes others --seeds 1           # two parts, of seed 0 alone
python benchmarks/study.py main --collect                   # what is done into benchmarks/study.json

Settings that all runs of a machine share go behind --set, such as training.bf16=true on a GPU. Runs that are
kept already, wherever they were made, are trained again only with --again. A GPU that trains many models side
by side has memory for a few cross-encoders only: --crosses says for how many of the jobs.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from study_kept import check_alike, figures, finished_runs, keep, kept_runs
from study_rows import BEFORE, PARTS, RUNS

ROOT = Path(__file__).parents[1]


def train(run: Path, words: list[str], data: str) -> bool:
    """One training, or the rest of it; whether it ended well. Then its checkpoints are of no more use."""
    environment = {**os.environ, "TERCET_DATA": data}
    with (run.parent / f"{run.name}.log").open("a", encoding="utf-8") as opened:
        ended = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=ROOT,
            env=environment,
            stdout=opened,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if ended.returncode == 0:
        for checkpoints in run.rglob("checkpoints"):  # a gigabyte of each run
            shutil.rmtree(checkpoints)
    return ended.returncode == 0


def train_side_by_side(
    commands: dict[Path, list[str]], *, jobs: int, data: str, crosses: int | None = None
) -> bool:
    """Everything that has no result yet, in order; whether all of it ended well.

    Args:
        commands: by the folders of the runs, which lie beside their logs.
        crosses: how many of the jobs are for cross-encoders, and the others for all else; any by default.
    """
    for run in commands:
        (ROOT / run).parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(jobs - (crosses or 0)) as pool, ThreadPoolExecutor(crosses or 1) as heavy:
        begun = {
            run: (heavy if crosses and run.name.startswith("cross") else pool).submit(
                train, ROOT / run, words, data
            )
            for run, words in commands.items()
        }
        for run, training in begun.items():
            print(f"{run}: {'done' if training.result() else f'failed, see {run}.log'}", flush=True)
    return all(training.result() for training in begun.values())


def main() -> None:
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    parser.add_argument("part", choices=PARTS, nargs="+")
    parser.add_argument("--only", default="", help="train rows whose name holds this")
    parser.add_argument("--jobs", type=int, default=1, help="trainings side by side")
    parser.add_argument("--crosses", type=int, help="how many of them are for cross-encoders")
    parser.add_argument("--seeds", type=int, default=3, help="how many of each row: 0, 1, ...")
    parser.add_argument(
        "--data", default=os.environ.get("TERCET_DATA", "."), help="the folder that the sets lie under"
    )
    parser.add_argument("--set", action="append", default=[], help="a setting of all runs")
    parser.add_argument("--list", action="store_true", help="print the commands, and which runs are kept")
    parser.add_argument("--again", action="store_true", help="train what is kept already, too")
    parser.add_argument("--collect", action="store_true", help="write study.json and stop")
    given = parser.parse_args()
    if given.seeds < 1 or given.jobs < 1:
        parser.error("--seeds and --jobs must be at least 1")
    if given.crosses is not None and not 0 < given.crosses < given.jobs:
        parser.error("--crosses must leave at least one of the --jobs, and be at least 1")
    rows = [row for part in given.part for row in PARTS[part]() if given.only in row.name]
    if not rows:
        parser.error(f"no row's name holds {given.only!r}")
    shared, seeds, kept = tuple(given.set), range(given.seeds), kept_runs()
    before = [BEFORE[part](shared, seeds) for part in given.part if part in BEFORE]
    first = {run: words for commands in before for run, words in commands.items()}
    todo = {row.run(seed): row.command(seed, shared) for seed in seeds for row in rows}
    if given.list:
        for run, words in (first | todo).items():
            print(shlex.join(words), "# kept" if run.name in kept else "")
        return
    well = True
    if not given.collect:
        data = str(Path(given.data).resolve())
        left = {run: words for run, words in todo.items() if given.again or run.name not in kept}
        for row in rows:
            if not given.again and any(row.run(seed) in left for seed in seeds):
                check_alike(row, shared, kept)
        for commands in (first, left) if left else ():
            well = well and train_side_by_side(commands, jobs=given.jobs, data=data, crosses=given.crosses)
    done = finished_runs((ROOT / RUNS).glob("*/"))
    keep(done, again=given.again)
    print(f"{len(done)} runs are done here, {len(kept_runs())} kept")
    for name, row in figures(rows, kept_runs()).items():
        print(f"{name}: R@1 {100 * row['R@1']['value']:.1f}, seeds {', '.join(map(str, row['seeds']))}")
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
