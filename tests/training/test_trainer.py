"""Training: reproducible, resumable after a kill, and stopped in time."""

import os
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
from tests.conftest import SENTENCES

import tercet
from tercet.records import Lesson
from tercet.training.examples import tokenise
from tercet.training.objectives import make_objective
from tercet.training.optimisers import (
    WarmPlateau,
    freeze,
    make_optimiser,
    make_schedule,
    rescale_last_layer,
)
from tercet.training.settings import BatchSettings, ObjectiveConfig, TrainSettings
from tercet.training.trainer import last_checkpoint, train

FolderOf = Callable[[str], Path]

LESSONS = [Lesson(left, (right,)) for left in SENTENCES for right in SENTENCES if left != right]
SETTINGS = TrainSettings(epochs=2, learning_rate=1e-3, looks_per_epoch=3)
BATCHES = BatchSettings(examples=4)


def make(folder: Path) -> tercet.PolyEncoder:
    return tercet.PolyEncoder.from_backbone(folder, config=tercet.PolyConfig(codes=3), device="cpu")


def learn(
    scorer: Any,
    objective: Any,
    lessons: list[Lesson],
    folder: Path,
    settings: TrainSettings = SETTINGS,
    batching: BatchSettings = BATCHES,
    **options: Any,
) -> list[dict[str, float]]:
    examples = tokenise(scorer, lessons)
    given = {"train": examples, "dev": examples[:8], "folder": folder}
    return train(scorer, objective, settings, batching, **given, **options)


def run(
    backbone: Path,
    folder: Path,
    settings: TrainSettings = SETTINGS,
    batching: BatchSettings = BATCHES,
    lessons: list[Lesson] = LESSONS,
    **options: Any,
) -> tuple[tercet.PolyEncoder, list[dict[str, float]]]:
    scorer = make(backbone)
    objective = make_objective(ObjectiveConfig(kind="in_batch"), scorer, chunk_tokens=batching.chunk_tokens)
    return scorer, learn(scorer, objective, lessons, folder, settings, batching, **options)


def weights_of(scorer: tercet.PolyEncoder) -> dict[str, torch.Tensor]:
    return {name: weight.detach().clone() for name, weight in scorer.named_parameters()}


def assert_same(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> None:
    assert left.keys() == right.keys()
    for name, weight in left.items():
        torch.testing.assert_close(weight, right[name], rtol=0, atol=0, msg=name)


def test_the_same_seed_gives_the_same_weights(tiny_folder: FolderOf, tmp_path: Path) -> None:
    first, again = (weights_of(run(tiny_folder("bert"), tmp_path / name)[0]) for name in ("a", "b"))
    assert_same(first, again)
    other = weights_of(run(tiny_folder("bert"), tmp_path / "c", replace(SETTINGS, seed=1))[0])
    assert any(not torch.equal(first[name], other[name]) for name in first)  # dropout differs
    other = weights_of(run(tiny_folder("bert"), tmp_path / "d", batching=replace(BATCHES, seed=1))[0])
    assert any(not torch.equal(first[name], other[name]) for name in first)  # batches differ


TRAIN_AND_DIE = """
import os, signal, sys
from pathlib import Path
from tests.training import test_trainer
from tercet.training.trainer import SteadyTrainer
step = SteadyTrainer.training_step
def die(self, *args, **more):
    if self.state.global_step == 7:  # between two checkpoints, in the middle of an epoch
        os.kill(os.getpid(), signal.SIGKILL)
    return step(self, *args, **more)
SteadyTrainer.training_step = die
test_trainer.run(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def test_a_killed_training_resumes_to_the_same_weights(tiny_folder: FolderOf, tmp_path: Path) -> None:
    whole, _ = run(tiny_folder("bert"), tmp_path / "whole")
    command = [sys.executable, "-c", TRAIN_AND_DIE, str(tiny_folder("bert")), str(tmp_path / "killed")]
    root = Path(__file__).parent.parent.parent
    killed = subprocess.run(
        command, check=False, capture_output=True, cwd=root, env=os.environ | {"PYTHONPATH": str(root)}
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    last = last_checkpoint(tmp_path / "killed")
    assert last is not None
    assert last.name == "checkpoint-5"
    resumed, log = run(tiny_folder("bert"), tmp_path / "killed", resume=True)
    assert min(row["step"] for row in log if "loss" in row) <= 5  # what came before is remembered
    assert_same(weights_of(whole), weights_of(resumed))


@pytest.mark.parametrize("kind", ["negatives", "answers that come again"])
def test_an_epoch_is_resumed_in_its_middle(kind: str, tiny_folder: FolderOf, tmp_path: Path) -> None:
    lessons = (
        LESSONS
        if kind == "negatives"
        else [replace(lesson, candidates=(SENTENCES[place % 5],)) for place, lesson in enumerate(LESSONS)]
    )
    batching = replace(BATCHES, negatives=2) if kind == "negatives" else BATCHES
    settings = replace(SETTINGS, epochs=3, checkpoints=50)
    _, log = run(tiny_folder("bert"), tmp_path / "whole", settings, batching, lessons)
    shutil.copytree(tmp_path / "whole", tmp_path / "cut")
    steps = sorted(int(path.name.split("-")[1]) for path in (tmp_path / "cut").iterdir())
    for step in steps[5:]:
        shutil.rmtree(tmp_path / "cut" / f"checkpoint-{step}")
    _, again = run(tiny_folder("bert"), tmp_path / "cut", settings, batching, lessons, resume=True)
    losses = [[row["eval_loss"] for row in rows if "eval_loss" in row] for rows in (log, again)]
    assert len(losses[0]) == len(steps) > 6
    assert losses[0] == losses[1]


def test_patience_is_remembered(tiny_folder: FolderOf, tmp_path: Path) -> None:
    settings = replace(SETTINGS, epochs=50, learning_rate=0.0, weight_decay=0.0, patience=3, checkpoints=50)
    _, log = run(tiny_folder("bert"), tmp_path, settings)
    for step in sorted(int(path.name.split("-")[1]) for path in tmp_path.iterdir())[2:]:
        shutil.rmtree(tmp_path / f"checkpoint-{step}")
    _, again = run(tiny_folder("bert"), tmp_path, settings, resume=True)
    assert again[-1]["step"] == log[-1]["step"]


def test_a_checkpoint_that_was_cut_off_is_passed_over(tmp_path: Path) -> None:
    for name, text in (("checkpoint-5", "{}"), ("checkpoint-10", '{"global_step": 1')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "trainer_state.json").write_text(text)
    assert last_checkpoint(tmp_path) == tmp_path / "checkpoint-5"


def test_a_checkpoint_that_was_not_finished_is_passed_over(tmp_path: Path) -> None:
    for name in ("checkpoint-5", "checkpoint-10"):
        (tmp_path / name).mkdir()
    assert last_checkpoint(tmp_path) is None
    (tmp_path / "checkpoint-5" / "trainer_state.json").write_text("{}")
    assert last_checkpoint(tmp_path) == tmp_path / "checkpoint-5"


def test_gradient_caching_trains_to_the_same_weights(tiny_folder: FolderOf, tmp_path: Path) -> None:
    plain, cached = (
        weights_of(
            run(tiny_folder("bert"), tmp_path / str(tokens), batching=replace(BATCHES, chunk_tokens=tokens))[
                0
            ]
        )
        for tokens in (None, 1000)  # one chunk: the dropout of smaller ones would be drawn in another order
    )
    for name, weight in plain.items():
        torch.testing.assert_close(cached[name], weight, rtol=1e-5, atol=1e-6, msg=name)


def test_the_best_look_is_kept(tiny_folder: FolderOf, tmp_path: Path) -> None:
    found = iter([3.0, 1.0, 2.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    kept: list[dict[str, torch.Tensor]] = []
    scorer = make(tiny_folder("bert"))
    objective = make_objective(ObjectiveConfig(kind="in_batch"), scorer)

    def measure() -> dict[str, float]:
        kept.append(weights_of(scorer))
        return {"loss": next(found)}  # stands in for the loss that decides

    learn(scorer, objective, LESSONS, tmp_path, measure=measure)
    assert_same(weights_of(scorer), kept[1])


@pytest.mark.parametrize("towers", [1, 2])
def test_a_bi_encoder_comes_back_from_its_best_look(
    towers: int, tiny_folder: FolderOf, tmp_path: Path
) -> None:
    scorer = tercet.BiEncoder.from_backbone(
        tiny_folder("bert"), config=tercet.BiConfig(towers=towers), device="cpu"
    )
    objective = make_objective(ObjectiveConfig(kind="softmax"), scorer)  # which has weights of its own
    lessons = [replace(lesson, targets=(float(place % 3),)) for place, lesson in enumerate(LESSONS)]
    learn(scorer, objective, lessons, tmp_path)
    best = last_checkpoint(tmp_path)
    assert best is not None
    (best / "model.safetensors").unlink()
    save_file({"stray": torch.zeros(1)}, best / "model.safetensors")
    with pytest.raises(tercet.ModelError, match=r"lacks weights: objective\.classifier\.weight"):
        learn(scorer, objective, lessons, tmp_path, resume=True)


def test_training_stops_when_nothing_improves(tiny_folder: FolderOf, tmp_path: Path) -> None:
    settings = replace(SETTINGS, epochs=50, learning_rate=0.0, weight_decay=0.0, patience=2)
    _, log = run(tiny_folder("bert"), tmp_path, settings)
    assert sum("eval_loss" in row for row in log) == 3


def test_checkpoints_are_rotated(tiny_folder: FolderOf, tmp_path: Path) -> None:
    run(tiny_folder("bert"), tmp_path, replace(SETTINGS, checkpoints=1))
    assert len(list(tmp_path.glob("checkpoint-*"))) <= 2  # the last, and the best


def test_a_loss_that_is_no_number_stops_with_the_rows(tiny_folder: FolderOf, tmp_path: Path) -> None:
    settings = replace(SETTINGS, learning_rate=1e30, clip=0.0)
    with pytest.raises(tercet.TrainingError, match=r"the loss is nan at step \d+: .* look at the rows"):
        run(tiny_folder("bert"), tmp_path, settings)


def test_too_few_examples_are_refused(tiny_folder: FolderOf, tmp_path: Path) -> None:
    with pytest.raises(tercet.InputError, match="not one full batch"):
        run(tiny_folder("bert"), tmp_path, lessons=[])


def test_accumulated_batches_make_one_step(tiny_folder: FolderOf, tmp_path: Path) -> None:
    _, log = run(tiny_folder("bert"), tmp_path, replace(SETTINGS, accumulation=2, epochs=1))
    assert log[-1]["step"] == 7  # 13 batches


@pytest.mark.parametrize("optimiser", ["adam", "adamw", "adamax"])
def test_every_optimiser_moves_the_weights(optimiser: str, tiny_folder: FolderOf, tmp_path: Path) -> None:
    before = weights_of(make(tiny_folder("bert")))
    settings = replace(SETTINGS, optimiser=optimiser, epochs=1)  # type: ignore[arg-type]
    after = weights_of(run(tiny_folder("bert"), tmp_path, settings)[0])
    moved = [name for name in before if not torch.equal(before[name], after[name])]
    assert "code_layer.codes" in moved
    assert len(moved) > 20


def test_what_is_frozen_stays(tiny_folder: FolderOf, tmp_path: Path) -> None:
    before = weights_of(make(tiny_folder("bert")))
    settings = replace(SETTINGS, freeze_embeddings=True, freeze_layers=1, epochs=1)
    after = weights_of(run(tiny_folder("bert"), tmp_path, settings)[0])
    for name, weight in before.items():
        stays = "word_embeddings" in name or ".layer.0." in name or "pooler" in name
        assert torch.equal(weight, after[name]) == stays, name


def test_the_last_layer_is_rescaled_and_no_other(tiny: tercet.BiEncoder) -> None:
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
    examples = tokenise(scorer, [replace(each, targets=(float(n % 2),)) for n, each in enumerate(LESSONS)])
    settings = replace(SETTINGS, epochs=1, learning_rate=0.0, weight_decay=0.0)
    log = train(scorer, objective, settings, BATCHES, train=examples, dev=examples[:10], folder=tmp_path)
    with torch.no_grad():
        expected = float(objective(scorer, examples[:10]))  # at once; in batches it is 4, 4 and 2
    assert next(row["eval_loss"] for row in log if "eval_loss" in row) == pytest.approx(expected, rel=1e-5)


def test_frozen_weights_are_counted(tiny: tercet.BiEncoder) -> None:
    assert freeze(tiny, embeddings=False, layers=0) == 0
    table = tiny.context_tower.encoder.transformer.get_input_embeddings().weight
    assert freeze(tiny, embeddings=True, layers=0) == table.numel()


def rates(settings: TrainSettings, steps: int, looks: dict[int, float] | None = None) -> list[float]:
    """The share of the learning rate at each step; ``looks`` are losses that are told after a step."""
    optimiser = make_optimiser(torch.nn.Linear(2, 2), replace(settings, learning_rate=1.0))
    schedule = make_schedule(optimiser, settings, steps=steps)
    found = []
    for step in range(steps):
        found.append(round(schedule.get_last_lr()[0], 4))
        optimiser.step()
        if looks and step in looks and isinstance(schedule, WarmPlateau):
            schedule.look(looks[step])
        schedule.step()
    return found


def test_schedules_worked_out_by_hand() -> None:
    assert rates(TrainSettings(warmup=2, schedule="linear"), 6) == [0, 0.5, 1, 0.75, 0.5, 0.25]
    assert rates(TrainSettings(warmup=0.5, schedule="constant"), 4) == [0, 0.5, 1, 1]
    plateau = rates(TrainSettings(warmup=2, schedule="plateau"), 7, {1: 5.0, 2: 4.0, 3: 4.0, 4: 3.0, 5: 9.0})
    assert plateau == [0.5, 1, 1, 1, 0.4, 0.4, 0.16]


def test_biases_and_norms_do_not_decay() -> None:
    groups = make_optimiser(torch.nn.Linear(2, 2), TrainSettings(weight_decay=0.5)).param_groups
    assert [(group["weight_decay"], len(group["params"])) for group in groups] == [(0.5, 1), (0.0, 1)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"optimiser": "sgd"}, "optimiser must be one of adamw, adam, adamax, got 'sgd'"),
        ({"schedule": "cosine"}, "schedule must be one of linear, constant, inverse_sqrt, plateau"),
        ({"learning_rate": -1}, "learning_rate must be at least 0, got -1"),
        ({"learning_rate": float("nan")}, "learning_rate must be at least 0, got nan"),
        ({"patience": 0}, "patience must be at least 1, got 0"),
        ({"seed": -1}, "seed must be a whole number from 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(tercet.InputError, match=message):
        TrainSettings(**settings)
