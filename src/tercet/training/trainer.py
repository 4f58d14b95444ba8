"""Training with ``transformers.Trainer``: the batches, schedules, checks and files are ours."""

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
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
from tercet.files.atomic import writing
from tercet.formats.transformer import check_tensors, silence_transformers
from tercet.scorers.kinds import AnyScorer
from tercet.settings.training import BatchConfig, TrainingConfig
from tercet.training.callbacks import StopOnInterrupt, tensorboard
from tercet.training.chance import WarnAtChance
from tercet.training.checkpoints import MIN_KEPT, STATE, WEIGHTS, Checkpoints
from tercet.training.distributed import broadcast_metrics, is_first_process, wait_for_all
from tercet.training.learner import Learner, TrainingData, make_training_data
from tercet.training.objectives import Objective
from tercet.training.optimizers import (
    WarmPlateau,
    freeze,
    make_optimizer,
    make_schedule,
    rescale_last_layer,
    set_dropout,
)
from tercet.training.targets import Targets
from tercet.training.tokenized import TokenizedExample

Measure: TypeAlias = Callable[[], dict[str, float]]
"""Metrics of an evaluation in addition to the loss."""

LOSS = "eval_loss"
LOSSES_PER_CHECK = 16
"""On a GPU, losses are checked for NaN in groups, because each check waits for the device."""


class ScorerTrainer(Trainer):
    """transformers' trainer, which stops if a loss is not finite and writes only complete checkpoints."""

    def __init__(
        self,
        learner: Any,
        config: TrainingConfig,
        data: TrainingData,
        *,
        folder: Path,
        measure: Measure | None = None,
        callbacks: Sequence[TrainerCallback] = (),
    ) -> None:
        self.learner = learner
        self.config = config
        self.data = data
        self.measure = measure
        self.checkpoints = Checkpoints(folder)
        self._unchecked: list[tuple[int, dict[str, Any], Tensor]] = []
        if not len(data.batches):
            raise InputError("the training data does not fill one batch: add examples, or lower batch_size")
        if not data.dev:
            raise InputError("the dev data does not fill one batch: add examples, or lower batch_size")
        if config.fp16 and _is_on_cpu(learner):
            raise InputError("training.fp16 needs a GPU: on a CPU use bf16, or neither")
        steps = ceil(len(data.batches) / config.gradient_accumulation_steps)
        used = [*callbacks]
        if config.patience is not None:
            used.append(EarlyStoppingCallback(config.patience))
        if config.tensorboard and is_first_process():
            used.append(tensorboard(folder))
        super().__init__(
            model=learner,
            args=_arguments(config, folder, steps=steps, on_cpu=_is_on_cpu(learner)),
            train_dataset=data.data,
            eval_dataset=data.data,  # required by the trainer; `evaluate` uses data.dev
            callbacks=used,
        )
        self.remove_callback(PrinterCallback)  # a library does not print

    def get_train_dataloader(self) -> DataLoader[Any]:
        """The training batches of this process."""
        batches: Any = self.data.batches
        loader = DataLoader(self.data.data, batch_sampler=batches, collate_fn=self.data.collate)
        prepared: DataLoader[Any] = self.accelerator.prepare(loader)
        return prepared

    def create_optimizer(self, model: nn.Module | None = None) -> optim.Optimizer:
        """The configured optimizer."""
        self.optimizer = make_optimizer(self.learner, self.config)
        return self.optimizer

    def create_scheduler(self, num_training_steps: int, optimizer: optim.Optimizer | None = None) -> Any:
        """The configured schedule."""
        used = optimizer if optimizer is not None else self.create_optimizer()
        self.lr_scheduler = make_schedule(used, self.config, steps=num_training_steps)
        return self.lr_scheduler

    def training_step(self, model: nn.Module, inputs: dict[str, Any], *others: Any, **more: Any) -> Tensor:
        """The loss of one step."""
        loss: Tensor = super().training_step(model, inputs, *others, **more)
        self._unchecked.append((self.state.global_step + 1, inputs, loss))
        if loss.device.type == "cpu" or len(self._unchecked) >= LOSSES_PER_CHECK:
            self._check_losses()
        return loss

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """The dev loss and the other metrics."""
        self._check_losses()
        learner = self.learner.eval()
        with torch.no_grad(), self.compute_loss_context_manager():
            losses = torch.stack([learner(**batch)["loss"] for batch in self.data.dev])
        sizes = torch.tensor([len(batch["examples"]) for batch in self.data.dev], device=losses.device)
        metrics = {LOSS: float((losses * sizes).sum() / sizes.sum())}
        metrics |= {f"eval_{name}": value for name, value in (self.measure() if self.measure else {}).items()}
        metrics = broadcast_metrics(metrics)
        if isinstance(self.lr_scheduler, WarmPlateau):
            self.lr_scheduler.step_on_loss(metrics[LOSS])
        self.log(dict(metrics))
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def _check_losses(self) -> None:
        """Raise if a loss is not finite; the last checkpoint was written before."""
        unchecked, self._unchecked = self._unchecked, []
        for step, inputs, loss in unchecked:
            if not bool(torch.isfinite(loss)):
                raise TrainingError(
                    f"the loss is {float(loss)} at step {step}: lower the learning rate, or inspect the rows "
                    f"{self.learner.locations(**inputs)}; the last checkpoint is kept"
                )

    def _prepare_inputs(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """The inputs unchanged: encoders move token ids to their own device."""
        return inputs

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        """A checkpoint of finite weights, or an error and no partial checkpoint."""
        self._check_losses()
        if not all(bool(torch.isfinite(weight).all()) for weight in self._trainable().values()):
            raise TrainingError(
                f"weights became NaN or infinite by step {self.state.global_step}: lower the learning rate; "
                "the last checkpoint is kept"
            )
        step = self.state.global_step
        if is_first_process():
            self.checkpoints.discard(step)  # of an earlier attempt
        wait_for_all()
        try:
            self._write_checkpoint(model, trial, step)
        except (OSError, RuntimeError, SafetensorError, OutputError) as error:
            with suppress(OutputError):  # somebody put other files into it: it stays, unfinished
                self.checkpoints.discard(step)
            raise OutputError(
                f"cannot write a checkpoint to {self.checkpoints.folder}: {error}; free disk space and "
                "continue from the last one (resume=True, --resume)"
            ) from error

    def _write_checkpoint(self, model: nn.Module, trial: Any, step: int) -> None:
        """Write the files of all processes, then the digests, then delete old checkpoints."""
        super()._save_checkpoint(model, trial)
        wait_for_all()
        if is_first_process():
            self.checkpoints.seal(step)
            best = self.state.best_model_checkpoint
            self.checkpoints.rotate(step, keep=self.config.save_total_limit, best=best)

    def _save(self, output_dir: str | None = None, state_dict: object = None) -> None:
        """Write the trainable weights, each once, where the trainer looks for them when it resumes."""
        folder = Path(output_dir or str(self.args.output_dir))
        folder.mkdir(parents=True, exist_ok=True)
        weights = {name: weight.detach().cpu().contiguous() for name, weight in self._trainable().items()}
        save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        """Load the weights of a checkpoint, all of them and no others."""
        folder = Path(resume_from_checkpoint)
        saved = load_file(folder / WEIGHTS)
        weights = self._trainable()
        check_tensors(folder, missing=weights.keys() - saved.keys(), extra=saved.keys() - weights.keys())
        with torch.no_grad():
            for name, weight in weights.items():
                weight.copy_(saved[name])

    def _load_best_model(self) -> None:
        """Load the weights of the best evaluation."""
        if self.state.best_model_checkpoint is not None:
            name = Path(self.state.best_model_checkpoint).name  # the folder may have been moved
            self._load_from_checkpoint(str(self.checkpoints.folder / name))

    def _trainable(self) -> dict[str, nn.Parameter]:
        return {name: weight for name, weight in self.learner.named_parameters() if weight.requires_grad}


def train(
    scorer: AnyScorer,
    objective: Objective[Any],
    config: TrainingConfig,
    batches: BatchConfig,
    *,
    train: Sequence[TokenizedExample],
    dev: Sequence[TokenizedExample],
    folder: Path,
    resume: bool = False,
    measure: Measure | None = None,
    callbacks: Sequence[TrainerCallback] = (),
) -> list[dict[str, float]]:
    """Train the scorer, keep its best weights, and return the log; ``folder`` receives the checkpoints."""
    if config.dropout is not None:
        set_dropout(scorer, config.dropout)
    freeze(scorer, embeddings=config.freeze_embeddings, layers=config.freeze_layers)
    if config.last_layer_std is not None:
        rescale_last_layer(scorer, std=config.last_layer_std)
    learner = Learner(scorer, objective)
    data = make_training_data(learner, batches, train=train, dev=dev)
    used = [*callbacks, *_chance_callbacks(learner, config, data)]
    trainer = ScorerTrainer(learner, config, data, folder=folder, measure=measure, callbacks=used)
    log = run_trainer(trainer, folder, resume=resume)
    scorer.eval()
    return log


def _chance_callbacks(learner: Learner, config: TrainingConfig, data: TrainingData) -> list[TrainerCallback]:
    """The callback that warns if nothing is learnt, for objectives with a loss at chance."""
    keys = next(iter(data.batches), None)
    if keys is None:
        return []
    batch = data.collate([data.data[key] for key in keys])["examples"]
    chance = learner.objective.chance_loss(learner.scorer, batch)
    if not chance:
        return []
    rate = f"training.learning_rate (now {config.learning_rate:g}) or training.epochs (now {config.epochs})"
    scale = getattr(learner.objective, "score_scale", None)
    if scale is None or learner.objective.targets is Targets.LABELS:
        return [WarnAtChance(chance, advice=f"raise {rate}, and check the labels of the data")]
    advice = f'raise objective.score_scale (now {scale:g}; 20 with model.similarity = "cosine"), {rate}'
    return [WarnAtChance(chance, advice=advice)]


def run_trainer(trainer: ScorerTrainer, folder: Path, *, resume: bool) -> list[dict[str, float]]:
    """Train to the end, from the last checkpoint if ``resume``, and return the log."""
    check_disk_space(folder, trainer.learner, checkpoints=trainer.config.save_total_limit)
    last = trainer.checkpoints.newest_whole() if resume else None
    stops = [each for each in trainer.callback_handler.callbacks if isinstance(each, StopOnInterrupt)]
    if last is not None and _stopped_early(last, trainer.config):
        trainer.state = TrainerState.load_from_json(str(last / STATE))
        trainer._load_best_model()
        return list(trainer.state.log_history)
    try:
        with silence_transformers():
            trainer.train(resume_from_checkpoint=None if last is None else str(last))
    finally:
        for stop in stops:
            stop.finish()
    return list(trainer.state.log_history)


def check_disk_space(folder: Path, learner: nn.Module, *, checkpoints: int) -> None:
    """Raise if the disk has no room for the checkpoints, each with weights and the optimizer's two moments.

    Besides the newest ones, the best one and the one being written take space.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    size = sum(weight.nbytes for weight in learner.parameters() if weight.requires_grad)
    used = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    needed = 3 * size * (max(checkpoints, MIN_KEPT) + 1) - used
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OutputError(
            f"{checkpoints} checkpoints and the one being written need {needed / 1e6:,.0f} MB in {folder}, "
            f"and {free / 1e6:,.0f} MB are free: free disk space, or lower save_total_limit"
        )


def _stopped_early(checkpoint: Path, config: TrainingConfig) -> bool:
    """Whether early stopping had ended the training; transformers would continue it."""
    state = json.loads((checkpoint / STATE).read_text(encoding="utf-8"))
    kept = state.get("stateful_callbacks", {}).get("EarlyStoppingCallback", {}).get("attributes", {})
    counted = kept.get("early_stopping_patience_counter", 0)
    return config.patience is not None and counted >= config.patience


def _arguments(config: TrainingConfig, folder: Path, *, steps: int, on_cpu: bool) -> TrainingArguments:
    """The settings as transformers takes them; every evaluation writes a checkpoint."""
    every = max(1, ceil(steps / config.evals_per_epoch))
    arguments = TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=config.epochs,
        gradient_accumulation_steps=config.gradient_accumulation_steps,
        max_grad_norm=config.max_grad_norm,
        bf16=config.bf16,
        fp16=config.fp16,
        seed=config.seed,
        use_cpu=on_cpu,
        logging_steps=max(1, every // 10),
        logging_nan_inf_filter=False,
        eval_strategy="steps",
        eval_steps=every,
        save_strategy="steps",
        save_steps=every,
        save_total_limit=None,  # `Checkpoints` deletes them: only its own, and no links
        load_best_model_at_end=True,
        metric_for_best_model=f"eval_{config.metric_for_best_model}",
        greater_is_better=config.metric_for_best_model != "loss",
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
