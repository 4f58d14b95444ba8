"""Training examples a second against sentence-transformers' trainer, interleaved in one run.

Both train the same bi-encoder on the same data, with batches of the same size, in the same precision, for one
epoch; loading, tokenising ahead and looks at dev data are not counted, only what lies between the first step
and the last.

make bench                                                        # on a CPU, on the sample data
TERCET_DATA=FOLDER python benchmarks/train_speed.py --device cuda --bf16 --examples 20000
"""

import argparse
import os
import statistics
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import torch
from machine import machine
from rounds import ratio
from transformers import TrainerCallback

import tercet
from tercet.data.readers import DataConfig, read_lessons
from tercet.data.sample import pairs
from tercet.models.sources import find_folder
from tercet.records import Lesson
from tercet.training.examples import tokenise
from tercet.training.learner import Learner, material
from tercet.training.objectives import make_objective
from tercet.training.settings import BatchSettings, ObjectiveConfig, TrainSettings
from tercet.training.trainer import SteadyTrainer

PEER, OURS = "sentence-transformers", "tercet"
SKIPPED = 5


class StepTimer(TrainerCallback):
    """Seconds and steps between the first few steps and the last."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._start = self._end = 0.0
        self._steps = 0

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == SKIPPED:
            self._start = self._now()
        if state.global_step == state.max_steps:
            self._end, self._steps = self._now(), state.global_step - SKIPPED

    def steps_per_second(self) -> float:
        return self._steps / (self._end - self._start)

    def _now(self) -> float:
        if self._device == "cuda":
            torch.cuda.synchronize()
        return perf_counter()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="bi", help="bi, or a folder")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--batches", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--examples", type=int, default=960)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    if options.device == "cpu":
        torch.set_num_threads(options.threads)
    source, lessons = some_lessons(options.examples)
    print(
        machine() if options.device == "cpu" else f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    )
    precision = "bf16" if options.bf16 else "fp32"
    print(
        f"{len(lessons)} pairs from {source}, {precision}, cosine regression, {options.rounds} rounds, "
        "interleaved\n"
    )
    print(f"| batch | {PEER}, examples/s | {OURS} | ratio (spread) |")
    print("|---:|---:|---:|---:|")
    for batch in options.batches:
        rates: dict[str, list[float]] = {PEER: [], OURS: []}
        contestants = {PEER: peer_rate, OURS: our_rate}
        for _ in range(options.rounds):
            for name, contestant in contestants.items():
                with TemporaryDirectory() as folder:
                    steps = contestant(options, lessons, batch=batch, folder=Path(folder))
                rates[name].append(batch * steps)
        medians = " | ".join(f"{statistics.median(rates[name]):.0f}" for name in rates)
        print(f"| {batch} | {medians} | {ratio(rates[OURS], rates[PEER])} |", flush=True)


def some_lessons(count: int) -> tuple[str, list[Lesson]]:
    """Where they come from, and pairs with scores from 0 to 5."""
    folder = os.environ.get("TERCET_DATA")
    if folder:
        config = DataConfig(
            files=("stsb/train.jsonl.gz",), columns={"context": "text_a", "candidate": "text_b"}
        )
        source, found = "STSb", list(read_lessons(config, root=Path(folder)))
    else:
        source = "tercet's sample data"
        found = [Lesson(pair.context, (pair.candidate,), (pair.score,)) for pair in pairs("en")]
    return source, (found * (count // len(found) + 1))[:count]


def our_rate(options: argparse.Namespace, lessons: list[Lesson], *, batch: int, folder: Path) -> float:
    scorer = tercet.load(options.model, device=options.device)
    objective = make_objective(ObjectiveConfig(kind="cosine", highest=5), scorer)
    examples = tokenise(scorer, lessons)
    learner = Learner(scorer, objective)
    timer = StepTimer(options.device)
    batching = BatchSettings(examples=batch)
    trainer = SteadyTrainer(
        learner,
        TrainSettings(learning_rate=2e-5, bf16=options.bf16, looks_per_epoch=1),
        material(learner, batching, train=examples, dev=examples[:batch]),
        folder=folder,
        callbacks=[timer],
    )
    trainer.train()
    return timer.steps_per_second()


def peer_rate(options: argparse.Namespace, lessons: list[Lesson], *, batch: int, folder: Path) -> float:
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
    from sentence_transformers import SentenceTransformerTrainingArguments as Arguments
    from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss

    model = SentenceTransformer(str(find_folder(options.model)), device=options.device)
    timer = StepTimer(options.device)
    rows = {
        "sentence1": [lesson.context for lesson in lessons],
        "sentence2": [lesson.candidates[0] for lesson in lessons],
        "score": [lesson.targets[0] / 5 for lesson in lessons],
    }
    arguments = Arguments(
        output_dir=str(folder),
        num_train_epochs=1,
        per_device_train_batch_size=batch,
        learning_rate=2e-5,
        warmup_steps=0.1,
        bf16=options.bf16,
        use_cpu=options.device == "cpu",
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
        dataloader_drop_last=True,
    )
    trainer = SentenceTransformerTrainer(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_dict(rows),
        loss=CosineSimilarityLoss(model),
        callbacks=[timer],
    )
    trainer.train()
    return timer.steps_per_second()


if __name__ == "__main__":
    main()
