"""The default of ``score_scale``, and runs that learn or do not."""

import json
import warnings
from collections.abc import Callable
from math import log
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.training.small_recipes import FolderOf, run, tables

import tercet
from tercet.data.sample import questions
from tercet.records import Example
from tercet.settings.training import ObjectiveConfig
from tercet.training.chance import is_at_chance
from tercet.training.objectives import make_objective
from tercet.training.tokenized import tokenize

pytestmark = pytest.mark.filterwarnings("ignore::tercet.errors.TruncationWarning")

BI, POLY = tercet.BiEncoder.from_backbone, tercet.PolyEncoder.from_backbone


@pytest.mark.parametrize(
    ("make", "config", "kind", "scale"),
    [
        (BI, tercet.BiConfig(), "in_batch", 20),
        (BI, tercet.BiConfig(), "kl_divergence", 20),
        (BI, tercet.BiConfig(), "margin_mse", 1),
        (BI, tercet.BiConfig(similarity="dot"), "in_batch", 1),
        (BI, tercet.BiConfig(similarity="dot"), "cosent", 20),  # compares cosines anyway
        (POLY, tercet.PolyConfig(codes=2), "in_batch", 20),
        (POLY, tercet.PolyConfig(codes=2, logit_scale=4.0), "in_batch", 5),  # 4 * 5 = 20
        (POLY, tercet.PolyConfig(codes=2, similarity="dot"), "in_batch", 1),
    ],
)
def test_cosines_are_scaled_by_20_unless_the_recipe_says_otherwise(
    make: Callable[..., Any], config: Any, kind: Any, scale: float, tiny_folder: FolderOf
) -> None:
    scorer = make(tiny_folder("bert"), config=config, device="cpu")
    assert make_objective(ObjectiveConfig(kind=kind), scorer).score_scale == scale
    assert make_objective(ObjectiveConfig(kind=kind, score_scale=3), scorer).score_scale == 3


def test_the_in_batch_loss_of_minilm_is_far_below_chance_by_default_and_near_it_without_a_scale() -> None:
    scorer: Any = tercet.load("bi", device="cpu")
    examples = [Example(each.context, (each.answer,)) for each in questions("en")[:32]]
    batch = tokenize(scorer, examples)
    with torch.no_grad():
        default, flat = (
            float(make_objective(ObjectiveConfig(kind="in_batch", score_scale=scale), scorer)(scorer, batch))
            for scale in (None, 1.0)
        )
    assert default < 0.5 * log(32)
    assert flat > 0.75 * log(32)


def test_losses_are_at_chance_from_nine_tenths_of_the_loss_of_equal_scores() -> None:
    chance = log(4)  # 1.386; nine tenths are 1.248
    assert is_at_chance([5.0, 5.0, 1.25, 1.25], chance)  # the later half counts
    assert not is_at_chance([5.0, 5.0, 1.24, 1.24], chance)
    assert not is_at_chance([], chance)


@pytest.mark.parametrize(
    ("scorer", "kind", "counts", "chance"),
    [
        (lambda folder: BI(folder, device="cpu"), "in_batch", (1, 3), log(4)),  # 4 candidates for each row
        (
            lambda folder: tercet.CrossEncoder.from_backbone(folder, device="cpu"),
            "listwise",
            (2, 8),
            (log(2) + log(8)) / 2,
        ),
    ],
)
def test_the_loss_at_chance_counts_the_candidates(
    scorer: Any, kind: Any, counts: tuple[int, ...], chance: float, tiny_folder: FolderOf
) -> None:
    made = scorer(tiny_folder("bert"))
    texts = ["cat", "dog", "bird", "tree", "old", "new", "day", "red"]
    batch = tokenize(made, [Example("the mat", tuple(texts[:count])) for count in counts])
    assert make_objective(ObjectiveConfig(kind=kind), made).chance_loss(made, batch) == pytest.approx(chance)


def test_a_run_that_stays_at_chance_warns_once_and_names_the_settings(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    table = tables(tiny_folder("bert"), objective={"kind": "in_batch", "score_scale": 1e-3})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(table, tmp_path / "run")
    notes = [str(each.message) for each in caught if "learnt nothing" in str(each.message)]
    assert len(notes) == 1
    assert notes[0].startswith("after epoch 1 the training loss is 2.77, and guessing has 2.77")
    assert "objective.score_scale (now 0.001; 20 with" in notes[0]
    assert "training.learning_rate (now 0.001)" in notes[0]


def test_the_advice_for_a_classifier_does_not_name_the_score_scale(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    rows = [{"context": f"cat {n}", "candidate": "dog", "score": "ab"[n % 2]} for n in range(64)]
    file = tmp_path / "labels.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    data = {"train": {"files": str(file), "labels": ["a", "b"]}}
    learning = {"learning_rate": 1e-6, "epochs": 1}
    table = tables(tiny_folder("bert"), objective={"kind": "softmax", "num_labels": 2}) | {
        "data": data,
        "batches": {"batch_size": 4},
        "training": learning,
    }
    with pytest.warns(UserWarning, match="learnt nothing yet: raise training.learning_rate"):
        run(table, tmp_path / "run")


def test_a_run_that_learns_does_not_warn(tmp_path: Path) -> None:
    table = {
        "model": {"kind": "bi", "source": "bi", "max_tokens": 24},
        "data": {"train": {"files": "sample:faq.en", "reader": "answers", "limit": 60}},
        "training": {"epochs": 1},
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", tercet.errors.TruncationWarning)
        run(table, tmp_path / "run")
