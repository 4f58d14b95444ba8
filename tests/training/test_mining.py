"""Hard negatives: near misses, never answers, and the same as a look at all pairs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tercet
from tercet.data.sample import questions
from tercet.errors import DataError, InputError
from tercet.records import Lesson
from tercet.training import mining
from tercet.training.mining import ByModel, MiningConfig, mine

FolderOf = Callable[[str], Path]

LESSONS = [Lesson(question.context, (question.answer,)) for question in questions("en")[:40]]


@pytest.mark.parametrize("by", ["bm25", "model"])
def test_negatives_score_less_than_the_answer_by_the_margin(by: Any, minilm: tercet.BiEncoder) -> None:
    found = list(mine(LESSONS, minilm, MiningConfig(by=by, negatives=3, depth=20, margin=0.1)))
    assert [lesson.context for lesson in found] == [lesson.context for lesson in LESSONS]
    assert sum(len(lesson.candidates) for lesson in found) > 2.5 * len(found)
    for before, lesson in zip(LESSONS, found, strict=True):
        answer, *negatives = lesson.candidates
        assert answer == before.candidates[0]
        assert answer not in negatives
        scores = minilm.score(lesson.context, lesson.candidates)
        assert all(score <= scores[0] - 0.1 + 1e-5 for score in scores[1:])


def test_a_model_finds_what_a_look_at_all_pairs_finds(
    minilm: tercet.BiEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mining, "CANDIDATES_AT_ONCE", 7)  # several blocks
    contexts = [lesson.context for lesson in LESSONS]
    vectors = minilm.encode_candidates([lesson.candidates[0] for lesson in LESSONS])
    codes = minilm.encode_contexts(contexts)
    found = ByModel(minilm, vectors).search(contexts, codes, 5)
    assert np.array_equal(found, np.argsort(-minilm.match(codes, vectors), axis=1, kind="stable")[:, :5])


def test_other_answers_of_a_context_are_no_negatives(minilm: tercet.BiEncoder) -> None:
    lessons = [*LESSONS, Lesson(LESSONS[0].context, ("Change your password in the settings.",))]
    found = list(mine(lessons, minilm, MiningConfig(by="model", margin=0, depth=50, negatives=50)))
    assert "Change your password in the settings." not in found[0].candidates
    assert LESSONS[0].candidates[0] not in found[-1].candidates[1:]


def test_a_larger_margin_leaves_fewer(minilm: tercet.BiEncoder) -> None:
    counts = [
        sum(
            len(lesson.candidates)
            for lesson in mine(LESSONS, minilm, MiningConfig(by="model", margin=margin, negatives=40))
        )
        for margin in (0.0, 0.3)
    ]
    assert counts[1] < counts[0]


def test_a_poly_encoder_mines_too(tiny_folder: FolderOf) -> None:
    scorer = tercet.PolyEncoder.from_backbone(
        tiny_folder("bert"), config=tercet.PolyConfig(codes=3), device="cpu"
    )
    lessons = [Lesson(f"the {n}", (f"a {n} dog",)) for n in "abcdef"]
    found = list(mine(lessons, scorer, MiningConfig(by="model", margin=0, negatives=2)))
    assert len(found) == 6


def test_negatives_that_are_there_stay(minilm: tercet.BiEncoder) -> None:
    lessons = [Lesson(lesson.context, (*lesson.candidates, "given")) for lesson in LESSONS[:5]]
    assert all(lesson.candidates[1] == "given" for lesson in mine(lessons, minilm, MiningConfig()))


def test_pairs_with_scores_are_no_answers(minilm: tercet.BiEncoder) -> None:
    with pytest.raises(DataError, match="file, line 1: negatives are mined for answers"):
        list(mine([Lesson("a", ("b",), (0.0,), "file, line 1")], minilm, MiningConfig()))


def test_nothing_to_mine_for_is_said(minilm: tercet.BiEncoder) -> None:
    with pytest.raises(DataError, match="no lessons"):
        list(mine([], minilm, MiningConfig()))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"by": "luck"}, "by must be one of bm25, model"),
        ({"negatives": 0}, "negatives must be at least 1"),
        ({"margin": -1}, "margin must be a number of at least 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        MiningConfig(**settings)
