"""Candidates on the model's device: the results of ``rank`` and ``score`` over the same texts."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.conftest import SENTENCES

import tercet
from tercet.errors import InputError
from tercet.scorers.dual import DualEncoder

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CONFIGS = {
    "bi": tercet.BiConfig(),
    "bi-dot": tercet.BiConfig(similarity="dot"),
    "poly": tercet.PolyConfig(codes=4),
    "poly-last": tercet.PolyConfig(codes=4, code_kind="last"),
}


@pytest.fixture(params=CONFIGS)
def scorer(request: pytest.FixtureRequest, tiny_folder: Callable[[str], Path]) -> DualEncoder:
    config = CONFIGS[request.param]
    kind = tercet.BiEncoder if isinstance(config, tercet.BiConfig) else tercet.PolyEncoder
    return kind.from_backbone(tiny_folder("bert"), config=config, device=DEVICE)  # type: ignore[arg-type]


@pytest.mark.parametrize("storage", ["float32", "bfloat16", "int8"])
def test_a_ranking_equals_that_of_the_texts(storage: str, scorer: DualEncoder) -> None:
    kept = scorer.device_candidates(SENTENCES, storage=storage)  # type: ignore[arg-type]
    assert list(kept) == SENTENCES
    found, expected = (scorer.rank_many(SENTENCES[:3], candidates, k=4) for candidates in (kept, SENTENCES))
    for ours, theirs in zip(found, expected, strict=True):
        assert [(one.position, one.text) for one in ours] == [(one.position, one.text) for one in theirs]
        np.testing.assert_allclose([one.score for one in ours], [one.score for one in theirs], rtol=1e-4)
    assert scorer.rank(SENTENCES[0], kept, k=4) == found[0]


def test_scores_equal_those_of_the_texts_but_for_rounding(scorer: DualEncoder) -> None:
    exact, rounded = (scorer.device_candidates(SENTENCES, storage=each) for each in ("float32", "bfloat16"))
    expected = scorer.score_many(SENTENCES[:3], SENTENCES)
    np.testing.assert_allclose(scorer.score_many(SENTENCES[:3], exact), expected, rtol=1e-4, atol=1e-4)
    close = np.abs(expected).max() * 2e-2
    np.testing.assert_allclose(scorer.score_many(SENTENCES[:3], rounded), expected, atol=close)
    np.testing.assert_allclose(scorer.score(SENTENCES[0], rounded), expected[0], atol=close)


def test_candidates_on_the_device_are_not_encoded_again(
    scorer: DualEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = scorer.device_candidates(SENTENCES)

    def encode_again(ids: object) -> None:
        raise AssertionError

    monkeypatch.setattr(scorer, "candidate_vectors", encode_again)
    assert len(scorer.rank(SENTENCES[0], kept, k=3)) == 3
    assert scorer.score(SENTENCES[0], kept).shape == (len(SENTENCES),)


def test_encoded_contexts_are_matched_with_vectors_on_the_device(scorer: DualEncoder) -> None:
    codes = scorer.encode_contexts(SENTENCES[:2])
    kept = scorer.device_candidates(SENTENCES, storage="float32")
    expected = scorer.match(codes, scorer.encode_candidates(SENTENCES))
    np.testing.assert_allclose(scorer.match(codes, kept.vectors), expected, rtol=1e-4, atol=1e-4)


def test_candidates_of_another_model_are_refused(tiny_folder: Callable[[str], Path]) -> None:
    first, second = (
        tercet.PolyEncoder.from_backbone(tiny_folder("bert"), config=tercet.PolyConfig(codes=count))
        for count in (2, 3)
    )
    kept = first.device_candidates(SENTENCES)
    for ask in (second.rank, second.score):
        with pytest.raises(InputError, match=r"encoded by model .*, asked by .*: encode them again"):
            ask(SENTENCES[0], kept)


def test_a_symmetric_score_has_no_candidates_on_a_device(tiny_folder: Callable[[str], Path]) -> None:
    config = tercet.PolyConfig(codes=4, towers=1, symmetric=True)
    scorer = tercet.PolyEncoder.from_backbone(tiny_folder("bert"), config=config)
    with pytest.raises(InputError, match="a symmetric score needs codes and vectors of both texts"):
        scorer.device_candidates(SENTENCES)
