"""Training runs: their results, the recipe before them, metrics and adapters."""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.training.small_recipes import (
    FolderOf,
    assert_same_model,
    run,
    tables,
    weights,
    write_rows,
    write_toml,
)

import tercet
from tercet.errors import DataError, InputError
from tercet.records import Example
from tercet.scorers.calibration import fit_calibration
from tercet.scorers.pair_classifier import PairClassifier
from tercet.settings.recipe import make_recipe, read_recipe
from tercet.training.curves import _panels
from tercet.training.optimizers import set_dropout
from tercet.training.run import run_recipe
from tercet.training.splits import in_both_directions, read_splits

pytestmark = pytest.mark.filterwarnings("ignore::tercet.errors.TruncationWarning")


def test_a_run_writes_everything_to_its_folder(tiny_folder: FolderOf, tmp_path: Path) -> None:
    result = run(tables(tiny_folder("bert")), tmp_path / "run")
    folder = tmp_path / "run"
    assert {"recall_at_1", "mrr", "examples"} == result["dev"].keys()
    assert json.loads((folder / "result.json").read_text()) == result
    assert json.loads((folder / "config.json").read_text())["training"]["schedule"] == "linear"  # a default
    assert json.loads((folder / "environment.json").read_text())["packages"]["torch"] == version("torch")
    data = json.loads((folder / "data.json").read_text())
    assert data["train"]["examples"] == 108
    assert data["dev"]["truncated"].keys() == {"contexts", "candidates"}
    logged = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert sum("eval_recall_at_1" in row for row in logged) == 4
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert tercet.load(folder / "model").fingerprint == result["fingerprint"]


NLI_ROWS = [
    {"context": f"the cat {n % 5}", "candidate": ("a dog", "never", "bread")[n % 3], "score": "abc"[n % 3]}
    for n in range(60)
]


def test_a_bi_encoder_keeps_the_classifier_that_softmax_has_learnt(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    data = {"files": write_rows(tmp_path / "nli.jsonl", NLI_ROWS), "labels": ["c", "a", "b"]}
    table = tables(
        tiny_folder("bert"),
        data={"train": data},
        objective={"kind": "softmax"},
        training={"epochs": 12, "learning_rate": 3e-3, "dropout": 0, "metric_for_best_model": "accuracy"},
    )
    result = run(table, tmp_path / "run")
    assert result["untrained"]["accuracy"] < 1
    assert result["dev"]["accuracy"] == 1  # the class follows from the candidate
    trained = tercet.load(tmp_path / "run" / "model", device="cpu")
    assert trained.classifier.labels == ("c", "a", "b")
    found = trained.classify(["the cat 1", "the cat 2"], ["a dog", "bread"]).argmax(axis=1)
    assert [trained.classifier.labels[number] for number in found] == ["a", "c"]


def test_training_with_another_objective_drops_classifier_and_calibration(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    """They were fitted to vectors that the model no longer has."""
    scorer = tercet.BiEncoder.from_backbone(tiny_folder("bert"), device="cpu")
    scorer.classifier = PairClassifier(np.zeros((2, 16), np.float32), ("u",))
    scorer.calibration = fit_calibration([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
    scorer.save(tmp_path / "before")
    run(tables(tmp_path / "before", model={"source": str(tmp_path / "before")}), tmp_path / "run")
    trained = tercet.load(tmp_path / "run" / "model", device="cpu")
    assert trained.classifier is None
    assert trained.calibration is None


def test_the_rank_of_every_right_candidate_is_recorded(tiny_folder: FolderOf, tmp_path: Path) -> None:
    """Runs are compared case by case."""
    choices = [
        {
            "context": f"question {number}",
            "candidates": ["yes", "no", f"answer {number}"],
            "label": number % 3,
        }
        for number in range(9)
    ]
    test = {"files": write_rows(tmp_path / "test.jsonl", choices), "reader": "choices"}
    table = tables(tiny_folder("bert"), training={"epochs": 1})
    result = run({**table, "data": {**table["data"], "test": test}}, tmp_path / "run")
    ranks = np.array(result["ranks"])
    assert ranks.shape == (9,)
    assert set(ranks.tolist()) <= {1, 2, 3}
    assert result["test"]["recall_at_1"] == np.mean(ranks == 1)
    assert result["test"]["mrr"] == pytest.approx(np.mean(1 / ranks))


def test_a_recipe_with_after_starts_from_the_model_of_that_recipe(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    write_toml(tmp_path / "first.toml", tables(tiny_folder("bert"), training={"epochs": 1}))
    second = tables(tiny_folder("bert"), training={"epochs": 1, "learning_rate": 0.0}, after="first.toml")
    del second["model"]
    recipe = read_recipe(write_toml(tmp_path / "second.toml", second))
    run_recipe(recipe, tmp_path / "run", device="cpu")
    assert_same_model(tmp_path / "run" / "model", tmp_path / "run" / "before" / "model")


def test_a_recipe_with_after_may_build_another_kind_of_scorer(tiny_folder: FolderOf, tmp_path: Path) -> None:
    write_toml(tmp_path / "first.toml", tables(tiny_folder("bert"), training={"epochs": 1}))
    data = {"train": {"files": "sample:pairs.en"}}
    second = tables(
        tiny_folder("bert"),
        model={"kind": "cross"},
        data=data,
        objective={"kind": "bce", "max_score": 5},
        training={"epochs": 1, "learning_rate": 0.0},
        after="first.toml",
    )
    run_recipe(read_recipe(write_toml(tmp_path / "second.toml", second)), tmp_path / "run", device="cpu")
    trained = weights(tmp_path / "run" / "before" / "model")[
        "context_tower.encoder.transformer.pooler.dense.bias"
    ]
    used = weights(tmp_path / "run" / "model")["encoder.transformer.pooler.dense.bias"]
    assert torch.equal(trained, used)


def test_both_entropies_share_a_panel() -> None:
    rows = [
        {"step": 1, "loss": 2.0},
        {"step": 1, "eval_mrr": 0.5, "eval_a_entropy": 0.1, "eval_b_entropy": 0.2},
    ]
    panels = _panels(rows)
    assert panels.keys() == {"loss", "mrr", "entropy"}
    assert panels["entropy"] == {"a": [(1, 0.1)], "b": [(1, 0.2)]}


def test_attention_entropies_are_logged_but_cannot_select_the_best_model(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    model = {"kind": "poly", "source": str(tiny_folder("bert")), "codes": 3}
    result = run(tables(tiny_folder("bert"), model=model), tmp_path / "run")
    logged = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    for name in ("token_entropy", "code_entropy"):
        assert 0 < result["dev"][name] <= 1
        assert 0 < result["untrained"][name] <= 1
        assert sum(f"eval_{name}" in row for row in logged) == 4
    table = tables(tiny_folder("bert"), model=model, training={"metric_for_best_model": "code_entropy"})
    with pytest.raises(InputError, match=r"must be one of loss, recall_at_1, mrr, got 'code_entropy'$"):
        run(table, tmp_path / "other")


def test_both_directions_of_pairs_are_trained_on(tiny_folder: FolderOf, tmp_path: Path) -> None:
    content = [{"context": f"{n} a", "candidate": f"b {n}", "score": 0.5} for n in "cde"]
    part = {"files": write_rows(tmp_path / "train.jsonl", content), "both_directions": True}
    dev = {"files": write_rows(tmp_path / "dev.jsonl", [{"context": "x", "candidate": "y", "score": 1}])}
    table = tables(tiny_folder("bert"), data={"train": part, "dev": dev}, objective={"kind": "cosine"})
    found = read_splits(make_recipe(table, name="test"), None)
    pairs = [(example.context, *example.candidates) for example in found.train]
    assert pairs[:3] == [("c a", "b c"), ("d a", "b d"), ("e a", "b e")]
    assert pairs[3:] == [(second, first) for first, second in pairs[:3]]
    assert len(found.dev) == 1
    with pytest.raises(DataError, match="both_directions needs pairs of two texts"):
        in_both_directions([Example(("a", "b"), ("c",))])


def test_dropout_is_set_in_all_layers(tiny_folder: FolderOf, tmp_path: Path) -> None:
    scorer = tercet.BiEncoder.from_backbone(tiny_folder("bert"), device="cpu")
    set_dropout(scorer, 0.3)
    shares = {module.p for module in scorer.modules() if isinstance(module, torch.nn.Dropout)}
    assert shares == {0.3}
    run(tables(tiny_folder("bert"), training={"epochs": 1, "dropout": 0.0}), tmp_path / "run")
    with pytest.raises(InputError, match="dropout must be at least 0 and below 1, got 1"):
        make_recipe(tables(tiny_folder("bert"), training={"dropout": 1}), name="test")


def test_runs_with_another_seed_differ(tiny_folder: FolderOf, tmp_path: Path) -> None:
    recipe = make_recipe(tables(tiny_folder("bert"), training={"epochs": 1}), name="test")
    prints = {
        run_recipe(recipe.with_seed(seed), tmp_path / f"{n}", device="cpu")["fingerprint"]
        for n, seed in enumerate((3, 3, 4))
    }
    assert len(prints) == 2


def test_a_metric_can_select_the_best_model(tiny_folder: FolderOf, tmp_path: Path) -> None:
    table = tables(
        tiny_folder("bert"), training={"epochs": 3, "learning_rate": 3e-3, "metric_for_best_model": "mrr"}
    )
    result = run(table, tmp_path / "run")
    logged = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert result["dev"]["mrr"] == pytest.approx(max(row["eval_mrr"] for row in logged if "eval_mrr" in row))


def test_an_unmeasured_metric_cannot_select_the_best_model(tiny_folder: FolderOf, tmp_path: Path) -> None:
    table = tables(tiny_folder("bert"), training={"epochs": 1, "metric_for_best_model": "spearman"})
    with pytest.raises(
        InputError, match="metric_for_best_model must be one of loss, recall_at_1, mrr, got 'spearman'"
    ):
        run(table, tmp_path / "run")


def test_adapters_are_saved_beside_the_model(tiny_folder: FolderOf, tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="needs tercet[train]")
    table = tables(tiny_folder("bert"), adapter={"rank": 2}, training={"epochs": 2, "learning_rate": 1e-2})
    run(table, tmp_path / "run")
    model, adapter = (tercet.load(tmp_path / "run" / name, device="cpu") for name in ("model", "adapter"))
    texts = ["the cat sat on the mat", "a dog ran", "old house"]
    assert abs(model.score(texts[0], texts) - adapter.score(texts[0], texts)).max() < 1e-5
    untrained = tercet.BiEncoder.from_backbone(tiny_folder("bert"), device="cpu")
    assert abs(model.score(texts[0], texts) - untrained.score(texts[0], texts)).max() > 1e-4
    saved = (tmp_path / "run" / "checkpoints").glob("*/model.safetensors")
    assert max(file.stat().st_size for file in saved) < 20_000  # frozen weights are not saved


def test_tensorboard_files_are_written(tiny_folder: FolderOf, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="needs tercet[train]")
    run(tables(tiny_folder("bert"), training={"epochs": 1, "tensorboard": True}), tmp_path / "run")
    assert list((tmp_path / "run" / "checkpoints" / "tensorboard").glob("events.*"))
