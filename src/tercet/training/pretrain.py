"""Pre-training: a masked LM that also tells which text follows which, from text or dialogues alone.

The run's folder is like that of a training; its ``model`` is a Hugging Face folder, which loads as a backbone
and, with its head, as a masked LM.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from torch.utils.data import Dataset

from tercet.data.overlap import without_overlap
from tercet.data.readers import DataConfig, all_lessons
from tercet.errors import InputError
from tercet.files import new_folder, read_toml
from tercet.inputs import check_count, check_flag, check_seed
from tercet.models.encoder import Encoder, quietly
from tercet.models.sources import find_folder
from tercet.models.tokenizer import Tokenizer, fitting_tokenizer
from tercet.records import Lesson, as_text
from tercet.runtime.precision import pick_device
from tercet.training.batches import LengthBatches
from tercet.training.examples import Example, packed
from tercet.training.gather import local_device
from tercet.training.learner import Material, look_batches
from tercet.training.lesson_sets import hold_out
from tercet.training.masked_lm import (
    TASKS,
    MaskedLanguageModel,
    Task,
    body_of,
    new_masked_lm,
    read_masked_lm,
)
from tercet.training.recipe import change_setting, check_keys, data_of, settings_of, table_of
from tercet.training.run_folder import RunFolder, Teller
from tercet.training.settings import BatchSettings, TrainSettings
from tercet.training.trainer import SteadyTrainer, run_trainer
from tercet.training.vocabulary import make_tokenizer

LOOKED_AT_ONCE = 256
SPECIAL = 3
"""Tokens around and between two texts."""

SMALLEST_VOCABULARY = 100


@dataclass(frozen=True, kw_only=True)
class PretrainConfig:
    """The transformer that is pre-trained."""

    source: str = ""
    """Weights to go on from: ``bi``, a folder, a hub id; nothing to begin with a new BERT."""
    vocabulary: int = 8000
    """Of a new one: how many word pieces, made from the training text."""
    lowercase: bool = True
    """Of a new one: whether it sees small letters only."""
    width: int = 256
    """Of a new one."""
    layers: int = 4
    """Of a new one."""
    heads: int = 4
    """Of a new one."""
    max_tokens: int = 128
    """Where a pair of texts is cut."""
    mask_share: float = 0.15
    """How many of the tokens are hidden."""
    seed: int = 0
    """Of the weights that are not there."""

    def __post_init__(self) -> None:
        for name in ("vocabulary", "width", "layers", "heads", "max_tokens"):
            check_count(name, getattr(self, name))
        if self.vocabulary < SMALLEST_VOCABULARY:
            raise InputError(f"vocabulary must be at least {SMALLEST_VOCABULARY}, got {self.vocabulary}")
        check_flag("lowercase", self.lowercase)
        check_seed(self.seed)
        if self.width % self.heads:
            raise InputError(f"width must be a multiple of heads, got {self.width} and {self.heads}")
        if not 0 < self.mask_share < 1:
            raise InputError(f"mask_share must be between 0 and 1, got {self.mask_share}")


@dataclass(frozen=True, kw_only=True)
class PretrainRecipe:
    """Everything that decides what comes out of a pre-training."""

    model: PretrainConfig
    train: DataConfig
    dev: DataConfig | None
    batches: BatchSettings
    training: TrainSettings
    about: str = ""


class Alternating:
    """Batches of both tasks in turn; an example has one task in one epoch and the other in the next."""

    def __init__(self, batches: LengthBatches) -> None:
        self._batches = batches

    @property
    def sampler(self) -> LengthBatches:
        """What is told the epoch."""
        return self._batches

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[list[tuple[Task, int]]]:
        for place, batch in enumerate(self._batches):
            task = TASKS[(place + self._batches.epoch) % 2]
            yield [(task, position) for position in batch]


class TaskExamples(Dataset[tuple[Task, Example]]):
    """Examples, each with the task it is asked for."""

    def __init__(self, examples: Sequence[Example]) -> None:
        self._examples = examples

    def __len__(self) -> int:
        return len(self._examples)

    def __getitem__(self, key: tuple[Task, int]) -> tuple[Task, Example]:
        task, position = key
        return task, self._examples[position]


def read_pretrain_recipe(path: Path, changes: Sequence[str] = ()) -> PretrainRecipe:
    """The recipe in a TOML file, with some settings changed."""
    table = read_toml(path)
    for change in changes:
        change_setting(table, change)
    check_keys(table, ("about", "model", "data", "batches", "training"), str(path))
    data = table_of(table, "data", str(path))
    check_keys(data, ("train", "dev"), f"{path}, [data]")
    if "train" not in data:
        raise InputError(f"{path} names no text: add a table [data.train] with files = ...")
    sets = {name: data_of(data[name], f"{path}, [data.{name}]") for name in data}
    return PretrainRecipe(
        about=str(table.get("about", "")),
        model=settings_of(PretrainConfig, table_of(table, "model", str(path)), f"{path}, [model]"),
        train=sets["train"],
        dev=sets.get("dev"),
        batches=settings_of(BatchSettings, table_of(table, "batches", str(path)), f"{path}, [batches]"),
        training=settings_of(TrainSettings, table_of(table, "training", str(path)), f"{path}, [training]"),
    )


def run_pretraining(
    recipe: PretrainRecipe,
    path: Path,
    *,
    root: Path | None = None,
    resume: bool = False,
    device: str | None = None,
    teller: Teller | None = None,
) -> dict[str, Any]:
    """Pre-train what a recipe says; gives what ``result.json`` holds.

    Args:
        path: a new folder, or with ``resume`` one that was begun.
        root: the folder that data sets lie under.
        resume: go on after the last checkpoint; without one, from the beginning.
    """
    teller = teller or Teller()
    folder = RunFolder(path)
    with folder.open(asdict(recipe), resume=resume):
        if folder.is_finished:
            return folder.result()
        teller.say("reading data")
        train, dev = _lessons(recipe, root)
        model = make_model(recipe.model, train).to(pick_device(device or local_device()))
        examples, looked_at = (_tokenised(model.tokenizer, lessons) for lessons in (train, dev))
        cuts = {"train": _cut(examples, model.tokenizer), "dev": _cut(looked_at, model.tokenizer)}
        folder.remember({"train": train, "dev": dev}, cuts)
        teller.say(f"pre-training on {len(examples):,} pairs of texts")
        trainer = SteadyTrainer(
            model,
            recipe.training,
            _material(recipe.batches, examples, looked_at),
            folder=folder.checkpoints,
            callbacks=folder.callbacks(teller),
        )
        log = run_trainer(trainer, folder.checkpoints, resume=resume)
        best = min((row for row in log if "eval_loss" in row), key=lambda row: row["eval_loss"])
        result = {
            "train": {"lessons": len(train), "steps": log[-1]["step"]},
            "dev": {"lessons": len(dev), "loss": best["eval_loss"]},
        }
        return folder.finish(result, partial(save_model, model))


def make_model(config: PretrainConfig, lessons: Sequence[Lesson]) -> MaskedLanguageModel:
    """The transformer with its head: read from a folder, or new, with a vocabulary from the lessons."""
    if config.source:
        source = find_folder(config.source)
        transformer = read_masked_lm(source, seed=config.seed)
        tokenizer = fitting_tokenizer(source, Encoder(body_of(transformer)), max_tokens=config.max_tokens)
    else:
        pretrained = make_tokenizer(
            _texts(lessons),
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
    """A Hugging Face folder: the transformer, its masked-LM head and its tokenizer."""
    with new_folder(path) as folder, quietly():
        model.transformer.save_pretrained(folder)
        model.tokenizer.pretrained.save_pretrained(folder)


def _material(batching: BatchSettings, examples: Sequence[Example], looked_at: Sequence[Example]) -> Material:
    return Material(
        data=TaskExamples(examples),
        batches=Alternating(LengthBatches(examples, batching, distinct_answers=False)),
        collate=_collated,
        dev=[
            {"task": task, "examples": [looked_at[place] for place in batch]}
            for task in TASKS
            for batch in look_batches(looked_at, min(batching.examples, LOOKED_AT_ONCE))
        ],
    )


def _lessons(recipe: PretrainRecipe, root: Path | None) -> tuple[Sequence[Lesson], Sequence[Lesson]]:
    train = all_lessons(recipe.train, root=root)
    if recipe.dev is None:
        return hold_out(train, seed=recipe.training.seed)
    dev = all_lessons(recipe.dev, root=root)
    return without_overlap(train, dev, name="dev", drop=recipe.train.drop_overlap), dev


def _cut(examples: Sequence[Example], tokenizer: Tokenizer) -> dict[str, float]:
    """The share of pairs that do not fit whole."""
    cut = sum(1 for example in examples if example.tokens + SPECIAL > tokenizer.max_tokens)
    return {"pairs": cut / len(examples)}


def _tokenised(tokenizer: Tokenizer, lessons: Sequence[Lesson]) -> list[Example]:
    left = tokenizer.bare_ids([as_text(lesson.context) for lesson in lessons])
    right = tokenizer.bare_ids([lesson.candidates[0] for lesson in lessons])
    room = tokenizer.max_tokens
    return [
        Example(packed(context[-room:]), (packed(candidate[:room]),), (), lesson.where)
        for context, candidate, lesson in zip(left, right, lessons, strict=True)
    ]


def _collated(items: list[tuple[Task, Example]]) -> dict[str, Any]:
    return {"task": items[0][0], "examples": [example for _, example in items]}


def _texts(lessons: Sequence[Lesson]) -> Iterator[str]:
    """The newest turn of each context, whose others are contexts of their own, and what follows it."""
    for lesson in lessons:
        turns = (lesson.context,) if isinstance(lesson.context, str) else lesson.context
        yield turns[-1]
        yield lesson.candidates[0]
