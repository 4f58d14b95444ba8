"""Training throughput in examples per second, compared with the trainer of sentence-transformers.

Both train the same bi-encoder on the same data for one epoch, with the same batch size and precision, in
interleaved rounds. Only the time between the first steps and the last one counts, without loading and
tokenization.

make bench                                                        # on a CPU, with the sample data
TERCET_DATA=FOLDER python benchmarks/train_speed.py --device cuda --bf16 --examples 20000
"""

import argparse
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import torch
from machine import machine
from transformers import TrainerCallback

import tercet
from tercet.data.readers import iter_examples
from tercet.data.sample import pairs
from tercet.evaluate.bench.rounds import Times, ratio
from tercet.formats.sources import resolve_model
from tercet.records import Example
from tercet.settings.data import DataConfig
from tercet.settings.training import BatchConfig, ObjectiveConfig, TrainingConfig
from tercet.training.learner import Learner, make_training_data
from tercet.training.objectives import make_objective
from tercet.training.tokenized import tokenize
from tercet.training.trainer import ScorerTrainer

PEER, OURS = "sentence-transformers", "tercet"
SKIPPED_STEPS = 5
"""The first steps are slower and are not counted."""


class StepTimer(TrainerCallback):
    """Seconds per step, without the first steps."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._start = self._end = 0.0
        self._steps = 0

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Read the clock."""
        if state.global_step == SKIPPED_STEPS:
            self._start = self._now()
        if state.global_step == state.max_steps:
            self._end, self._steps = self._now(), state.global_step - SKIPPED_STEPS

    def seconds_per_step(self) -> float:
        """The mean of the counted steps."""
        return (self._end - self._start) / self._steps

    def _now(self) -> float:
        if self._device == "cuda":
            torch.cuda.synchronize()
        return perf_counter()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="bi", help="bi, or a folder")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--bf16", action="store_true", help="mixed precision")
    parser.add_argument("--batches", type=int, nargs="+", default=[16, 64], help="batch sizes")
    parser.add_argument("--examples", type=int, default=960, help="training examples")
    parser.add_argument("--rounds", type=int, default=5, help="rounds per batch size")
    parser.add_argument("--threads", type=int, default=2, help="threads on a CPU")
    options = parser.parse_args()
    if options.device == "cpu":
        torch.set_num_threads(options.threads)
    source, examples = read_pairs(options.examples)
    print(
        machine() if options.device == "cpu" else f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    )
    precision = "bf16" if options.bf16 else "fp32"
    print(
        f"{len(examples)} pairs from {source}, {precision}, objective cosine, {options.rounds} rounds, "
        "interleaved\n"
    )
    print(f"| batch | {PEER}, examples/s | {OURS} | ratio (spread) |")
    print("|---:|---:|---:|---:|")
    for size in options.batches:
        times = time_trainers(options, examples, size)
        rates = " | ".join(f"{size / each.median:.0f}" for each in times.values())
        print(f"| {size} | {rates} | {ratio(times[PEER], times[OURS]).spread} |", flush=True)


def time_trainers(options: argparse.Namespace, examples: list[Example], size: int) -> dict[str, Times]:
    """The seconds per step of both trainers, in interleaved rounds."""
    trainers = {PEER: time_peer, OURS: time_tercet}
    seconds: dict[str, list[float]] = {name: [] for name in trainers}
    for _ in range(options.rounds):
        for name, time_trainer in trainers.items():
            with TemporaryDirectory() as folder:
                seconds[name].append(time_trainer(options, examples, size=size, folder=Path(folder)))
    return {name: Times(tuple(rounds)) for name, rounds in seconds.items()}


def read_pairs(count: int) -> tuple[str, list[Example]]:
    """The name of the data set, and ``count`` pairs with scores from 0 to 5."""
    folder = os.environ.get("TERCET_DATA")
    if folder:
        config = DataConfig(
            files=("stsb/train.jsonl.gz",), columns={"context": "text_a", "candidate": "text_b"}
        )
        source, found = "STSb", list(iter_examples(config, root=Path(folder)))
    else:
        source = "tercet's sample data"
        found = [Example(pair.context, (pair.candidate,), (pair.score,)) for pair in pairs("en")]
    return source, (found * (count // len(found) + 1))[:count]


def time_tercet(options: argparse.Namespace, examples: list[Example], *, size: int, folder: Path) -> float:
    """Seconds per step of tercet."""
    scorer = tercet.load(options.model, device=options.device)
    learner = Learner(scorer, make_objective(ObjectiveConfig(kind="cosine", max_score=5), scorer))
    tokenized = tokenize(scorer, examples)
    timer = StepTimer(options.device)
    trainer = ScorerTrainer(
        learner,
        TrainingConfig(learning_rate=2e-5, bf16=options.bf16, evals_per_epoch=1),
        make_training_data(learner, BatchConfig(batch_size=size), train=tokenized, dev=tokenized[:size]),
        folder=folder,
        callbacks=[timer],
    )
    trainer.train()
    return timer.seconds_per_step()


def time_peer(options: argparse.Namespace, examples: list[Example], *, size: int, folder: Path) -> float:
    """Seconds per step of sentence-transformers."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
    from sentence_transformers import SentenceTransformerTrainingArguments as Arguments
    from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss

    model = SentenceTransformer(str(resolve_model(options.model)), device=options.device)
    timer = StepTimer(options.device)
    rows = {
        "sentence1": [example.context for example in examples],
        "sentence2": [example.candidates[0] for example in examples],
        "score": [example.targets[0] / 5 for example in examples],
    }
    arguments = Arguments(
        output_dir=str(folder),
        num_train_epochs=1,
        per_device_train_batch_size=size,
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
    return timer.seconds_per_step()


if __name__ == "__main__":
    main()
