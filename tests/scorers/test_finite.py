"""What a model computes is finite, or an error: no empty ranking, no zeros in place of infinity."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.conftest import SENTENCES, make_folder
from torch import nn

import tercet
from tercet.errors import InputError, ModelError
from tercet.records import Context, Floats, Scores
from tercet.scorers.finite import finite_scores, finite_vectors
from tercet.scorers.scorer import Scorer
from tercet.similar import closest_pairs, clusters

FolderOf = Callable[[str], Path]

QUERY, OTHERS = SENTENCES[0], SENTENCES[1:]

ENCODINGS: dict[str, Callable[[Any], object]] = {
    "encode": lambda scorer: scorer.encode(OTHERS),
    "encode-normalized": lambda scorer: scorer.encode(OTHERS, normalize=True),
    "encode-candidates": lambda scorer: scorer.encode_candidates(OTHERS),
    "encode-contexts": lambda scorer: scorer.encode_contexts([QUERY]),
    "add": lambda scorer: tercet.Retriever(scorer).add(OTHERS),
}

USES: dict[str, Callable[[Any], object]] = {
    "score": lambda scorer: scorer.score(QUERY, OTHERS),
    "score-many": lambda scorer: scorer.score_many([QUERY], OTHERS),
    "score-pairs": lambda scorer: scorer.score_pairs([QUERY], OTHERS[:1]),
    "rank": lambda scorer: scorer.rank(QUERY, OTHERS),
    "rank-many": lambda scorer: scorer.rank_many([QUERY], OTHERS),
    "explain": lambda scorer: scorer.explain(QUERY, OTHERS[0]),
    "explain-by-words": lambda scorer: scorer.explain(QUERY, OTHERS[0], leave_one_out=True),
}


def overflow(scorer: Any) -> Any:
    """The scorer with weights that are finite and outputs that are not."""
    for module in scorer.modules():
        if isinstance(module, nn.LayerNorm):
            module.weight.data.fill_(1e38)
    return scorer


def bi(folder: Path, **config: Any) -> tercet.BiEncoder:
    return tercet.BiEncoder.from_backbone(folder, config=tercet.BiConfig(**config), device="cpu")


def poly(folder: Path, **config: Any) -> tercet.PolyEncoder:
    return tercet.PolyEncoder.from_backbone(folder, config=tercet.PolyConfig(codes=4, **config), device="cpu")


def cross(folder: Path, **config: Any) -> tercet.CrossEncoder:
    return tercet.CrossEncoder.from_backbone(folder, config=tercet.CrossConfig(**config), device="cpu")


DUAL: dict[str, Callable[[Path], Any]] = {
    "bi-cosine": bi,
    "bi-dot": lambda folder: bi(folder, similarity="dot"),
    "poly": poly,
    "poly-cosine": lambda folder: poly(folder, similarity="cosine"),
}

ALL: dict[str, Callable[[Path], Any]] = {
    **DUAL,
    "cross": cross,
    "cross-sigmoid": lambda folder: cross(folder, activation="sigmoid", head="dense"),
    "cross-compare": lambda folder: cross(folder, head="compare"),
    "cross-native": lambda folder: cross(folder, head="native"),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", ALL)
def test_scores_that_are_not_finite_are_an_error(tiny_folder: FolderOf, kind: str, use: str) -> None:
    scorer = overflow(ALL[kind](tiny_folder("bert")))
    with pytest.raises(ModelError, match=r"of a model must be finite, and .* are NaN, infinite or too large"):
        USES[use](scorer)


@pytest.mark.parametrize("use", ENCODINGS)
@pytest.mark.parametrize("kind", DUAL)
def test_vectors_that_are_not_finite_are_an_error(tiny_folder: FolderOf, kind: str, use: str) -> None:
    scorer = overflow(DUAL[kind](tiny_folder("bert")))
    with pytest.raises(ModelError, match="the vectors of a model must be finite"):
        ENCODINGS[use](scorer)


def test_classes_that_are_not_finite_are_an_error(tiny_folder: FolderOf) -> None:
    scorer = overflow(cross(tiny_folder("bert"), num_labels=3))
    with pytest.raises(ModelError, match="the scores of a model must be finite"):
        scorer.classify([QUERY], OTHERS[:1])


def test_pairs_and_clusters_of_vectors_that_are_not_finite_are_an_error(tiny: tercet.BiEncoder) -> None:
    overflow(tiny)
    for find in (closest_pairs, clusters):
        with pytest.raises(ModelError, match="must be finite"):
            find(tiny, SENTENCES)


def test_a_search_with_codes_that_are_not_finite_is_an_error(tiny_folder: FolderOf) -> None:
    """Only the tower of contexts is broken: candidates can be added."""
    retriever = tercet.Retriever(bi(tiny_folder("bert"), towers=2))
    retriever.add(OTHERS)
    overflow(retriever.scorer.context_tower)
    with pytest.raises(ModelError, match="must be finite"):
        retriever.search(QUERY)


def test_a_reranker_whose_scores_are_not_finite_is_an_error(tiny: tercet.BiEncoder) -> None:
    retriever = tercet.Retriever(tiny, reranker=NotANumber())
    retriever.add(OTHERS)
    with pytest.raises(ModelError, match="must be finite"):
        retriever.search(QUERY)


def test_no_file_is_left_of_vectors_that_are_not_finite(tiny: tercet.BiEncoder, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="must be finite"):
        overflow(tiny).encode(OTHERS, tmp_path / "vectors.npy")
    assert not list(tmp_path.iterdir())


def test_a_folder_whose_norms_overflow_loads_and_its_scores_are_an_error(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    weights["encoder.layer.1.output.LayerNorm.weight"] = torch.full((16,), 1e38)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match="must be finite"):
        tercet.load(folder, device="cpu").rank(QUERY, OTHERS)


@pytest.mark.parametrize("kind", ["bi-cosine", "poly-cosine"])
def test_a_norm_beyond_float32_does_not_become_a_score_of_zero(tiny_folder: FolderOf, kind: str) -> None:
    """Numbers of 1e30 are finite, and their squares are not."""
    scorer = DUAL[kind](tiny_folder("bert"))
    last = [module for module in scorer.modules() if isinstance(module, nn.LayerNorm)][-1]
    last.weight.data.fill_(1e30)
    with pytest.raises(ModelError, match="must be finite"):
        scorer.score(QUERY, OTHERS)


def test_an_infinite_output_does_not_become_a_probability_of_one(tiny_folder: FolderOf) -> None:
    scorer = cross(tiny_folder("bert"), activation="sigmoid", head="linear")
    scorer.head.linear.bias.data.fill_(float("inf"))
    with pytest.raises(ModelError, match="must be finite"):
        scorer.score(QUERY, OTHERS)


class NotANumber(Scorer):
    """A scorer of another library: it takes part in the check without a line of its own."""

    def _scores(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Scores:
        shape = len(contexts), len(candidates)
        none = np.zeros(shape, dtype=np.int64)
        return Scores(np.full(shape, np.nan, dtype=np.float32), none, none)

    def _pair_scores(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Floats:
        return np.full(len(contexts), np.nan, dtype=np.float32)


@pytest.mark.parametrize("use", USES)
def test_every_scorer_is_checked(use: str) -> None:
    with pytest.raises(ModelError, match="must be finite"):
        USES[use](NotANumber())


def test_the_error_counts_the_scores_that_are_not_finite() -> None:
    scores = np.array([[1.0, np.nan, 2.0], [np.inf, 3.0, -np.inf]], dtype=np.float32)
    with pytest.raises(ModelError, match="3 of 6 are NaN"):
        finite_scores(scores)


def test_large_finite_numbers_pass() -> None:
    scores = np.full(3, 3e38, dtype=np.float32)
    assert finite_scores(scores) is scores
    vectors = np.full((1000, 2), 1e19, dtype=np.float32)  # only the sum of all squares overflows
    assert finite_vectors(vectors) is vectors


def test_vectors_given_by_the_user_must_be_finite(tiny: tercet.BiEncoder) -> None:
    vectors = tiny.encode(SENTENCES)
    broken = vectors.copy()
    broken[2, 3] = np.nan
    with pytest.raises(InputError, match="second contains NaN or infinity"):
        tiny.similarity(vectors, broken)
