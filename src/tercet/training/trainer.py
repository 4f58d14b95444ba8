"""Training, by ``transformers.Trainer``: ours are the batches, the schedules, the checks and the files."""

import json
import shutil
from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path
from typing import Any, TypeAlias

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader
from transformers import (
    EarlyStoppingCallback,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainerState,
    TrainingArguments,
)

from tercet.errors import InputError, OutputError, TrainingError
from tercet.files import writing
from tercet.models.encoder import check_tensors, quietly
from tercet.models.load import AnyScorer
from tercet.training.callbacks import StopOnInterrupt, tensorboard
from tercet.training.examples import Example
from tercet.training.gather import from_first, is_first_process
from tercet.training.learner import Learner, Material, material
from tercet.training.objectives import CrossObjective, DualObjective
from tercet.training.optimisers import (
    WarmPlateau,
    freeze,
    make_optimiser,
    make_schedule,
    rescale_last_layer,
    set_dropout,
)
from tercet.training.settings import BatchSettings, TrainSettings

Measure: TypeAlias = Callable[[], dict[str, float]]
"""What is measured at every look beside the loss, such as a ranking of the dev data."""

LOSS = "eval_loss"
STATE = "trainer_state.json"
WEIGHTS = "model.safetensors"
BATCHES_WATCHED = 16
"""On a GPU, whether losses are numbers is asked of so many at once: to ask is to wait for it."""


class SteadyTrainer(Trainer):
    """transformers' trainer, which stops when a loss is no number and leaves only whole checkpoints."""

    def __init__(
        self,
        learner: Any,
        settings: TrainSettings,
        material: Material,
        *,
        folder: Path,
        measure: Measure | None = None,
        callbacks: Sequence[TrainerCallback] = (),
    ) -> None:
        self.learner = learner
        self.settings = settings
        self.material = material
        self.measure = measure
        self._watched: list[tuple[int, dict[str, Any], Tensor]] = []
        if not len(material.batches):
            raise InputError(
                "there is not one full batch to learn from: give more examples, or a smaller batch"
            )
        if not material.dev:
            raise InputError("there is not one full batch of dev data: give more, or a smaller batch")
        steps = ceil(len(material.batches) / settings.accumulation)
        used = [*callbacks]
        if settings.patience is not None:
            used.append(EarlyStoppingCallback(settings.patience))
        if settings.tensorboard and is_first_process():
            used.append(tensorboard(folder))
        super().__init__(
            model=learner,
            args=_arguments(settings, folder, steps=steps, on_cpu=_is_on_cpu(learner)),
            train_dataset=material.data,
            eval_dataset=material.data,  # named, or the trainer refuses to look; `evaluate` reads its own
            callbacks=used,
        )
        self.remove_callback(PrinterCallback)  # a library does not print

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Our batches, each process's share of them."""
        batches: Any = self.material.batches
        loader = DataLoader(self.material.data, batch_sampler=batches, collate_fn=self.material.collate)
        prepared: DataLoader[Any] = self.accelerator.prepare(loader)
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
        """One step's loss."""
        loss: Tensor = super().training_step(model, inputs, *others, **more)
        self._watched.append((self.state.global_step + 1, inputs, loss))
        if loss.device.type == "cpu" or len(self._watched) >= BATCHES_WATCHED:
            self._check_losses()
        return loss

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """The loss on the dev data, and what is measured beside it."""
        self._check_losses()
        learner = self.learner.eval()
        with torch.no_grad(), self.compute_loss_context_manager():
            losses = torch.stack([learner(**batch)["loss"] for batch in self.material.dev])
        rows = torch.tensor([len(batch["examples"]) for batch in self.material.dev], device=losses.device)
        found = {LOSS: float((losses * rows).sum() / rows.sum())}
        found |= {f"eval_{name}": value for name, value in (self.measure() if self.measure else {}).items()}
        found = from_first(found)
        if isinstance(self.lr_scheduler, WarmPlateau):
            self.lr_scheduler.look(found[LOSS])
        self.log(dict(found))
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, found)
        return found

    def _check_losses(self) -> None:
        """Raise if a loss is no number; the last checkpoint was written before."""
        watched, self._watched = self._watched, []
        for step, inputs, loss in watched:
            if not bool(torch.isfinite(loss)):
                raise TrainingError(
                    f"the loss is {float(loss)} at step {step}: lower the learning rate, or look at the rows "
                    f"{self.learner.rows(**inputs)}; the last checkpoint is kept"
                )

    def _prepare_inputs(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """As they are: an encoder puts token ids onto its own device."""
        return inputs

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        """A checkpoint of weights that are numbers, or an error and no half of one."""
        self._check_losses()
        if not all(bool(torch.isfinite(weight).all()) for weight in self._moved().values()):
            raise TrainingError(
                f"weights became NaN or infinite by step {self.state.global_step}: lower the learning rate; "
                "the last checkpoint is kept"
            )
        try:
            super()._save_checkpoint(model, trial)
        except (OSError, RuntimeError, SafetensorError) as error:
            folder = Path(str(self.args.output_dir)) / f"checkpoint-{self.state.global_step}"
            shutil.rmtree(folder, ignore_errors=True)
            raise OutputError(
                f"a checkpoint could not be written to {folder.parent}: {error}; make room and go on from "
                "the last one (resume=True, --resume)"
            ) from error

    def _save(self, output_dir: str | None = None, state_dict: object = None) -> None:
        """The weights that training moves, each once, where the trainer looks for them when it resumes."""
        folder = Path(output_dir or str(self.args.output_dir))
        folder.mkdir(parents=True, exist_ok=True)
        weights = {name: weight.detach().cpu().contiguous() for name, weight in self._moved().items()}
        save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        """The weights of a checkpoint, all of them and no others."""
        folder = Path(resume_from_checkpoint)
        saved = load_file(folder / WEIGHTS)
        here = self._moved()
        check_tensors(folder, missing=here.keys() - saved.keys(), extra=saved.keys() - here.keys())
        with torch.no_grad():
            for name, weight in here.items():
                weight.copy_(saved[name])

    def _load_best_model(self) -> None:
        """The weights of the best look."""
        if self.state.best_model_checkpoint is not None:
            self._load_from_checkpoint(self.state.best_model_checkpoint)

    def _moved(self) -> dict[str, nn.Parameter]:
        """The weights that training moves."""
        return {name: weight for name, weight in self.learner.named_parameters() if weight.requires_grad}


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
    callbacks: Sequence[TrainerCallback] = (),
) -> list[dict[str, float]]:
    """Move the scorer's weights to the best look; gives what was logged. ``folder`` keeps the checkpoints."""
    if settings.dropout is not None:
        set_dropout(scorer, settings.dropout)
    frozen = freeze(scorer, embeddings=settings.freeze_embeddings, layers=settings.freeze_layers)
    if settings.freeze_layers and not frozen:
        raise InputError("freeze_layers found no layer to freeze in this architecture: set it to 0")
    if settings.last_layer_std is not None:
        rescale_last_layer(scorer, std=settings.last_layer_std)
    learner = Learner(scorer, objective)
    lessons = material(learner, batching, train=train, dev=dev)
    trainer = SteadyTrainer(learner, settings, lessons, folder=folder, measure=measure, callbacks=callbacks)
    log = run_trainer(trainer, folder, resume=resume)
    scorer.eval()
    return log


def run_trainer(trainer: SteadyTrainer, folder: Path, *, resume: bool) -> list[dict[str, float]]:
    """Train to the end, from the last checkpoint if that is wanted; gives what was logged."""
    check_room(folder, trainer.learner, checkpoints=trainer.settings.checkpoints)
    last = last_checkpoint(folder) if resume else None
    stops = [each for each in trainer.callback_handler.callbacks if isinstance(each, StopOnInterrupt)]
    if last is not None and _had_enough(last, trainer.settings):
        trainer.state = TrainerState.load_from_json(str(last / STATE))
        trainer._load_best_model()
        return list(trainer.state.log_history)
    try:
        with quietly():
            trainer.train(resume_from_checkpoint=None if last is None else str(last))
    finally:
        for stop in stops:
            stop.finish()
    return list(trainer.state.log_history)


def last_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint that was written to its end."""
    found = sorted(folder.glob("checkpoint-*"), key=lambda path: -int(path.name.rsplit("-", maxsplit=1)[-1]))
    return next((path for path in found if _is_whole(path / STATE)), None)


def check_room(folder: Path, learner: nn.Module, *, checkpoints: int) -> None:
    """Raise if the disk has no room for the checkpoints, each with weights and an optimiser's two moments.

    Beside the newest ones there are the best and the one that is being written.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    moved = sum(weight.nbytes for weight in learner.parameters() if weight.requires_grad)
    there = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    needed = 3 * moved * (max(checkpoints, 2) + 1) - there
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OutputError(
            f"{checkpoints} checkpoints and the one being written need {needed / 1e6:,.0f} MB in {folder}, "
            f"where {free / 1e6:,.0f} MB are free: make room, or keep fewer (checkpoints)"
        )


def _is_whole(state: Path) -> bool:
    try:
        return isinstance(json.loads(state.read_text(encoding="utf-8")), dict)
    except (OSError, ValueError):
        return False


def _had_enough(checkpoint: Path, settings: TrainSettings) -> bool:
    """Whether the training had been stopped for want of improvement; transformers would go on with it."""
    state = json.loads((checkpoint / STATE).read_text(encoding="utf-8"))
    kept = state.get("stateful_callbacks", {}).get("EarlyStoppingCallback", {}).get("attributes", {})
    counted = kept.get("early_stopping_patience_counter", 0)
    return settings.patience is not None and counted >= settings.patience


def _arguments(settings: TrainSettings, folder: Path, *, steps: int, on_cpu: bool) -> TrainingArguments:
    """The settings in transformers' words; a look and a checkpoint come together."""
    every = max(1, ceil(steps / settings.looks_per_epoch))
    arguments = TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=settings.epochs,
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
        metric_for_best_model=f"eval_{settings.best_by}",
        greater_is_better=settings.best_by != "loss",
        restore_callback_states_from_checkpoint=True,
        remove_unused_columns=False,
        report_to=[],
        disable_tqdm=True,
    )
    if arguments.n_gpu > 1:
        arguments._n_gpu = 1  # several GPUs are for several processes
    return arguments


def _is_on_cpu(module: nn.Module) -> bool:
    return next(module.parameters()).device.type == "cpu"
