"""Training, by ``transformers.Trainer``: ours are the batches, the objective, the schedule and the files."""

from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path
from typing import Any, TypeAlias

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, Dataset
from transformers import (
    EarlyStoppingCallback,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from tercet.errors import InputError, TrainingError
from tercet.models.encoder import check_tensors
from tercet.models.load import AnyScorer
from tercet.training.batches import LengthBatches
from tercet.training.examples import Example
from tercet.training.objectives import CrossObjective, DualObjective
from tercet.training.optimisers import WarmPlateau, freeze, make_optimiser, make_schedule
from tercet.training.settings import BatchSettings, TrainSettings

Measure: TypeAlias = Callable[[], dict[str, float]]
"""What is measured at every look beside the loss, such as a ranking of the dev data."""

LOSS = "eval_loss"
WEIGHTS = "model.safetensors"


class Learner(nn.Module):
    """A scorer and its objective as one module, which is what a trainer moves."""

    def __init__(self, scorer: AnyScorer, objective: DualObjective | CrossObjective) -> None:
        super().__init__()
        self.scorer = scorer
        self.objective = objective

    def forward(self, examples: Sequence[Example]) -> dict[str, Tensor]:
        """The loss of a batch."""
        return {"loss": self.objective(self.scorer, examples)}


class Examples(Dataset[Example]):
    """Examples as torch wants them."""

    def __init__(self, examples: Sequence[Example]) -> None:
        self._examples = examples

    def __len__(self) -> int:
        return len(self._examples)

    def __getitem__(self, place: int) -> Example:
        return self._examples[place]


class ScorerTrainer(Trainer):
    """transformers' trainer over examples."""

    def __init__(
        self,
        learner: Learner,
        settings: TrainSettings,
        batching: BatchSettings,
        *,
        train: Sequence[Example],
        dev: Sequence[Example],
        folder: Path,
        measure: Measure | None = None,
    ) -> None:
        self.learner = learner
        self.settings = settings
        self.batching = batching
        self.measure = measure
        self._train, self._dev = train, dev
        self._batches = LengthBatches(train, batching, distinct_answers=learner.objective.distinct_answers)
        if not len(self._batches):
            raise InputError("there is not one full batch to learn from: give more examples")
        freeze(learner.scorer, embeddings=settings.freeze_embeddings, layers=settings.freeze_layers)
        steps = ceil(len(self._batches) / settings.accumulation)
        stops: list[TrainerCallback] = []
        if settings.patience is not None:
            stops.append(EarlyStoppingCallback(settings.patience))
        super().__init__(
            model=learner,
            args=_arguments(settings, batching, folder, steps=steps, on_cpu=_is_on_cpu(learner)),
            train_dataset=Examples(train),
            eval_dataset=Examples(dev),
            callbacks=stops,
        )
        self.remove_callback(PrinterCallback)  # a library does not print

    def get_train_dataloader(self) -> DataLoader[Example]:
        """Our batches, each process's share of them."""
        loader = DataLoader(Examples(self._train), batch_sampler=self._batches, collate_fn=_collated)
        prepared: DataLoader[Example] = self.accelerator.prepare(loader)
        return prepared

    def create_optimizer(self, model: nn.Module | None = None) -> optim.Optimizer:
        """The optimiser that the settings name."""
        self.optimizer = make_optimiser(self.learner, self.settings)
        return self.optimizer

    def create_scheduler(self, num_training_steps: int, optimizer: optim.Optimizer | None = None) -> Any:
        """The schedule that the settings name."""
        moved = optimizer if optimizer is not None else self.create_optimizer()
        self.lr_scheduler = make_schedule(moved, self.settings, steps=num_training_steps)
        return self.lr_scheduler

    def training_step(self, model: nn.Module, inputs: dict[str, Any], *others: Any, **more: Any) -> Tensor:
        """One step's loss; a loss that is no number ends the training, and the last checkpoint stays."""
        loss: Tensor = super().training_step(model, inputs, *others, **more)
        if not bool(torch.isfinite(loss)):
            raise TrainingError(
                f"the loss is {float(loss)} at step {self.state.global_step + 1}: lower the learning rate, "
                f"or look at the examples {self._positions(inputs['examples'])}; the last checkpoint is kept"
            )
        return loss

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """The loss on the dev data, and what is measured beside it."""
        learner = self.learner.eval()
        batches = LengthBatches(self._dev, self.batching, distinct_answers=learner.objective.distinct_answers)
        with torch.no_grad():
            losses = [float(learner([self._dev[place] for place in batch])["loss"]) for batch in batches]
        found = {LOSS: sum(losses) / len(losses)}
        found |= {f"eval_{name}": value for name, value in (self.measure() if self.measure else {}).items()}
        if isinstance(self.lr_scheduler, WarmPlateau):
            self.lr_scheduler.look(found[LOSS])
        self.log(dict(found))
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, found)
        return found

    def _prepare_inputs(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """As they are: an encoder puts token ids onto its own device."""
        return inputs

    def _save(self, output_dir: str | None = None, state_dict: object = None) -> None:
        """The weights, each once, where the trainer looks for them when it resumes."""
        folder = Path(output_dir or str(self.args.output_dir))
        folder.mkdir(parents=True, exist_ok=True)
        weights = {
            name: weight.detach().cpu().contiguous() for name, weight in self.learner.named_parameters()
        }
        save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        """The weights of a checkpoint, all of them and no others."""
        folder = Path(resume_from_checkpoint)
        saved = load_file(folder / WEIGHTS)
        here = dict(self.learner.named_parameters())
        check_tensors(folder, missing=here.keys() - saved.keys(), extra=saved.keys() - here.keys())
        with torch.no_grad():
            for name, weight in here.items():
                weight.copy_(saved[name])

    def _load_best_model(self) -> None:
        """The weights of the best look."""
        if self.state.best_model_checkpoint is not None:
            self._load_from_checkpoint(self.state.best_model_checkpoint)

    def _positions(self, examples: Sequence[Example]) -> list[int]:
        """Where the examples of a batch stand in the training data."""
        wanted = {id(example) for example in examples}
        return [place for place, example in enumerate(self._train) if id(example) in wanted]


def train(
    scorer: AnyScorer,
    objective: DualObjective | CrossObjective,
    settings: TrainSettings,
    batching: BatchSettings,
    *,
    train: Sequence[Example],
    dev: Sequence[Example],
    folder: Path,
    resume: bool = False,
    measure: Measure | None = None,
) -> list[dict[str, float]]:
    """Move the scorer's weights to the best look; gives what was logged. ``folder`` keeps the checkpoints."""
    trainer = ScorerTrainer(
        Learner(scorer, objective), settings, batching, train=train, dev=dev, folder=folder, measure=measure
    )
    last = last_checkpoint(folder) if resume else None
    trainer.train(resume_from_checkpoint=None if last is None else str(last))
    scorer.eval()
    return list(trainer.state.log_history)


def last_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint that was written to its end."""
    whole = [path.parent for path in folder.glob("checkpoint-*/trainer_state.json")]
    return max(whole, key=lambda path: int(path.name.rsplit("-", maxsplit=1)[-1]), default=None)


def _arguments(
    settings: TrainSettings, batching: BatchSettings, folder: Path, *, steps: int, on_cpu: bool
) -> TrainingArguments:
    """The settings in transformers' words; a look and a checkpoint come together."""
    every = max(1, ceil(steps / settings.looks_per_epoch))
    return TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=batching.examples,
        gradient_accumulation_steps=settings.accumulation,
        max_grad_norm=settings.clip,
        bf16=settings.bf16,
        seed=settings.seed,
        use_cpu=on_cpu,
        logging_steps=max(1, every // 10),
        logging_nan_inf_filter=False,
        eval_strategy="steps",
        eval_steps=every,
        save_strategy="steps",
        save_steps=every,
        save_total_limit=settings.checkpoints,
        load_best_model_at_end=True,
        metric_for_best_model=LOSS,
        greater_is_better=False,
        remove_unused_columns=False,
        report_to=[],
        disable_tqdm=True,
    )


def _is_on_cpu(module: nn.Module) -> bool:
    return next(module.parameters()).device.type == "cpu"


def _collated(examples: list[Example]) -> dict[str, list[Example]]:
    return {"examples": examples}
