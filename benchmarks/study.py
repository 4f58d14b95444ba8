"""The study of Humeau et al. (2020) on four dialogue sets: every training is one command, and can go on.

python benchmarks/study.py main --list                      # the commands
python benchmarks/study.py main --jobs 8 --data FOLDER      # trains what has no result yet, into runs/study
python benchmarks/study.py codes --seeds 1                  # of seed 0 alone
python benchmarks/study.py main --collect                   # figures into benchmarks/study.json

Settings that all runs of a machine share go behind --set, such as training.bf16=true on a GPU. Figures of
rows whose runs are elsewhere stay as they are; which cases were right is kept with them, so that rows of
several machines can be tested against each other.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tercet.evaluate.significance import MeanOf, Sample, difference, figure
from tercet.files import read_json, read_json_if_there, write_json

ROOT = Path(__file__).parents[1]
RUNS = Path("runs/study")
KEPT = Path(__file__).with_name("study.json")

READ_BEFORE = ("dialogue", "text")
SETS = ("ubuntu", "convai2", "self-dialogue", "dailydialog")


class Row(NamedTuple):
    """One row of a table: a recipe with some settings changed, for several seeds."""

    name: str
    recipe: str
    changes: tuple[str, ...] = ()
    against: str = ""
    """The row that it is tested against."""

    def run(self, seed: int) -> Path:
        """Its folder; rows of equal settings share it."""
        return RUNS / folder_name(self.recipe, self.changes, seed)

    def command(self, seed: int, shared: tuple[str, ...]) -> list[str]:
        """The training of one seed."""
        return training(f"study/{self.recipe}", self.run(seed), (*self.changes, *shared), seed)


def training(recipe: str, run: Path, changes: tuple[str, ...], seed: int) -> list[str]:
    """The command that trains a recipe with some settings changed, or goes on with it."""
    words = ["tercet", "train", f"recipes/{recipe}.toml", "-o", str(run)]
    for change in changes:
        words += ["--set", change]
    return [*words, "--seed", str(seed), "--resume"]


def folder_name(recipe: str, changes: tuple[str, ...], seed: int) -> str:
    """A name that says what is trained."""
    changed = (re.sub(r"\W+", "-", change.partition(".")[2]).strip("-") for change in changes)
    return "-".join([recipe, *changed, str(seed)])


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
    kinds = {kind: (f'model.code_kind="{kind}"',) for kind in ("first", "last", "last_and_first")}
    counts = {
        1: ("model.codes=1",),
        4: ("model.codes=4",),
        16: ("model.codes=16",),
        64: (),
        360: ("model.codes=360", "model.max_tokens=360"),
    }
    return [
        Row(f"codes {kind} {count}", "poly-ubuntu", (*kinds.get(kind, ()), *changes))
        for kind in ("learnt", *kinds)
        for count, changes in counts.items()
        if (kind, count) != ("last_and_first", 1)
    ]


def other_rows() -> list[Row]:
    """Reductions, negatives, layers and scales; what the recipe has already is no change."""
    rows = [
        Row("reduction first", "poly-ubuntu", ('model.reduction="first"',)),
        Row("reduction mean_first 16", "poly-ubuntu", ('model.reduction="mean_first"',)),
        Row(
            "reduction mean_first 64",
            "poly-ubuntu",
            ('model.reduction="mean_first"', "model.first_tokens=64"),
        ),
        Row("reduction mean", "poly-ubuntu"),
    ]
    rows += [
        Row(f"negatives {size - 1}", "bi-ubuntu", _unless(64, size, "batches.examples"))
        for size in (32, 64, 128, 256, 512)
    ]
    for kind in ("bi", "cross"):
        fast = "training.freeze_embeddings=true"
        rows += [
            Row(f"layers top {kind}", f"{kind}-ubuntu", (fast, "training.freeze_layers=5")),
            Row(f"layers top four {kind}", f"{kind}-ubuntu", (fast, "training.freeze_layers=2")),
            Row(f"layers all but embeddings {kind}", f"{kind}-ubuntu", (fast,)),
            Row(f"layers all {kind}", f"{kind}-ubuntu"),
        ]
    scales = (
        ("codes", "model.code_scale", 10, (1, 3, 10, 30)),
        ("candidate", "model.candidate_scale", 10, (1, 4, 10, 30)),
        ("score", "objective.score_scale", 20, (5, 10, 20, 40)),
    )
    return rows + [
        Row(f"scale {name} {value}", "poly-ubuntu", _unless(usual, value, setting))
        for name, setting, usual, values in scales
        for value in values
    ]


def pretraining_rows() -> list[Row]:
    """What the encoder has read before (section 5.3): nothing more, dialogues, or as much other text."""
    rows = []
    for kind in ("bi", "poly", "cross"):
        plain = f"pretraining none {kind}"
        rows.append(Row(plain, f"{kind}-convai2"))
        rows += [
            Row(
                f"pretraining {text} {kind}",
                f"{kind}-convai2",
                (f'model.source="{_read(text)}/model"',),
                plain,
            )
            for text in READ_BEFORE
        ]
    return rows


def pretrainings(shared: tuple[str, ...]) -> dict[Path, list[str]]:
    """The commands that these rows come after, by their folders."""
    changes = [word for change in shared for word in ("--set", change)]
    return {
        _read(text): [
            *("tercet", "pretrain", f"recipes/study/pretrain-{text}.toml", "-o", str(_read(text))),
            *(*changes, "--resume"),
        ]
        for text in READ_BEFORE
    }


def _read(text: str) -> Path:
    return RUNS / f"pretrain-{text}"


def _unless(usual: int, value: int, setting: str) -> tuple[str, ...]:
    return () if value == usual else (f"{setting}={value}",)


PARTS = {"main": main_rows, "codes": code_rows, "others": other_rows, "pretraining": pretraining_rows}


def train(words: list[str], log: Path, data: str) -> bool:
    """One training, or the rest of it; whether it ended well."""
    environment = {**os.environ, "TERCET_DATA": data}
    with log.open("a", encoding="utf-8") as opened:
        ended = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=ROOT,
            env=environment,
            stdout=opened,
            stderr=subprocess.STDOUT,
            check=False,
        )
    return ended.returncode == 0


def train_side_by_side(commands: dict[Path, list[str]], *, jobs: int, data: str) -> bool:
    """Everything that has no result yet, in order; whether all of it ended well.

    Args:
        commands: by the folders of the runs, which lie beside their logs.
    """
    for run in commands:
        (ROOT / run).parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(jobs) as pool:
        begun = {
            run: pool.submit(train, words, ROOT / run.parent / f"{run.name}.log", data)
            for run, words in commands.items()
        }
        for run, training in begun.items():
            print(f"{run}: {'done' if training.result() else f'failed, see {run}.log'}", flush=True)
    return all(training.result() for training in begun.values())


def collected(rows: list[Row], kept: dict[str, Any], seeds: tuple[int, ...]) -> dict[str, Any]:
    """Figures of every row whose seeds are all done: R@1, R@5 and MRR with intervals, and tests case by case.

    A case's value is its mean over the seeds, so that an interval says how much other cases would matter;
    the deviation over seeds stands beside it.

    Args:
        kept: figures from before, of rows whose runs are not here.
    """
    found = {row.name: kept[row.name] for row in rows if row.name in kept}
    for row in rows:
        runs = [ROOT / row.run(seed) for seed in seeds]
        undone = [run.name for run in runs if not (run / "model").is_dir()]
        if undone:
            print(f"{row.name}: not yet, {', '.join(undone)} not done")
            continue
        if len(kept.get(row.name, {}).get("seeds", ())) > len(seeds):
            print(f"{row.name}: stays as it is, with more seeds")
            continue
        results = [read_json(run / "result.json") for run in runs]
        places = np.array([result["places"] for result in results])
        at_1 = (places == 1).mean(axis=1)
        found[row.name] = {
            "command": _command(runs[0]),
            "machine": _machine(runs[0]),
            "seeds": [float(value) for value in at_1],
            "deviation": float(at_1.std(ddof=1)) if len(at_1) > 1 else None,
            "seconds": [result["train"]["train_runtime"] for result in results],
            "cases": places.shape[1],
            "right": [np.packbits(each == 1).tobytes().hex() for each in places],
            **{name: figure(sample)._asdict() for name, sample in _samples(places).items()},
        }
    for row in rows:
        if row.name in found and row.against in found:
            _test(found, row)
    return found


def _test(found: dict[str, Any], row: Row) -> None:
    """Put the test of a row against another into it, if both are of the same cases and as many seeds."""
    ours, theirs = found[row.name], found[row.against]
    if any(name not in each for each in (ours, theirs) for name in ("right", "cases")):
        print(f"{row.name}: its cases or those of {row.against} are not kept, an older test stays")
    elif (ours["cases"], len(ours["right"])) != (theirs["cases"], len(theirs["right"])):
        ours.pop("against", None)
        print(f"{row.name}: not tested, since {row.against} has other cases or seeds")
    else:
        tested = difference(_kept_sample(ours), _kept_sample(theirs))
        ours["against"] = {"row": row.against, **tested._asdict()}


def _samples(places: NDArray[np.int64]) -> dict[str, Sample]:
    return {
        "R@1": _sample("R@1", places == 1),
        "R@5": _sample("R@5", places <= 5),
        "MRR": _sample("MRR", 1 / places),
    }


def _sample(name: str, values: NDArray[Any]) -> Sample:
    return Sample(MeanOf(name), {name: values.mean(axis=0)})


def _kept_sample(row: dict[str, Any]) -> Sample:
    """R@1, case by case, of figures that are kept."""
    bits = [np.frombuffer(bytes.fromhex(each), dtype=np.uint8) for each in row["right"]]
    return _sample("R@1", np.unpackbits(np.array(bits), axis=1, count=row["cases"]))


def _command(run: Path) -> str:
    """How a run was really started, for any seed."""
    _, *words = read_json(run / "environment.json")["command"]
    kept = [word for word in words if word != "--resume"]
    text = shlex.join(["tercet", *kept])
    return re.sub(r"--seed \d+", "--seed S", re.sub(r" -o \S+", "", text))


def _machine(run: Path) -> str:
    known = read_json(run / "environment.json")
    return ", ".join(known["gpus"]) or f"{known['processors']} processors"


def main() -> None:
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--only", default="", help="train rows whose name holds this")
    parser.add_argument("--jobs", type=int, default=1, help="trainings side by side")
    parser.add_argument("--seeds", type=int, default=3, help="of each row: 0, 1, ...")
    parser.add_argument("--data", default=os.environ.get("TERCET_DATA", "."))
    parser.add_argument("--set", action="append", default=[], help="a setting of all runs")
    parser.add_argument("--list", action="store_true", help="print the commands and stop")
    parser.add_argument("--collect", action="store_true", help="write study.json and stop")
    given = parser.parse_args()
    if given.seeds < 1:
        parser.error("--seeds must be at least 1")
    rows, shared, seeds = PARTS[given.part](), tuple(given.set), tuple(range(given.seeds))
    wanted = [row for row in rows if given.only in row.name]
    well = True
    if given.list:
        if given.part == "pretraining":
            print(*map(shlex.join, pretrainings(shared).values()), sep="\n")
        for row in wanted:
            print(*(shlex.join(row.command(seed, shared)) for seed in seeds), sep="\n")
        return
    if not given.collect:
        data = str(Path(given.data).resolve())
        todo = {row.run(seed): row.command(seed, shared) for seed in seeds for row in wanted}
        first = pretrainings(shared) if given.part == "pretraining" else {}
        well = all(train_side_by_side(each, jobs=given.jobs, data=data) for each in (first, todo))
    kept = read_json_if_there(KEPT)
    found = collected(rows, kept.get(given.part, {}), seeds)
    write_json(KEPT, kept | {given.part: found})
    for name, row in found.items():
        print(f"{name}: R@1 {100 * row['R@1']['value']:.1f}")
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
