"""Objectives: what they ask for, that they can be learnt, and that saving memory changes nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.conftest import SENTENCES

import tercet
from tercet.records import Lesson
from tercet.training import losses
from tercet.training.examples import Example, tokenise
from tercet.training.objectives import make_objective
from tercet.training.settings import ObjectiveConfig

FolderOf = Callable[[str], Path]

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
        folder, config=tercet.CrossConfig(outputs=3, head="dense"), device="cpu"
    ),
}

CONTEXTS, ANSWERS = SENTENCES[:4], SENTENCES[4:]
LESSONS: dict[str, list[Lesson]] = {
    "softmax": [
        Lesson(c, (a,), (float(n % 3),)) for n, (c, a) in enumerate(zip(CONTEXTS, ANSWERS, strict=True))
    ],
    "cosine": [
        Lesson(c, (a,), (5.0 * (n % 2),)) for n, (c, a) in enumerate(zip(CONTEXTS, ANSWERS, strict=True))
    ],
    "triplet": [
        Lesson(c, (a, CONTEXTS[n - 1])) for n, (c, a) in enumerate(zip(CONTEXTS, ANSWERS, strict=True))
    ],
    "margin_mse": [
        Lesson(c, (a, CONTEXTS[n - 1]), (2.0, -1.0 * n))
        for n, (c, a) in enumerate(zip(CONTEXTS, ANSWERS, strict=True))
    ],
}
LESSONS["in_batch"] = LESSONS["ranking"] = LESSONS["triplet"]
LESSONS["order"] = LESSONS["cosine"]
LESSONS["classes"], LESSONS["regression"] = LESSONS["softmax"], LESSONS["cosine"]
LESSONS["distribution"] = LESSONS["margin_mse"]

FITTING = [
    *[
        ("bi", kind)
        for kind in ("softmax", "cosine", "order", "triplet", "in_batch", "margin_mse", "distribution")
    ],
    *[("bi-two-towers", kind) for kind in ("softmax", "in_batch")],
    *[
        (scorer, kind)
        for scorer in ("poly", "poly-first")
        for kind in ("in_batch", "margin_mse", "distribution")
    ],
    *[("cross", kind) for kind in ("regression", "ranking")],
    ("cross-classes", "classes"),
]


def config_of(kind: str, **settings: Any) -> ObjectiveConfig:
    if kind in ("cosine", "regression"):
        settings["highest"] = 5.0
    return ObjectiveConfig(kind=kind, **settings)  # type: ignore[arg-type]


def prepared(scorer_name: str, kind: str, folder: Path, **options: Any) -> tuple[Any, Any, list[Example]]:
    scorer = SCORERS[scorer_name](folder)
    torch.manual_seed(0)
    scale = 20.0 if scorer.kind == "bi" else 1.0  # cosines alone cannot lead by much
    objective = make_objective(config_of(kind, score_scale=scale), scorer, **options)
    return scorer, objective, tokenise(scorer, LESSONS[kind])


@pytest.mark.parametrize(("scorer_name", "kind"), FITTING)
def test_gradient_caching_changes_no_gradient(scorer_name: str, kind: str, tiny_folder: FolderOf) -> None:
    gradients = []
    for chunk_tokens in (None, 12):
        scorer, objective, examples = prepared(
            scorer_name, kind, tiny_folder("bert"), chunk_tokens=chunk_tokens
        )
        objective(scorer, examples).backward()
        gradients.append([weight.grad for weight in scorer.parameters() if weight.grad is not None])
    assert len(gradients[0]) == len(gradients[1]) > 10
    largest = max(gradient.abs().max() for gradient in gradients[0])
    for plain, cached in zip(*gradients, strict=True):
        torch.testing.assert_close(cached, plain, rtol=1e-4, atol=1e-6 * float(largest))


@pytest.mark.parametrize("kind", ["in_batch", "margin_mse"])
def test_a_symmetric_model_is_trained_on_what_it_scores(kind: str, tiny_folder: FolderOf) -> None:
    config = tercet.PolyConfig(codes=3, symmetric=True, towers=1, logit_scale=0.1)
    scorer = tercet.PolyEncoder.from_backbone(tiny_folder("bert"), config=config, device="cpu")
    lessons = LESSONS[kind]
    objective = make_objective(config_of(kind), scorer)
    with torch.no_grad():
        found = float(objective(scorer, tokenise(scorer, lessons)))
    contexts = [lesson.context for lesson in lessons]
    if kind == "in_batch":
        candidates = [lesson.candidates[place] for place in (0, 1) for lesson in lessons]
        scores = torch.from_numpy(scorer.score_many(contexts, candidates))
        expected = losses.ranking(scores, torch.arange(len(lessons)))
    else:
        rows = [scorer.score(lesson.context, lesson.candidates) for lesson in lessons]
        expected = losses.margin_mse(
            torch.tensor(np.stack(rows)), torch.tensor([lesson.targets for lesson in lessons])
        )
    assert found == pytest.approx(float(expected), rel=1e-4)


def test_gradient_caching_repeats_the_dropout(tiny_folder: FolderOf) -> None:
    scorer, objective, examples = prepared("bi", "in_batch", tiny_folder("bert"), chunk_tokens=12)
    scorer.train()
    torch.manual_seed(1)
    loss = objective(scorer, examples)
    loss.backward()
    gradient = scorer.context_tower.encoder.transformer.embeddings.word_embeddings.weight.grad.clone()
    scorer.zero_grad()
    torch.manual_seed(1)
    objective(scorer, examples).backward()
    again = scorer.context_tower.encoder.transformer.embeddings.word_embeddings.weight.grad
    torch.testing.assert_close(again, gradient)


def test_gradient_caching_keeps_little(tiny_folder: FolderOf) -> None:
    kept = []
    for chunk_tokens in (None, 12):
        scorer, objective, examples = prepared(
            "bi", "in_batch", tiny_folder("bert"), chunk_tokens=chunk_tokens
        )
        total = 0

        def count(tensor: torch.Tensor) -> torch.Tensor:
            nonlocal total
            total += tensor.numel()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            objective(scorer, examples)
        kept.append(total)
    assert kept[1] < kept[0] / 5


def test_in_batch_by_hand(tiny_folder: FolderOf) -> None:
    scorer, objective, examples = prepared("bi", "in_batch", tiny_folder("bert"))
    table = torch.from_numpy(scorer.score_many(CONTEXTS, [*ANSWERS, *(CONTEXTS[n - 1] for n in range(4))]))
    expected = -(20 * table).log_softmax(dim=1)[range(4), range(4)].mean()
    torch.testing.assert_close(objective(scorer, examples), expected, rtol=1e-4, atol=1e-5)


def test_a_copy_of_the_answer_is_no_negative(tiny_folder: FolderOf) -> None:
    scorer = SCORERS["bi"](tiny_folder("bert"))
    objective = make_objective(ObjectiveConfig(kind="in_batch"), scorer)
    lessons = [Lesson("a dog", ("never",)), Lesson("old house", ("never",)), Lesson("bread", ("water",))]
    table = torch.from_numpy(scorer.score_many([lesson.context for lesson in lessons], ["never", "water"]))
    expected = -table.log_softmax(dim=1)[[0, 1], 0].sum() - (
        table[2, 1] - torch.stack([table[2, 0], table[2, 0], table[2, 1]]).logsumexp(dim=0)
    )
    torch.testing.assert_close(
        objective(scorer, tokenise(scorer, lessons)), expected / 3, rtol=1e-4, atol=1e-5
    )


def test_rows_of_a_ranking_may_differ_in_length(tiny_folder: FolderOf) -> None:
    scorer = SCORERS["cross"](tiny_folder("bert"))
    objective = make_objective(ObjectiveConfig(kind="ranking"), scorer)
    lessons = [Lesson("a dog", ("never", "bread")), Lesson("old house", ("water", "a dog", "never"))]
    scores = [torch.from_numpy(scorer.score(lesson.context, lesson.candidates)) for lesson in lessons]
    expected = -sum(row.log_softmax(dim=0)[0] for row in scores) / 2
    torch.testing.assert_close(objective(scorer, tokenise(scorer, lessons)), expected, rtol=1e-4, atol=1e-5)


def test_a_batch_of_one_has_no_negatives(tiny_folder: FolderOf) -> None:
    scorer = SCORERS["bi"](tiny_folder("bert"))
    objective = make_objective(ObjectiveConfig(kind="in_batch"), scorer)
    with pytest.raises(tercet.InputError, match="use a larger batch, or give negatives"):
        objective(scorer, tokenise(scorer, [Lesson("a dog", ("never",))]))


@pytest.mark.parametrize(
    ("scorer_name", "kind", "message"),
    [
        (
            "poly",
            "softmax",
            "softmax does not train a poly-encoder: choose one of in_batch, margin_mse, distribution",
        ),
        ("bi", "ranking", "ranking does not train a bi-encoder: choose one of softmax, cosine, order"),
        (
            "cross",
            "in_batch",
            "in_batch does not train a cross-encoder: choose one of regression, classes, ranking",
        ),
        ("cross-classes", "ranking", "ranking needs a cross-encoder with 1 output, got 3"),
    ],
)
def test_an_objective_of_another_kind_is_refused(
    scorer_name: str, kind: str, message: str, tiny_folder: FolderOf
) -> None:
    with pytest.raises(tercet.InputError, match=message):
        make_objective(config_of(kind), SCORERS[scorer_name](tiny_folder("bert")))


def test_a_teachers_rows_need_equally_many_candidates(tiny_folder: FolderOf) -> None:
    scorer = SCORERS["bi"](tiny_folder("bert"))
    objective = make_objective(ObjectiveConfig(kind="margin_mse"), scorer)
    lessons = [Lesson("a", ("b", "c"), (1.0, 0.0)), Lesson("d", ("e",), (1.0,))]
    with pytest.raises(tercet.InputError, match=r"equally many candidates, got \[1, 2\]"):
        objective(scorer, tokenise(scorer, lessons))
