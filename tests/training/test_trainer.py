"""Training is reproducible, resumes after a kill, and stops early."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from tests.conftest import ARCHITECTURES, PADDED_ARCHITECTURES, ROOT, SENTENCES

import tercet
from tercet.errors import InputError, ModelError, TrainingError
from tercet.records import Example
from tercet.settings.training import BatchConfig, ObjectiveConfig, TrainingConfig
from tercet.training.checkpoints import Checkpoints
from tercet.training.objectives import make_objective
from tercet.training.optimizers import (
    WarmPlateau,
    freeze,
    make_optimizer,
    make_schedule,
    rescale_last_layer,
)
from tercet.training.tokenized import tokenize
from tercet.training.trainer import train

FolderOf = Callable[[str], Path]

EXAMPLES = [Example(left, (right,)) for left in SENTENCES for right in SENTENCES if left != right]
SETTINGS = TrainingConfig(epochs=2, learning_rate=1e-3, evals_per_epoch=3)
BATCHES = BatchConfig(batch_size=4)


def make(folder: Path) -> tercet.PolyEncoder:
    return tercet.PolyEncoder.from_backbone(folder, config=tercet.PolyConfig(codes=3), device="cpu")


def learn(
    scorer: Any,
    objective: Any,
    examples: list[Example],
    folder: Path,
    settings: TrainingConfig = SETTINGS,
    batching: BatchConfig = BATCHES,
    **options: Any,
) -> list[dict[str, float]]:
    tokenized = tokenize(scorer, examples)
    data = {"train": tokenized, "dev": tokenized[:8], "folder": folder}
    return train(scorer, objective, settings, batching, **data, **options)


def run(
    backbone: Path,
    folder: Path,
    settings: TrainingConfig = SETTINGS,
    batching: BatchConfig = BATCHES,
    examples: list[Example] = EXAMPLES,
    **options: Any,
) -> tuple[tercet.PolyEncoder, list[dict[str, float]]]:
    scorer = make(backbone)
    objective = make_objective(
        ObjectiveConfig(kind="in_batch"), scorer, mini_batch_tokens=batching.mini_batch_tokens
    )
    return scorer, learn(scorer, objective, examples, folder, settings, batching, **options)


def weights_of(scorer: tercet.PolyEncoder) -> dict[str, torch.Tensor]:
    return {name: weight.detach().clone() for name, weight in scorer.named_parameters()}


def assert_same(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> None:
    assert left.keys() == right.keys()
    for name, weight in left.items():
        torch.testing.assert_close(weight, right[name], rtol=0, atol=0, msg=name)


def test_the_same_seed_yields_the_same_weights(tiny_folder: FolderOf, tmp_path: Path) -> None:
    first, second = (weights_of(run(tiny_folder("bert"), tmp_path / name)[0]) for name in ("a", "b"))
    assert_same(first, second)
    other = weights_of(run(tiny_folder("bert"), tmp_path / "c", replace(SETTINGS, seed=1))[0])
    assert any(not torch.equal(first[name], other[name]) for name in first)  # dropout differs
    other = weights_of(run(tiny_folder("bert"), tmp_path / "d", batching=replace(BATCHES, seed=1))[0])
    assert any(not torch.equal(first[name], other[name]) for name in first)  # batches differ


TRAIN_AND_DIE = """
import os, signal, sys
from pathlib import Path
from tests.training import test_trainer
from tercet.training import trainer
assert Path(trainer.__file__).is_relative_to(sys.argv[3]), trainer.__file__  # the tree, not an installed copy
ScorerTrainer = trainer.ScorerTrainer
step = ScorerTrainer.training_step
def die(self, *args, **more):
    if self.state.global_step == 7:  # between two checkpoints, in the middle of an epoch
        os.kill(os.getpid(), signal.SIGKILL)
    return step(self, *args, **more)
ScorerTrainer.training_step = die
test_trainer.run(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def test_a_killed_training_resumes_to_the_same_weights(tiny_folder: FolderOf, tmp_path: Path) -> None:
    whole, _ = run(tiny_folder("bert"), tmp_path / "whole")
    arguments = [str(each) for each in (tiny_folder("bert"), tmp_path / "killed", ROOT / "src")]
    command = [sys.executable, "-c", TRAIN_AND_DIE, *arguments]
    killed = subprocess.run(command, check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    last = Checkpoints(tmp_path / "killed").newest_whole()
    assert last is not None
    assert last.name == "checkpoint-5"
    resumed, log = run(tiny_folder("bert"), tmp_path / "killed", resume=True)
    assert min(row["step"] for row in log if "loss" in row) <= 5  # the log of the first part is kept
    assert_same(weights_of(whole), weights_of(resumed))


TRAIN_AND_PRINT = """
import sys
from hashlib import sha256
from pathlib import Path
import torch
from tests.conftest import ARCHITECTURES, PADDED_ARCHITECTURES, make_folder
from tests.training import test_trainer
torch.set_num_threads(2)
folder = Path(sys.argv[1])
model = make_folder(folder / "model", width=256)  # wide enough for torch to use both threads
scorer, _ = test_trainer.run(model, folder / "run", test_trainer.replace(test_trainer.SETTINGS, epochs=1))
weights = test_trainer.weights_of(scorer)
print(sha256(b"".join(weights[name].numpy().tobytes() for name in sorted(weights))).hexdigest())
"""


def test_two_processes_with_equally_many_threads_train_to_the_same_bits(tmp_path: Path) -> None:
    printed = set()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        command = [sys.executable, "-W", "ignore", "-c", TRAIN_AND_PRINT, str(tmp_path / name)]
        printed.add(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
    assert len(printed) == 1
    assert len(printed.pop()) == 64


@pytest.mark.parametrize("kind", ["negatives", "repeated answers"])
def test_training_resumes_in_the_middle_of_an_epoch(kind: str, tiny_folder: FolderOf, tmp_path: Path) -> None:
    repeated = [replace(each, candidates=(SENTENCES[number % 5],)) for number, each in enumerate(EXAMPLES)]
    examples = EXAMPLES if kind == "negatives" else repeated
    batching = replace(BATCHES, negatives=2) if kind == "negatives" else BATCHES
    settings = replace(SETTINGS, epochs=3, save_total_limit=50)
    _, log = run(tiny_folder("bert"), tmp_path / "whole", settings, batching, examples)
    shutil.copytree(tmp_path / "whole", tmp_path / "interrupted")
    steps = sorted(int(path.name.split("-")[1]) for path in (tmp_path / "interrupted").iterdir())
    for step in steps[5:]:
        shutil.rmtree(tmp_path / "interrupted" / f"checkpoint-{step}")
    _, resumed = run(tiny_folder("bert"), tmp_path / "interrupted", settings, batching, examples, resume=True)
    losses = [[row["eval_loss"] for row in rows if "eval_loss" in row] for rows in (log, resumed)]
    assert len(losses[0]) == len(steps) > 6
    assert losses[0] == losses[1]


def test_patience_is_counted_across_a_resume(tiny_folder: FolderOf, tmp_path: Path) -> None:
    settings = replace(
        SETTINGS, epochs=50, learning_rate=0.0, weight_decay=0.0, patience=3, save_total_limit=50
    )
    _, log = run(tiny_folder("bert"), tmp_path, settings)
    for step in sorted(int(path.name.split("-")[1]) for path in tmp_path.iterdir())[2:]:
        shutil.rmtree(tmp_path / f"checkpoint-{step}")
    _, resumed = run(tiny_folder("bert"), tmp_path, settings, resume=True)
    assert resumed[-1]["step"] == log[-1]["step"]


def test_gradient_caching_trains_to_the_same_weights(tiny_folder: FolderOf, tmp_path: Path) -> None:
    plain, cached = (
        weights_of(
            run(
                tiny_folder("bert"),
                tmp_path / str(tokens),
                batching=replace(BATCHES, mini_batch_tokens=tokens),
            )[0]
        )
        for tokens in (None, 1000)  # one mini-batch: smaller ones would draw another dropout
    )
    for name, weight in plain.items():
        torch.testing.assert_close(cached[name], weight, rtol=1e-5, atol=1e-6, msg=name)


def test_the_best_weights_are_kept(tiny_folder: FolderOf, tmp_path: Path) -> None:
    losses = iter([3.0, 1.0, 2.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    evaluated: list[dict[str, torch.Tensor]] = []
    scorer = make(tiny_folder("bert"))
    objective = make_objective(ObjectiveConfig(kind="in_batch"), scorer)

    def measure() -> dict[str, float]:
        evaluated.append(weights_of(scorer))
        return {"loss": next(losses)}  # replaces the dev loss

    learn(scorer, objective, EXAMPLES, tmp_path, measure=measure)
    assert_same(weights_of(scorer), evaluated[1])


@pytest.mark.parametrize("towers", [1, 2])
def test_a_checkpoint_with_other_weights_is_refused(
    towers: int, tiny_folder: FolderOf, tmp_path: Path
) -> None:
    scorer = tercet.BiEncoder.from_backbone(
        tiny_folder("bert"), config=tercet.BiConfig(towers=towers), device="cpu"
    )
    objective = make_objective(ObjectiveConfig(kind="softmax"), scorer)  # it has weights of its own
    examples = [replace(example, targets=(float(position % 3),)) for position, example in enumerate(EXAMPLES)]
    learn(scorer, objective, examples, tmp_path)
    for best in Checkpoints(tmp_path).all():
        (best / "model.safetensors").unlink()
        save_file({"stray": torch.zeros(1)}, best / "model.safetensors")
        Checkpoints(tmp_path).seal(int(best.name.split("-")[1]))
    with pytest.raises(ModelError, match=r"lacks weights: objective\.classifier\.weight"):
        learn(scorer, objective, examples, tmp_path, resume=True)


def test_training_stops_after_evaluations_without_improvement(tiny_folder: FolderOf, tmp_path: Path) -> None:
    settings = replace(SETTINGS, epochs=50, learning_rate=0.0, weight_decay=0.0, patience=2)
    _, log = run(tiny_folder("bert"), tmp_path, settings)
    assert sum("eval_loss" in row for row in log) == 3


def test_old_checkpoints_are_deleted(tiny_folder: FolderOf, tmp_path: Path) -> None:
    run(tiny_folder("bert"), tmp_path, replace(SETTINGS, save_total_limit=1))
    assert len(list(tmp_path.glob("checkpoint-*"))) <= 2  # the last one and the best one


def test_a_loss_that_is_not_finite_stops_training_and_names_the_rows(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    settings = replace(SETTINGS, learning_rate=1e30, max_grad_norm=0.0)
    with pytest.raises(TrainingError, match=r"the loss is nan at step \d+: .* inspect the rows"):
        run(tiny_folder("bert"), tmp_path, settings)


def test_training_needs_a_full_batch(tiny_folder: FolderOf, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the training data does not fill one batch"):
        run(tiny_folder("bert"), tmp_path, examples=[])


def test_accumulated_batches_are_one_step(tiny_folder: FolderOf, tmp_path: Path) -> None:
    _, log = run(tiny_folder("bert"), tmp_path, replace(SETTINGS, gradient_accumulation_steps=2, epochs=1))
    assert log[-1]["step"] == 7  # 13 batches


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "adamax"])
def test_every_optimizer_changes_the_weights(optimizer: str, tiny_folder: FolderOf, tmp_path: Path) -> None:
    before = weights_of(make(tiny_folder("bert")))
    settings = replace(SETTINGS, optimizer=optimizer, epochs=1)  # type: ignore[arg-type]
    after = weights_of(run(tiny_folder("bert"), tmp_path, settings)[0])
    changed = [name for name in before if not torch.equal(before[name], after[name])]
    assert "code_layer.codes" in changed
    assert len(changed) > 20


def test_frozen_weights_do_not_change(tiny_folder: FolderOf, tmp_path: Path) -> None:
    before = weights_of(make(tiny_folder("bert")))
    settings = replace(SETTINGS, freeze_layers=1, epochs=1)
    after = weights_of(run(tiny_folder("bert"), tmp_path, settings)[0])
    for name, weight in before.items():
        is_frozen = ".embeddings." in name or ".layer.0." in name or "pooler" in name
        assert torch.equal(weight, after[name]) == is_frozen, name


def test_only_the_last_layer_is_rescaled(tiny: tercet.BiEncoder) -> None:
    before = {name: weight.detach().clone() for name, weight in tiny.named_parameters()}
    rescale_last_layer(tiny, std=0.04)
    for name, weight in tiny.named_parameters():
        if ".layer.1." in name and weight.dim() > 1:
            assert float(weight.std()) == pytest.approx(0.04, rel=1e-4)
            ratio = weight / before[name]
            torch.testing.assert_close(
                ratio, torch.full_like(ratio, float(ratio.median())), rtol=1e-4, atol=0
            )
        else:
            assert torch.equal(weight, before[name]), name


def test_the_dev_loss_is_the_mean_over_rows(tiny_folder: FolderOf, tmp_path: Path) -> None:
    scorer = tercet.BiEncoder.from_backbone(tiny_folder("bert"), device="cpu")
    objective = make_objective(ObjectiveConfig(kind="cosine"), scorer)
    examples = tokenize(scorer, [replace(each, targets=(float(n % 2),)) for n, each in enumerate(EXAMPLES)])
    settings = replace(SETTINGS, epochs=1, learning_rate=0.0, weight_decay=0.0)
    log = train(scorer, objective, settings, BATCHES, train=examples, dev=examples[:10], folder=tmp_path)
    with torch.no_grad():
        expected = float(objective(scorer, examples[:10]))  # the trainer uses batches of 4, 4 and 2
    assert next(row["eval_loss"] for row in log if "eval_loss" in row) == pytest.approx(expected, rel=1e-5)


def test_frozen_weights_are_counted(tiny: tercet.BiEncoder) -> None:
    assert freeze(tiny, embeddings=False, layers=0) == 0
    below = tiny.context_tower.encoder.transformer.embeddings
    assert freeze(tiny, embeddings=True, layers=0) == sum(weight.numel() for weight in below.parameters())


@pytest.mark.parametrize("architecture", [*ARCHITECTURES, *PADDED_ARCHITECTURES])
def test_nothing_below_a_frozen_layer_is_trained(architecture: str, tiny_folder: FolderOf) -> None:
    scorer = tercet.BiEncoder.from_backbone(tiny_folder(architecture), device="cpu")
    below, own, others = set(), set(), set()
    for name, _ in scorer.named_parameters():
        group = (
            own if ".0." in name else below if "embedding" in name and ".encoder.rel" not in name else others
        )
        group.add(name)
    freeze(scorer, embeddings=False, layers=1)
    frozen = {name for name, weight in scorer.named_parameters() if not weight.requires_grad}
    assert any("word_embeddings" in name or "tok_embeddings" in name for name in below)
    assert frozen == below | own


def test_layers_that_do_not_exist_cannot_be_frozen() -> None:
    with pytest.raises(InputError, match="freeze_layers matches no layer of this architecture"):
        freeze(torch.nn.Linear(2, 2), embeddings=True, layers=1)


def rates(settings: TrainingConfig, steps: int, losses: dict[int, float] | None = None) -> list[float]:
    """The relative learning rate at each step; ``losses`` are dev losses after some steps."""
    optimizer = make_optimizer(torch.nn.Linear(2, 2), replace(settings, learning_rate=1.0))
    schedule = make_schedule(optimizer, settings, steps=steps)
    found = []
    for step in range(steps):
        found.append(round(schedule.get_last_lr()[0], 4))
        optimizer.step()
        if losses and step in losses and isinstance(schedule, WarmPlateau):
            schedule.step_on_loss(losses[step])
        schedule.step()
    return found


def test_schedules_equal_rates_worked_out_by_hand() -> None:
    assert rates(TrainingConfig(warmup=2, schedule="linear"), 6) == [0, 0.5, 1, 0.75, 0.5, 0.25]
    assert rates(TrainingConfig(warmup=0.5, schedule="constant"), 4) == [0, 0.5, 1, 1]
    plateau = rates(TrainingConfig(warmup=2, schedule="plateau"), 7, {1: 5.0, 2: 4.0, 3: 4.0, 4: 3.0, 5: 9.0})
    assert plateau == [0.5, 1, 1, 1, 0.4, 0.4, 0.16]


def test_biases_and_norms_have_no_weight_decay() -> None:
    groups = make_optimizer(torch.nn.Linear(2, 2), TrainingConfig(weight_decay=0.5)).param_groups
    assert [(group["weight_decay"], len(group["params"])) for group in groups] == [(0.5, 1), (0.0, 1)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"optimizer": "sgd"}, "optimizer must be one of adamw, adam, adamax, got 'sgd'"),
        ({"schedule": "cosine"}, "schedule must be one of linear, constant, inverse_sqrt, plateau"),
        ({"learning_rate": -1}, "learning_rate must be at least 0, got -1"),
        ({"learning_rate": float("nan")}, "learning_rate must be at least 0, got nan"),
        ({"patience": 0}, "patience must be at least 1, got 0"),
        ({"seed": -1}, "seed must be a whole number from 0"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TrainingConfig(**settings)
