"""Objectives: which scorers they train, their losses, and gradients that gradient caching does not change."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.conftest import SENTENCES

import tercet
from tercet.errors import InputError
from tercet.records import Example
from tercet.settings.models import SCORER_CONFIGS
from tercet.settings.training import OBJECTIVE_KINDS, ObjectiveConfig
from tercet.training import losses
from tercet.training.objectives import OBJECTIVES, make_objective
from tercet.training.targets import Targets
from tercet.training.tokenized import TokenizedExample, tokenize

FolderOf = Callable[[str], Path]
Batch = list[TokenizedExample]

SCORERS: dict[str, Callable[[Path], Any]] = {
    "bi": lambda folder: tercet.BiEncoder.from_backbone(folder, device="cpu"),
    "bi-two-towers": lambda folder: tercet.BiEncoder.from_backbone(
        folder, config=tercet.BiConfig(towers=2), device="cpu"
    ),
    "poly": lambda folder: tercet.PolyEncoder.from_backbone(
        folder, config=tercet.PolyConfig(codes=3, learn_scales=True, logit_scale=0.1), device="cpu"
    ),
    "poly-first": lambda folder: tercet.PolyEncoder.from_backbone(
        folder, config=tercet.PolyConfig(codes=3, code_kind="first", logit_scale=0.1), device="cpu"
    ),
    "cross": lambda folder: tercet.CrossEncoder.from_backbone(folder, device="cpu"),
    "cross-classes": lambda folder: tercet.CrossEncoder.from_backbone(
        folder, config=tercet.CrossConfig(num_labels=3, head="dense"), device="cpu"
    ),
}

CONTEXTS, ANSWERS = SENTENCES[:4], SENTENCES[4:]
EXAMPLES: dict[str, list[Example]] = {
    "softmax": [
        Example(c, (a,), (float(n % 3),)) for n, (c, a) in enumerate(zip(CONTEXTS, ANSWERS, strict=True))
    ],
    "cosine": [
        Example(c, (a,), (5.0 * (n % 2),)) for n, (c, a) in enumerate(zip(CONTEXTS, ANSWERS, strict=True))
    ],
    "triplet": [
        Example(c, (a, CONTEXTS[n - 1])) for n, (c, a) in enumerate(zip(CONTEXTS, ANSWERS, strict=True))
    ],
    "margin_mse": [
        Example(c, (a, CONTEXTS[n - 1]), (2.0, -1.0 * n))
        for n, (c, a) in enumerate(zip(CONTEXTS, ANSWERS, strict=True))
    ],
}
EXAMPLES["in_batch"] = EXAMPLES["listwise"] = EXAMPLES["triplet"]
EXAMPLES["cosent"] = EXAMPLES["cosine"]
EXAMPLES["cross_entropy"] = EXAMPLES["softmax"]
EXAMPLES["bce"] = EXAMPLES["mse"] = EXAMPLES["cosine"]
EXAMPLES["kl_divergence"] = EXAMPLES["margin_mse"]
EXAMPLES["translation"] = [Example(c, (a,)) for c, a in zip(CONTEXTS, ANSWERS, strict=True)]

FITTING = [
    *[
        ("bi", kind)
        for kind in ("softmax", "cosine", "cosent", "triplet", "in_batch", "margin_mse", "kl_divergence")
    ],
    ("bi", "translation"),
    *[("bi-two-towers", kind) for kind in ("softmax", "in_batch")],
    *[
        (scorer, kind)
        for scorer in ("poly", "poly-first")
        for kind in ("in_batch", "margin_mse", "kl_divergence")
    ],
    *[("cross", kind) for kind in ("bce", "mse", "listwise")],
    ("cross-classes", "cross_entropy"),
]


def config_of(kind: str, **settings: Any) -> ObjectiveConfig:
    if kind in ("cosine", "cosent", "bce", "mse"):
        settings["max_score"] = 5.0
    return ObjectiveConfig(kind=kind, **settings)  # type: ignore[arg-type]


def prepare(scorer_name: str, kind: str, folder: Path, **options: Any) -> tuple[Any, Any, Batch]:
    """A scorer, an objective and its batch."""
    scorer = SCORERS[scorer_name](folder)
    torch.manual_seed(0)
    scale = 1.0 if scorer.kind == "cross" else 20.0  # cosines have a small range
    objective = make_objective(config_of(kind, score_scale=scale), scorer, **options)
    return scorer, objective, batch_of(scorer, kind)


def batch_of(scorer: Any, kind: str) -> Batch:
    """The examples of an objective; a teacher's vectors are not in the data, and are made up here."""
    batch = tokenize(scorer, EXAMPLES[kind])
    if OBJECTIVES[kind].targets is not Targets.VECTORS:  # type: ignore[index]
        return batch
    vectors = torch.eye(scorer.width)[: len(batch)].tolist()
    return [replace(example, targets=vector) for example, vector in zip(batch, vectors, strict=True)]


def test_every_objective_of_the_settings_is_implemented() -> None:
    assert tuple(OBJECTIVES) == OBJECTIVE_KINDS


@pytest.mark.parametrize("kind", OBJECTIVE_KINDS)
def test_every_objective_declares_scorers_targets_and_a_measure(kind: Any) -> None:
    objective = OBJECTIVES[kind]
    assert objective.trains
    assert set(objective.trains) <= set(SCORER_CONFIGS)
    assert isinstance(objective.targets, Targets)
    assert callable(objective.measure)
    assert not objective.__abstractmethods__


@pytest.mark.parametrize("kind", OBJECTIVE_KINDS)
def test_every_objective_trains_exactly_the_scorers_it_declares(kind: Any, tiny_folder: FolderOf) -> None:
    trained = set()
    for name in ("bi", "poly", "cross-classes" if kind == "cross_entropy" else "cross"):
        scorer = SCORERS[name](tiny_folder("bert"))
        if scorer.kind in OBJECTIVES[kind].trains:
            objective = make_objective(config_of(kind), scorer)
            objective.check_examples(EXAMPLES[kind], scorer)
            assert objective(scorer, batch_of(scorer, kind)).requires_grad
            assert objective.measure(scorer, EXAMPLES[kind]).metrics or kind == "softmax"
            trained.add(scorer.kind)
        else:
            with pytest.raises(InputError, match=f"{kind} cannot train a {scorer.kind}-encoder"):
                make_objective(config_of(kind), scorer)
    assert trained == set(OBJECTIVES[kind].trains)


@pytest.mark.parametrize(("scorer_name", "kind"), FITTING)
def test_gradient_caching_does_not_change_the_gradients(
    scorer_name: str, kind: str, tiny_folder: FolderOf
) -> None:
    gradients = []
    for mini_batch_tokens in (None, 12):
        scorer, objective, examples = prepare(
            scorer_name, kind, tiny_folder("bert"), mini_batch_tokens=mini_batch_tokens
        )
        objective(scorer, examples).backward()
        gradients.append([weight.grad for weight in scorer.parameters() if weight.grad is not None])
    assert len(gradients[0]) == len(gradients[1]) > 10
    largest = max(gradient.abs().max() for gradient in gradients[0])
    for plain, cached in zip(*gradients, strict=True):
        torch.testing.assert_close(cached, plain, rtol=1e-4, atol=1e-6 * float(largest))


@pytest.mark.parametrize("kind", ["in_batch", "margin_mse"])
def test_the_loss_of_a_symmetric_model_uses_its_scores(kind: str, tiny_folder: FolderOf) -> None:
    config = tercet.PolyConfig(codes=3, symmetric=True, towers=1, logit_scale=0.1)
    scorer = tercet.PolyEncoder.from_backbone(tiny_folder("bert"), config=config, device="cpu")
    examples = EXAMPLES[kind]
    objective = make_objective(config_of(kind, score_scale=1.0), scorer)
    with torch.no_grad():
        found = float(objective(scorer, tokenize(scorer, examples)))
    contexts = [example.context for example in examples]
    if kind == "in_batch":
        candidates = [example.candidates[position] for position in (0, 1) for example in examples]
        scores = torch.from_numpy(scorer.score_many(contexts, candidates))
        expected = losses.listwise(scores, torch.arange(len(examples)))
    else:
        rows = [scorer.score(example.context, example.candidates) for example in examples]
        expected = losses.margin_mse(
            torch.tensor(np.stack(rows)), torch.tensor([example.targets for example in examples])
        )
    assert found == pytest.approx(float(expected), rel=1e-4)


def test_gradient_caching_repeats_the_dropout(tiny_folder: FolderOf) -> None:
    scorer, objective, examples = prepare("bi", "in_batch", tiny_folder("bert"), mini_batch_tokens=12)
    scorer.train()
    torch.manual_seed(1)
    loss = objective(scorer, examples)
    loss.backward()
    gradient = scorer.context_tower.encoder.transformer.embeddings.word_embeddings.weight.grad.clone()
    scorer.zero_grad()
    torch.manual_seed(1)
    objective(scorer, examples).backward()
    repeated = scorer.context_tower.encoder.transformer.embeddings.word_embeddings.weight.grad
    torch.testing.assert_close(repeated, gradient)


def test_gradient_caching_stores_few_activations(tiny_folder: FolderOf) -> None:
    stored = []
    for mini_batch_tokens in (None, 12):
        scorer, objective, examples = prepare(
            "bi", "in_batch", tiny_folder("bert"), mini_batch_tokens=mini_batch_tokens
        )
        total = 0

        def count(tensor: torch.Tensor) -> torch.Tensor:
            nonlocal total
            total += tensor.numel()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            objective(scorer, examples)
        stored.append(total)
    assert stored[1] < stored[0] / 5


def test_in_batch_equals_the_loss_of_all_scores(tiny_folder: FolderOf) -> None:
    scorer, objective, examples = prepare("bi", "in_batch", tiny_folder("bert"))
    table = torch.from_numpy(scorer.score_many(CONTEXTS, [*ANSWERS, *(CONTEXTS[n - 1] for n in range(4))]))
    expected = -(20 * table).log_softmax(dim=1)[range(4), range(4)].mean()
    torch.testing.assert_close(objective(scorer, examples), expected, rtol=1e-4, atol=1e-5)


def test_a_copy_of_the_answer_is_not_a_negative(tiny_folder: FolderOf) -> None:
    scorer = SCORERS["bi"](tiny_folder("bert"))
    objective = make_objective(ObjectiveConfig(kind="in_batch", score_scale=1.0), scorer)
    examples = [Example("a dog", ("never",)), Example("old house", ("never",)), Example("bread", ("water",))]
    table = torch.from_numpy(scorer.score_many([example.context for example in examples], ["never", "water"]))
    expected = -table.log_softmax(dim=1)[[0, 1], 0].sum() - (
        table[2, 1] - torch.stack([table[2, 0], table[2, 0], table[2, 1]]).logsumexp(dim=0)
    )
    torch.testing.assert_close(
        objective(scorer, tokenize(scorer, examples)), expected / 3, rtol=1e-4, atol=1e-5
    )


def test_listwise_rows_may_differ_in_length(tiny_folder: FolderOf) -> None:
    scorer = SCORERS["cross"](tiny_folder("bert"))
    objective = make_objective(ObjectiveConfig(kind="listwise"), scorer)
    examples = [Example("a dog", ("never", "bread")), Example("old house", ("water", "a dog", "never"))]
    scores = [torch.from_numpy(scorer.score(example.context, example.candidates)) for example in examples]
    expected = -sum(row.log_softmax(dim=0)[0] for row in scores) / 2
    torch.testing.assert_close(objective(scorer, tokenize(scorer, examples)), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("activation", ["identity", "sigmoid", "tanh"])
def test_mse_is_the_squared_error_of_the_scores_that_the_model_returns(
    activation: Any, tiny_folder: FolderOf
) -> None:
    config = tercet.CrossConfig(activation=activation)
    scorer = tercet.CrossEncoder.from_backbone(tiny_folder("bert"), config=config, device="cpu")
    examples = [Example("a dog", ("never",), (1.0,)), Example("old house", ("water",), (3.0,))]
    objective = make_objective(ObjectiveConfig(kind="mse", min_score=1.0, max_score=5.0), scorer)
    left, right = scorer.score_pairs(["a dog", "old house"], ["never", "water"])
    expected = ((left - 0.0) ** 2 + (right - 0.5) ** 2) / 2  # 1 and 3 on a scale from 1 to 5
    assert objective(scorer, tokenize(scorer, examples)).item() == pytest.approx(expected, rel=1e-4)


def test_a_batch_of_one_has_no_negatives(tiny_folder: FolderOf) -> None:
    scorer = SCORERS["bi"](tiny_folder("bert"))
    objective = make_objective(ObjectiveConfig(kind="in_batch"), scorer)
    with pytest.raises(InputError, match="use a larger batch, or add negatives"):
        objective(scorer, tokenize(scorer, [Example("a dog", ("never",))]))


@pytest.mark.parametrize(
    ("scorer_name", "kind", "message"),
    [
        (
            "poly",
            "softmax",
            "softmax cannot train a poly-encoder: choose one of in_batch, margin_mse, kl_divergence",
        ),
        ("bi", "listwise", "listwise cannot train a bi-encoder: choose one of softmax, cosine, cosent"),
        (
            "cross",
            "in_batch",
            "in_batch cannot train a cross-encoder: choose one of bce, mse, cross_entropy, listwise",
        ),
        ("cross-classes", "listwise", "listwise needs a cross-encoder with 1 output, got 3"),
        ("cross-classes", "mse", "mse needs a cross-encoder with 1 output, got 3"),
        ("bi", "mse", "mse cannot train a bi-encoder: choose one of softmax, cosine, cosent"),
    ],
)
def test_an_objective_refuses_scorers_it_cannot_train(
    scorer_name: str, kind: str, message: str, tiny_folder: FolderOf
) -> None:
    with pytest.raises(InputError, match=message):
        make_objective(config_of(kind), SCORERS[scorer_name](tiny_folder("bert")))


def test_distillation_needs_equally_many_candidates_per_row(tiny_folder: FolderOf) -> None:
    scorer = SCORERS["bi"](tiny_folder("bert"))
    objective = make_objective(ObjectiveConfig(kind="margin_mse"), scorer)
    examples = [Example("a", ("b", "c"), (1.0, 0.0)), Example("d", ("e",), (1.0,))]
    with pytest.raises(InputError, match=r"equally many candidates in every row of a batch, got \[1, 2\]"):
        objective(scorer, tokenize(scorer, examples))
