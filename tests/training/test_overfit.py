"""A tiny model with random weights learns the sample data by heart, with every objective and scorer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

import tercet
from tercet.data.sample import pairs, questions
from tercet.records import Lesson
from tercet.training.examples import tokenise
from tercet.training.masked_lm import new_masked_lm
from tercet.training.measures import measure
from tercet.training.objectives import make_objective
from tercet.training.settings import ObjectiveConfig
from tercet.training.vocabulary import make_tokenizer

COUNT = 10
QUESTIONS = questions("en")[:COUNT]
PAIRS = pairs("en")[:COUNT]

SCORED = [Lesson(pair.context, (pair.candidate,), (pair.score,)) for pair in PAIRS]
LABELLED = [Lesson(pair.context, (pair.candidate,), (float(place % 3),)) for place, pair in enumerate(PAIRS)]
RANKED = [
    Lesson(question.context, (question.answer, QUESTIONS[place - 1].answer, QUESTIONS[place - 2].answer))
    for place, question in enumerate(QUESTIONS)
]
TRIPLETS = [Lesson(lesson.context, lesson.candidates[:2]) for lesson in RANKED]
TAUGHT = [
    Lesson(lesson.context, lesson.candidates, (3.0, -1.0, float(place % 2)))
    for place, lesson in enumerate(RANKED)
]

LESSONS: dict[str, Sequence[Lesson]] = {
    "softmax": LABELLED,
    "classes": LABELLED,
    "cosine": SCORED,
    "order": SCORED,
    "regression": SCORED,
    "triplet": TRIPLETS,
    "in_batch": RANKED,
    "ranking": RANKED,
    "margin_mse": TAUGHT,
    "distribution": TAUGHT,
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
        folder, config=tercet.CrossConfig(outputs=3, head="dense"), device="cpu"
    ),
}
DUAL = ("in_batch", "margin_mse", "distribution")
FITTING = [
    *[("bi", kind) for kind in ("softmax", "cosine", "order", "triplet", *DUAL)],
    *[("bi-two-towers", kind) for kind in ("softmax", "in_batch")],
    *[(name, kind) for name in ("poly", "poly-first", "poly-symmetric") for kind in DUAL],
    *[("cross", kind) for kind in ("regression", "ranking")],
    ("cross-classes", "classes"),
]


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = [text for lesson in (*SCORED, *RANKED) for text in (str(lesson.context), *lesson.candidates)]
    tokenizer = make_tokenizer(texts, size=500, lowercase=True, max_tokens=128)
    model = new_masked_lm(
        vocabulary=len(tokenizer), width=32, layers=2, heads=2, positions=128, padding=0, seed=0
    )
    folder = tmp_path_factory.mktemp("backbone")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(("name", "kind"), FITTING)
def test_the_sample_data_is_learnt_by_heart(name: str, kind: Any, backbone: Path) -> None:
    scorer = SCORERS[name](backbone)
    scale = 20.0 if scorer.kind == "bi" else 1.0  # cosines alone cannot lead by much
    config = ObjectiveConfig(kind=kind, highest=5, score_scale=scale)
    torch.manual_seed(0)
    objective = make_objective(config, scorer)
    examples = tokenise(scorer, LESSONS[kind])
    optimiser = torch.optim.AdamW([*scorer.parameters(), *objective.parameters()], lr=3e-3)
    lowest = first = objective(scorer, examples).item()
    for _ in range(80):
        optimiser.zero_grad()
        loss = objective(scorer, examples)
        loss.backward()
        optimiser.step()
        lowest = min(lowest, loss.item())
    found = measure(scorer, LESSONS[kind], config)
    assert all(value > 0.95 for value in found.values()), found
    if kind not in ("order", "regression"):  # which have a floor above 0
        assert lowest < 0.1 * first
