"""Public scoring matches on the device of the model.

The model runs on a CPU, but its encoders hand out tensors on torch's "meta" device, which has shapes and no
data: every copy to the CPU or to numpy before ``match_tensors`` is an error.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.conftest import SENTENCES
from torch import Tensor

import tercet
from tercet.records import Codes
from tercet.scorers.codes import CodeTensors
from tercet.scorers.dual import DualEncoder

FolderOf = Callable[[str], Path]

META = torch.device("meta")
SCORERS: dict[str, Callable[[Path], DualEncoder]] = {
    "bi": lambda folder: tercet.BiEncoder.from_backbone(folder, device="cpu"),
    "poly": lambda folder: tercet.PolyEncoder.from_backbone(
        folder, config=tercet.PolyConfig(codes=4), device="cpu"
    ),
    "poly-last": lambda folder: tercet.PolyEncoder.from_backbone(
        folder, config=tercet.PolyConfig(codes=4, code_kind="last"), device="cpu"
    ),
    "poly-symmetric": lambda folder: tercet.PolyEncoder.from_backbone(
        folder, config=tercet.PolyConfig(codes=4, towers=1, symmetric=True), device="cpu"
    ),
}


class Matches:
    """Stands in for ``match_tensors``: checks the devices, counts the calls, and scores everything 1."""

    def __init__(self) -> None:
        self.calls = 0
        self.candidates: Tensor | None = None

    def __call__(self, codes: CodeTensors, candidates: Tensor) -> Tensor:
        assert {codes.vectors.device, codes.mask.device, candidates.device} == {META}
        self.calls += 1
        self.candidates = candidates
        return torch.ones(len(codes.vectors), candidates.shape[-2])


@pytest.fixture(params=SCORERS)
def scorer(
    request: pytest.FixtureRequest, tiny_folder: FolderOf, monkeypatch: pytest.MonkeyPatch
) -> DualEncoder:
    """A scorer that appears to be on the meta device."""
    scorer = SCORERS[request.param](tiny_folder("bert"))
    context_codes, candidate_vectors = scorer.context_codes, scorer.candidate_vectors

    def codes_on_meta(ids: Any) -> CodeTensors:
        return CodeTensors(*(tensor.to(META) for tensor in context_codes(ids)))

    monkeypatch.setattr(scorer, "context_codes", codes_on_meta)
    monkeypatch.setattr(scorer, "candidate_vectors", lambda ids: candidate_vectors(ids).to(META))
    monkeypatch.setattr(type(scorer), "device", property(lambda _: META))
    return scorer


@pytest.fixture
def matches(scorer: DualEncoder, monkeypatch: pytest.MonkeyPatch) -> Matches:
    matches = Matches()
    monkeypatch.setattr(scorer, "match_tensors", matches)
    return matches


@pytest.mark.parametrize(
    ("score", "shape"),
    [
        (lambda scorer: scorer.score(SENTENCES[0], SENTENCES), (len(SENTENCES),)),
        (lambda scorer: scorer.score_many(SENTENCES[:3], SENTENCES), (3, len(SENTENCES))),
        (lambda scorer: scorer.score_pairs(SENTENCES, SENTENCES[::-1]), (len(SENTENCES),)),
    ],
    ids=["score", "score_many", "score_pairs"],
)
def test_texts_are_scored_on_the_device_of_the_model(
    score: Callable[[DualEncoder], np.ndarray],
    shape: tuple[int, ...],
    scorer: DualEncoder,
    matches: Matches,
) -> None:
    np.testing.assert_array_equal(score(scorer), np.ones(shape))
    assert matches.calls == (2 if scorer.is_symmetric else 1)  # a symmetric score has two directions


def test_rank_scores_on_the_device_of_the_model(scorer: DualEncoder, matches: Matches) -> None:
    assert [ranked.score for ranked in scorer.rank(SENTENCES[0], SENTENCES, k=2)] == [1, 1]
    assert matches.calls > 0


CODES = Codes(np.ones((2, 4, 16), dtype=np.float32), np.ones((2, 4), dtype=np.bool_))


@pytest.mark.parametrize("shape", [(5, 16), (2, 5, 16)], ids=["shared", "own"])
@pytest.mark.parametrize("scorer", ["bi", "poly", "poly-last"], indirect=True)
def test_encoded_texts_are_matched_on_the_device_of_the_model(
    shape: tuple[int, ...], scorer: DualEncoder, matches: Matches
) -> None:
    scores = scorer.match(CODES, np.ones(shape, dtype=np.float32))
    np.testing.assert_array_equal(scores, np.ones((2, 5)))
    assert matches.calls == 1


@pytest.mark.parametrize("scorer", ["bi", "poly"], indirect=True)
def test_vectors_on_the_device_of_the_model_are_matched_without_a_copy(
    scorer: DualEncoder, matches: Matches
) -> None:
    vectors = torch.empty(5, 16, device=META)
    scorer.match(CODES, vectors)
    assert matches.candidates is vectors
