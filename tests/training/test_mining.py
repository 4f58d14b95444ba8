"""Mined negatives score high, are never answers, and equal those of an exhaustive search."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tercet
from tercet.data.sample import questions
from tercet.errors import DataError, InputError
from tercet.records import Example
from tercet.settings.mining import MiningConfig
from tercet.training import mining
from tercet.training.mining import ModelSearcher, mine

FolderOf = Callable[[str], Path]

EXAMPLES = [Example(question.context, (question.answer,)) for question in questions("en")[:40]]


@pytest.mark.parametrize("by", ["bm25", "model"])
def test_negatives_score_less_than_the_answer_by_the_margin(by: Any, minilm: tercet.BiEncoder) -> None:
    found = list(mine(EXAMPLES, minilm, MiningConfig(by=by, negatives=3, depth=20, margin=0.1)))
    assert [example.context for example in found] == [example.context for example in EXAMPLES]
    assert sum(len(example.candidates) for example in found) > 2.5 * len(found)
    for before, example in zip(EXAMPLES, found, strict=True):
        answer, *negatives = example.candidates
        assert answer == before.candidates[0]
        assert answer not in negatives
        scores = minilm.score(example.context, example.candidates)
        assert all(score <= scores[0] - 0.1 + 1e-5 for score in scores[1:])


def test_a_model_searcher_equals_exhaustive_search(
    minilm: tercet.BiEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mining, "CANDIDATES_AT_ONCE", 7)  # several blocks
    contexts = [example.context for example in EXAMPLES]
    vectors = minilm.encode_candidates([example.candidates[0] for example in EXAMPLES])
    codes = minilm.encode_contexts(contexts)
    found = ModelSearcher(minilm, vectors).search(contexts, codes, 5)
    assert np.array_equal(found, np.argsort(-minilm.match(codes, vectors), axis=1, kind="stable")[:, :5])


def test_other_answers_of_a_context_are_not_negatives(minilm: tercet.BiEncoder) -> None:
    examples = [*EXAMPLES, Example(EXAMPLES[0].context, ("Change your password in the settings.",))]
    found = list(mine(examples, minilm, MiningConfig(by="model", margin=0, depth=50, negatives=50)))
    assert "Change your password in the settings." not in found[0].candidates
    assert EXAMPLES[0].candidates[0] not in found[-1].candidates[1:]


def test_a_larger_margin_yields_fewer_negatives(minilm: tercet.BiEncoder) -> None:
    counts = [
        sum(
            len(example.candidates)
            for example in mine(EXAMPLES, minilm, MiningConfig(by="model", margin=margin, negatives=40))
        )
        for margin in (0.0, 0.3)
    ]
    assert counts[1] < counts[0]


def test_a_poly_encoder_mines_negatives(tiny_folder: FolderOf) -> None:
    scorer = tercet.PolyEncoder.from_backbone(
        tiny_folder("bert"), config=tercet.PolyConfig(codes=3), device="cpu"
    )
    examples = [Example(f"the {n}", (f"a {n} dog",)) for n in "abcdef"]
    found = list(mine(examples, scorer, MiningConfig(by="model", margin=0, negatives=2)))
    assert len(found) == 6


def test_given_negatives_are_kept(minilm: tercet.BiEncoder) -> None:
    examples = [Example(example.context, (*example.candidates, "given")) for example in EXAMPLES[:5]]
    assert all(example.candidates[1] == "given" for example in mine(examples, minilm, MiningConfig()))


def test_scored_pairs_are_refused(minilm: tercet.BiEncoder) -> None:
    with pytest.raises(DataError, match="file, line 1: mining needs answers, and this row has a score"):
        list(mine([Example("a", ("b",), (0.0,), "file, line 1")], minilm, MiningConfig()))


def test_mining_needs_examples(minilm: tercet.BiEncoder) -> None:
    with pytest.raises(DataError, match="there are no examples to mine negatives for"):
        list(mine([], minilm, MiningConfig()))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"by": "luck"}, "by must be one of bm25, model"),
        ({"negatives": 0}, "negatives must be at least 1"),
        ({"margin": -1}, "margin must be a number of at least 0"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        MiningConfig(**settings)
