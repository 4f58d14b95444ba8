"""Train everything, in four stages of a limited time.

python research/bilingual/stages.py backbone --work WORK --seconds 255   # backbones side by side
python research/bilingual/stages.py scorers --work WORK --seconds 430    # bi- and poly-encoders
python research/bilingual/stages.py cross --work WORK --seconds 750      # a cross-encoder
python research/bilingual/stages.py taught --work WORK --seconds 600     # bi and poly, which it teaches

``--seconds`` is the training time of each backbone, or the time of the whole stage. Results go to
WORK/results.jsonl, the chosen weights to WORK/{backbone,bi,bi-half,poly,cross}.safetensors.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from distil import starting_weights
from evaluation import Evaluator, means
from model import Weights, build
from runs import read_results, write_result
from safetensors.torch import load_file, save_file

BACKBONES = (
    {"name": "d", "body_lr": 5e-4, "pairs_weight": 0.25, "english_weight": 10.0},
    {
        "name": "e",
        "body_lr": 4e-4,
        "table_lr": 3e-3,
        "softmax_weight": 1.0,
        "pairs_weight": 0.25,
        "english": 768,
        "english_weight": 15.0,
        "seed": 1,
    },
    {
        "name": "g",
        "docs": 250,
        "general": 500,
        "joined": 160,
        "english_weight": 20.0,
        "english": 768,
        "seed": 2,
    },
)
BI = {"name": "bi_b", "answers_kl": 2.0, "korean_kl": 1.0, "similar_kl": 1.0, "vector_weight": 1.0}
BI_SECONDS = 100
POLY = {"name": "poly_b", "start": "bi", "shares": [0.75, 1.0]}
CROSS = {"name": "cross_c", "shares": [0.75, 1.0]}
TAUGHT = {"answers_softmax": 0.5, "answers_kl": 3.0, "similar_kl": 1.0, "korean_kl": 1.0}
TAUGHT_BI = {"name": "bi_t", "start": "bi", "vector_weight": 1.0, **TAUGHT}
TAUGHT_POLY = {"name": "poly_t", "start": "poly", "seed": 1, **TAUGHT}
EVALUATION_SECONDS = 60
"""Time kept for the evaluation at the end of a stage."""

SMALL_BACKBONE = dict.fromkeys(("docs", "general", "korsts", "joined", "english", "pairs", "sts"), 8)
SMALL_SCORER = dict.fromkeys(("dialogue", "answers", "similar", "korean", "sts"), 4)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stage", choices=STAGES)
    parser.add_argument("--work", type=Path, required=True, help="folder of intermediate files and results")
    parser.add_argument("--seconds", type=float, required=True, help="time of a backbone, or of the stage")
    parser.add_argument("--small", action="store_true", help="a dry run: two tiny steps, one run at a time")
    options = parser.parse_args()
    stage = Stage(options.work, options.seconds, small=options.small)
    STAGES[options.stage](stage)


class Stage:
    """Starts runs side by side, or one after the other if ``small``."""

    def __init__(self, work: Path, seconds: float, *, small: bool) -> None:
        self.work, self.seconds, self.small = work, seconds, small
        self.began = time.time()

    def left(self) -> float:
        """Seconds for training."""
        return max(self.seconds - (time.time() - self.began) - EVALUATION_SECONDS, 1.0)

    def start(self, *command: str, **settings: Any) -> subprocess.Popen[bytes]:
        if self.small and settings:
            sizes = SMALL_BACKBONE if command == ("distil.py",) else SMALL_SCORER
            settings |= {"max_steps": 2, **sizes}
        script, *rest = command
        line = [sys.executable, str(Path(__file__).parent / script), *rest, "--work", str(self.work)]
        line += [
            part for name, value in settings.items() for part in ("--set", f"{name}={json.dumps(value)}")
        ]
        run = subprocess.Popen([*line, *(["--small"] if self.small else [])])
        if self.small:
            self.wait(run)
        return run

    def wait(self, *runs: subprocess.Popen[bytes]) -> None:
        for run in runs:
            if run.wait() != 0:
                raise SystemExit(f"a run failed with status {run.returncode}: {' '.join(map(str, run.args))}")

    def evaluator(self) -> Evaluator:
        return Evaluator(self.work / "dev.npz", small=self.small)

    def choose(self, kind: str, names: list[str]) -> str:
        """Copy the weights with the best mean of dev results to KIND.safetensors; returns their run."""
        results = read_results(self.work, kind)  # of a run that was repeated, the last result counts
        rows = {(row["name"], row["share"]): row for row in results if row["name"] in names}
        best = max(rows.values(), key=lambda row: row["mean"])
        chosen = self.work / f"{best['name']}-{best['share']}.safetensors"
        shutil.copy(chosen, self.work / f"{kind}.safetensors")
        print(f"{kind}: chose {chosen.name}", flush=True)
        return best["name"]


def average(weights: list[Weights]) -> Weights:
    return {name: sum(part[name] for part in weights) / len(weights) for name in weights[0]}


def train_backbones(stage: Stage) -> None:
    """Train backbones, average the best ones, and keep the best of all."""
    variants = BACKBONES[:2] if stage.small else BACKBONES
    stage.wait(*[stage.start("distil.py", seconds=stage.seconds, **variant) for variant in variants])
    evaluator = stage.evaluator()
    teacher, _ = starting_weights(stage.work)
    evaluator.file.check_rows(len(teacher["word.weight"]), "teacher")
    minilm = evaluator.bi(build(teacher))
    write_result(stage.work, kind="minilm", **means(minilm), results=minilm)
    english = means(minilm)["english"]

    def worth(results: dict[str, float]) -> float:
        """Korean, less twice what English lost."""
        return means(results)["korean"] + 2 * min(0.0, means(results)["english"] - english)

    names = [variant["name"] for variant in variants]
    rows = {row["name"]: row["results"] for row in read_results(stage.work, "backbone")}
    names.sort(key=lambda name: worth(rows[name]), reverse=True)
    weights = [load_file(stage.work / f"backbone-{name}.safetensors") for name in names]
    best, best_worth = weights[0], worth(rows[names[0]])
    for count in sorted({2, 3, 4, len(names)} & set(range(2, len(names) + 1))):
        soup = average(weights[:count])
        results = evaluator.bi(build(soup))
        write_result(stage.work, kind="soup", of=names[:count], **means(results), results=results)
        if worth(results) > best_worth:
            best, best_worth = soup, worth(results)
    save_file(best, stage.work / "backbone.safetensors")


def train_scorers(stage: Stage) -> None:
    """Train a bi-encoder, then a poly-encoder from it."""
    stage.wait(stage.start("scorers.py", "vectors"))
    stage.wait(stage.start("scorers.py", "bi", seconds=BI_SECONDS, **BI))
    best = stage.choose("bi", [BI["name"]])
    shutil.copy(stage.work / f"{best}-0.5.safetensors", stage.work / "bi-half.safetensors")
    stage.wait(stage.start("scorers.py", "poly", seconds=stage.left(), **POLY))
    stage.choose("poly", [POLY["name"]])


def train_cross(stage: Stage) -> None:
    """Mine hard negatives, and train a cross-encoder with the poly-encoder as teacher.

    It continues one that exists, or starts from the bi-encoder.
    """
    stage.wait(stage.start("scorers.py", "mine"))
    start = "cross" if (stage.work / "cross.safetensors").exists() else "bi"
    stage.wait(stage.start("scorers.py", "cross", seconds=stage.left(), start=start, **CROSS))
    stage.choose("cross", [CROSS["name"]])


def train_taught(stage: Stage) -> None:
    """Train the bi- and the poly-encoder on, side by side, with the cross-encoder as teacher."""
    stage.wait(stage.start("scorers.py", "vectors"), stage.start("scorers.py", "lists"))
    seconds = stage.left()
    stage.wait(
        stage.start("scorers.py", "bi", seconds=seconds, **TAUGHT_BI),
        stage.start("scorers.py", "poly", seconds=seconds, **TAUGHT_POLY),
    )
    stage.choose("bi", [TAUGHT_BI["name"]])
    stage.choose("poly", [TAUGHT_POLY["name"]])


STAGES = {
    "backbone": train_backbones,
    "scorers": train_scorers,
    "cross": train_cross,
    "taught": train_taught,
}


if __name__ == "__main__":
    main()
