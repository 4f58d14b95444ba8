"""Pre-training of a backbone on text or dialogues: masked language modelling and next-text prediction.

The run's folder is like that of a training. Its ``model`` is a Hugging Face folder, which loads as a backbone
and, with its head, as a masked language model.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from torch.utils.data import Dataset

from tercet.data.overlap import without_overlap
from tercet.data.readers import read_examples
from tercet.encoders.encoder import Encoder
from tercet.encoders.precision import pick_device
from tercet.files.atomic import new_folder
from tercet.formats.sources import resolve_model
from tercet.formats.tokenizer import tokenizer_for
from tercet.formats.transformer import silence_transformers
from tercet.records import Example, as_text
from tercet.settings.pretrain import PretrainConfig, PretrainRecipe
from tercet.settings.training import BatchConfig
from tercet.text.tokenizer import Tokenizer
from tercet.training.batches import LengthBatches
from tercet.training.distributed import cpu_threads, local_device
from tercet.training.learner import TrainingData, eval_batches
from tercet.training.masked_lm import (
    TASKS,
    MaskedLanguageModel,
    Task,
    body_of,
    new_masked_lm,
    read_masked_lm,
)
from tercet.training.reporter import Reporter
from tercet.training.run_folder import RunFolder
from tercet.training.splits import hold_out
from tercet.training.tokenized import TokenizedExample, compact
from tercet.training.trainer import ScorerTrainer, run_trainer
from tercet.training.vocabulary import make_tokenizer

MAX_EVAL_BATCH = 256
SPECIAL_TOKENS = 3
"""Special tokens of a pair."""


class Alternating:
    """Batches of both tasks in turn; an example has one task in one epoch and the other in the next."""

    def __init__(self, batches: LengthBatches) -> None:
        self._batches = batches

    @property
    def sampler(self) -> LengthBatches:
        """The object whose ``set_epoch`` accelerate calls."""
        return self._batches

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[list[tuple[Task, int]]]:
        for number, batch in enumerate(self._batches):
            task = TASKS[(number + self._batches.epoch) % 2]
            yield [(task, position) for position in batch]


class TaskDataset(Dataset[tuple[Task, TokenizedExample]]):
    """Examples, each with the task that is requested."""

    def __init__(self, examples: Sequence[TokenizedExample]) -> None:
        self._examples = examples

    def __len__(self) -> int:
        return len(self._examples)

    def __getitem__(self, key: tuple[Task, int]) -> tuple[Task, TokenizedExample]:
        task, position = key
        return task, self._examples[position]


def run_pretraining(
    recipe: PretrainRecipe,
    path: Path,
    *,
    root: Path | None = None,
    resume: bool = False,
    device: str | None = None,
    reporter: Reporter | None = None,
) -> dict[str, Any]:
    """Pre-train the model of a recipe and return the contents of ``result.json``.

    Args:
        path: a new folder, or with ``resume`` one of an interrupted run.
        root: the folder of the data sets.
        resume: continue from the last checkpoint, or from the start if there is none.
    """
    reporter = reporter or Reporter()
    folder = RunFolder(path)
    with folder.open(asdict(recipe), resume=resume):
        if folder.is_finished:
            return folder.result()
        reporter.report("reading data")
        train, dev = _read_splits(recipe, root)
        model = make_model(recipe.model, train).to(pick_device(device or local_device()))
        train_tokens, dev_tokens = (_tokenize(model.tokenizer, part) for part in (train, dev))
        shares = {
            "train": _truncated_share(train_tokens, model.tokenizer),
            "dev": _truncated_share(dev_tokens, model.tokenizer),
        }
        threads = cpu_threads(next(model.parameters()).device)
        folder.record_data({"train": train, "dev": dev}, shares, threads=threads)
        reporter.report(f"pre-training on {len(train):,} pairs of texts")
        trainer = ScorerTrainer(
            model,
            recipe.training,
            _training_data(recipe.batches, train_tokens, dev_tokens),
            folder=folder.checkpoints,
            callbacks=folder.callbacks(reporter),
        )
        log = run_trainer(trainer, folder.checkpoints, resume=resume)
        best = min((row for row in log if "eval_loss" in row), key=lambda row: row["eval_loss"])
        result = {
            "train": {"examples": len(train), "steps": log[-1]["step"]},
            "dev": {"examples": len(dev), "loss": best["eval_loss"]},
        }
        return folder.finish(result, partial(save_model, model))


def make_model(config: PretrainConfig, examples: Sequence[Example]) -> MaskedLanguageModel:
    """The transformer with its head: from a folder, or new, with a vocabulary learnt from the examples."""
    if config.source:
        source = resolve_model(config.source)
        transformer = read_masked_lm(source, seed=config.seed)
        tokenizer = tokenizer_for(source, Encoder(body_of(transformer)), max_tokens=config.max_tokens)
    else:
        pretrained = make_tokenizer(
            _texts(examples),
            size=config.vocabulary,
            lowercase=config.lowercase,
            max_tokens=config.max_tokens,
        )
        tokenizer = Tokenizer(pretrained, max_tokens=config.max_tokens)
        transformer = new_masked_lm(
            vocabulary=len(pretrained),
            width=config.width,
            layers=config.layers,
            heads=config.heads,
            positions=config.max_tokens,
            padding=int(pretrained.pad_token_id),
            seed=config.seed,
        )
    return MaskedLanguageModel(transformer, tokenizer, mask_share=config.mask_share, seed=config.seed)


def save_model(model: MaskedLanguageModel, path: Path) -> None:
    """Write a Hugging Face folder with the transformer, its masked-LM head and its tokenizer."""
    with new_folder(path) as folder, silence_transformers():
        model.transformer.save_pretrained(folder)
        model.tokenizer.pretrained.save_pretrained(folder)


def _training_data(
    config: BatchConfig, train: Sequence[TokenizedExample], dev: Sequence[TokenizedExample]
) -> TrainingData:
    return TrainingData(
        data=TaskDataset(train),
        batches=Alternating(LengthBatches(train, config, distinct_answers=False)),
        collate=_collate,
        dev=[
            {"task": task, "examples": [dev[position] for position in batch]}
            for task in TASKS
            for batch in eval_batches(dev, min(config.batch_size, MAX_EVAL_BATCH))
        ],
    )


def _read_splits(recipe: PretrainRecipe, root: Path | None) -> tuple[Sequence[Example], Sequence[Example]]:
    train = read_examples(recipe.train, root=root)
    if recipe.dev is None:
        return hold_out(train, seed=recipe.training.seed)
    dev = read_examples(recipe.dev, root=root)
    return without_overlap(train, dev, name="dev", drop=recipe.train.drop_overlap), dev


def _truncated_share(examples: Sequence[TokenizedExample], tokenizer: Tokenizer) -> dict[str, float]:
    """The share of pairs that are truncated."""
    truncated = sum(1 for example in examples if example.tokens + SPECIAL_TOKENS > tokenizer.max_tokens)
    return {"pairs": truncated / len(examples)}


def _tokenize(tokenizer: Tokenizer, examples: Sequence[Example]) -> list[TokenizedExample]:
    left = tokenizer.bare_ids([as_text(example.context) for example in examples])
    right = tokenizer.bare_ids([example.candidates[0] for example in examples])
    room = tokenizer.max_tokens
    return [
        TokenizedExample(compact(context[-room:]), (compact(candidate[:room]),), (), example.location)
        for context, candidate, example in zip(left, right, examples, strict=True)
    ]


def _collate(items: list[tuple[Task, TokenizedExample]]) -> dict[str, Any]:
    return {"task": items[0][0], "examples": [example for _, example in items]}


def _texts(examples: Sequence[Example]) -> Iterator[str]:
    """The newest turn of each context and the text that follows it; earlier turns have their own examples."""
    for example in examples:
        turns = (example.context,) if isinstance(example.context, str) else example.context
        yield turns[-1]
        yield example.candidates[0]
