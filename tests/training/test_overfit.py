"""A tiny model with random weights overfits the sample data, with every objective and scorer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

import tercet
from tercet.data.sample import pairs, questions
from tercet.records import Example
from tercet.settings.training import ObjectiveConfig
from tercet.training.masked_lm import new_masked_lm
from tercet.training.objectives import make_objective
from tercet.training.tokenized import tokenize
from tercet.training.vocabulary import make_tokenizer

COUNT = 10
QUESTIONS = questions("en")[:COUNT]
PAIRS = pairs("en")[:COUNT]

SCORED = [Example(pair.context, (pair.candidate,), (pair.score,)) for pair in PAIRS]
LABELLED = [
    Example(pair.context, (pair.candidate,), (float(position % 3),)) for position, pair in enumerate(PAIRS)
]
RANKED = [
    Example(
        question.context, (question.answer, QUESTIONS[position - 1].answer, QUESTIONS[position - 2].answer)
    )
    for position, question in enumerate(QUESTIONS)
]
TRIPLETS = [Example(example.context, example.candidates[:2]) for example in RANKED]
TAUGHT = [
    Example(example.context, example.candidates, (3.0, -1.0, float(position % 2)))
    for position, example in enumerate(RANKED)
]

EXAMPLES: dict[str, Sequence[Example]] = {
    "softmax": LABELLED,
    "cross_entropy": LABELLED,
    "cosine": SCORED,
    "cosent": SCORED,
    "bce": SCORED,
    "mse": SCORED,
    "triplet": TRIPLETS,
    "in_batch": RANKED,
    "listwise": RANKED,
    "margin_mse": TAUGHT,
    "kl_divergence": TAUGHT,
}
SCORERS: dict[str, Any] = {
    "bi": lambda folder: tercet.BiEncoder.from_backbone(folder, device="cpu"),
    "bi-two-towers": lambda folder: tercet.BiEncoder.from_backbone(
        folder, config=tercet.BiConfig(towers=2), device="cpu"
    ),
    "poly": lambda folder: tercet.PolyEncoder.from_backbone(
        folder, config=tercet.PolyConfig(codes=4, learn_scales=True), device="cpu"
    ),
    "poly-first": lambda folder: tercet.PolyEncoder.from_backbone(
        folder, config=tercet.PolyConfig(codes=4, code_kind="first", reduction="first"), device="cpu"
    ),
    "poly-symmetric": lambda folder: tercet.PolyEncoder.from_backbone(
        folder, config=tercet.PolyConfig(codes=4, symmetric=True, towers=1), device="cpu"
    ),
    "cross": lambda folder: tercet.CrossEncoder.from_backbone(folder, device="cpu"),
    "cross-classes": lambda folder: tercet.CrossEncoder.from_backbone(
        folder, config=tercet.CrossConfig(num_labels=3, head="dense"), device="cpu"
    ),
}
DUAL = ("in_batch", "margin_mse", "kl_divergence")
FITTING = [
    *[("bi", kind) for kind in ("softmax", "cosine", "cosent", "triplet", *DUAL)],
    *[("bi-two-towers", kind) for kind in ("softmax", "in_batch")],
    *[(name, kind) for name in ("poly", "poly-first", "poly-symmetric") for kind in DUAL],
    *[("cross", kind) for kind in ("bce", "mse", "listwise")],
    ("cross-classes", "cross_entropy"),
]


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = [text for example in (*SCORED, *RANKED) for text in (str(example.context), *example.candidates)]
    tokenizer = make_tokenizer(texts, size=500, lowercase=True, max_tokens=128)
    model = new_masked_lm(
        vocabulary=len(tokenizer), width=32, layers=2, heads=2, positions=128, padding=0, seed=0
    )
    folder = tmp_path_factory.mktemp("backbone")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(("name", "kind"), FITTING)
def test_the_sample_data_is_learnt_perfectly(name: str, kind: Any, backbone: Path) -> None:
    scorer = SCORERS[name](backbone)
    scale = 1.0 if scorer.kind == "cross" else 20.0  # cosines have a small range
    config = ObjectiveConfig(kind=kind, max_score=5, score_scale=scale)
    torch.manual_seed(0)
    objective = make_objective(config, scorer)
    examples = tokenize(scorer, EXAMPLES[kind])
    optimizer = torch.optim.AdamW([*scorer.parameters(), *objective.parameters()], lr=3e-3)
    lowest = first = objective(scorer, examples).item()
    for _ in range(80):
        optimizer.zero_grad()
        loss = objective(scorer, examples)
        loss.backward()
        optimizer.step()
        lowest = min(lowest, loss.item())
    metrics = objective.measure(scorer, EXAMPLES[kind]).metrics
    assert all(value > 0.95 for value in metrics.values()), metrics
    if kind not in ("cosent", "bce"):  # their lowest loss is above 0
        assert lowest < 0.1 * first
