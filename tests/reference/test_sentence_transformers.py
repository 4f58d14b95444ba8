"""Bi-encoders exchanged with sentence-transformers have equal vectors, in both directions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Router, Transformer
from tests.conftest import SENTENCES, make_folder

import tercet
from tercet.data.sample import pairs, questions
from tercet.errors import TruncationWarning

TOLERANCE = 1e-5
FolderOf = Callable[[str], Path]


def assert_equal_vectors(ours: tercet.BiEncoder, theirs: SentenceTransformer, texts: list[str]) -> None:
    """Contexts equal their queries, and candidates their documents."""
    np.testing.assert_allclose(
        ours.encode_contexts(texts).vectors[:, 0], theirs.encode_query(texts), atol=TOLERANCE, rtol=TOLERANCE
    )
    np.testing.assert_allclose(
        ours.encode_candidates(texts), theirs.encode_document(texts), atol=TOLERANCE, rtol=TOLERANCE
    )


def their_model(folder: Path, *modules: Any, **settings: Any) -> SentenceTransformer:
    transformer = Transformer(str(folder))
    return SentenceTransformer(modules=[transformer, *modules], device="cpu", **settings)


def exchange(theirs: SentenceTransformer, tmp_path: Path, texts: list[str] = SENTENCES) -> tercet.BiEncoder:
    """Their model loaded by tercet, saved, and loaded by both; returns ours."""
    theirs.save(str(tmp_path / "theirs"))
    ours = tercet.load(tmp_path / "theirs", device="cpu")
    assert_equal_vectors(ours, theirs, texts)
    back = SentenceTransformer(str(ours.save(tmp_path / "ours")), device="cpu")
    assert_equal_vectors(ours, back, texts)
    assert_equal_vectors(tercet.load(tmp_path / "ours", device="cpu"), theirs, texts)
    return ours


def test_the_packaged_model_has_equal_vectors(minilm: tercet.BiEncoder, tmp_path: Path) -> None:
    texts = [question.answer for question in [*questions("en"), *questions("ko")]]
    texts += [pair.context for pair in pairs("en")]
    theirs = SentenceTransformer(str(minilm.save(tmp_path / "minilm")), device="cpu")
    assert_equal_vectors(minilm, theirs, texts)


def test_a_long_text_is_truncated_at_the_same_token(minilm: tercet.BiEncoder) -> None:
    from tercet.formats.backbone import backbone_folder

    theirs = SentenceTransformer(str(backbone_folder()), device="cpu")
    text = " ".join(question.answer for question in questions("en"))
    with pytest.warns(TruncationWarning):
        ours = tercet.load("bi", device="cpu").encode_candidates([text])
    np.testing.assert_allclose(ours, theirs.encode([text]), atol=TOLERANCE)


@pytest.mark.parametrize(
    "mode",
    [
        "cls",
        "max",
        "mean",
        "mean_sqrt_len_tokens",
        "weightedmean",
        "lasttoken",
        ("mean", "max"),
        ("max", "cls"),
    ],
)
def test_every_pooling_is_exchanged(
    mode: str | tuple[str, ...], tiny_folder: FolderOf, tmp_path: Path
) -> None:
    exchange(their_model(tiny_folder("bert"), Pooling(16, pooling_mode=mode)), tmp_path)


@pytest.mark.parametrize(
    "architecture", ["distilbert", "electra", "modernbert", "mpnet", "roberta", "xlm-roberta"]
)
def test_every_architecture_is_exchanged(architecture: str, tiny_folder: FolderOf, tmp_path: Path) -> None:
    exchange(their_model(tiny_folder(architecture), Pooling(16), Normalize()), tmp_path)


@pytest.mark.parametrize(
    "dense",
    [
        pytest.param({"out_features": 8}, id="tanh"),
        pytest.param(
            {"out_features": 8, "bias": False, "activation_function": torch.nn.Identity()}, id="plain"
        ),
        pytest.param(
            {"out_features": 16, "activation_function": torch.nn.GELU(), "use_residual": True}, id="residual"
        ),
        pytest.param({"out_features": 8, "use_residual": True}, id="projected-residual"),
    ],
)
def test_every_dense_layer_is_exchanged(dense: dict[str, Any], tiny_folder: FolderOf, tmp_path: Path) -> None:
    torch.manual_seed(1)
    exchange(their_model(tiny_folder("bert"), Pooling(16), Dense(16, **dense), Normalize()), tmp_path)


def test_several_dense_layers_keep_their_order(tiny_folder: FolderOf, tmp_path: Path) -> None:
    torch.manual_seed(1)
    ours = exchange(
        their_model(tiny_folder("bert"), Pooling(16), Dense(16, 12), Normalize(), Dense(12, 4)), tmp_path
    )
    assert ours.width == 4


@pytest.mark.parametrize("include_prompt", [True, False])
def test_prompts_are_exchanged(include_prompt: bool, tiny_folder: FolderOf, tmp_path: Path) -> None:
    pooling = Pooling(16, include_prompt=include_prompt)
    prompts = {"query": "one two three ", "document": "old new "}
    ours = exchange(their_model(tiny_folder("bert"), pooling, prompts=prompts), tmp_path)
    assert ours.config.context_prompt == "one two three "
    assert ours.config.candidate_prompt == "old new "


def test_a_passage_prompt_is_the_candidate_prompt(tiny_folder: FolderOf, tmp_path: Path) -> None:
    prompts = {"query": "one two ", "passage": "old new "}
    theirs = their_model(tiny_folder("bert"), Pooling(16), prompts=prompts)
    theirs.save(str(tmp_path / "theirs"))
    ours = tercet.load(tmp_path / "theirs", device="cpu").encode_candidates(SENTENCES)
    np.testing.assert_allclose(ours, theirs.encode(SENTENCES, prompt_name="passage"), atol=TOLERANCE)


def test_a_default_prompt_is_the_prompt_of_both_sides(tiny_folder: FolderOf, tmp_path: Path) -> None:
    settings = {"prompts": {"retrieve": "ten nine "}, "default_prompt_name": "retrieve"}
    theirs = their_model(tiny_folder("bert"), Pooling(16), **settings)
    theirs.save(str(tmp_path / "theirs"))
    ours = tercet.load(tmp_path / "theirs", device="cpu")
    np.testing.assert_allclose(ours.encode_candidates(SENTENCES), theirs.encode(SENTENCES), atol=TOLERANCE)
    np.testing.assert_allclose(
        ours.encode_contexts(SENTENCES).vectors[:, 0], theirs.encode(SENTENCES), atol=TOLERANCE
    )


def test_a_model_with_truncated_dimensions_is_exchanged(tiny_folder: FolderOf, tmp_path: Path) -> None:
    ours = exchange(their_model(tiny_folder("bert"), Pooling(16), truncate_dim=5), tmp_path)
    assert ours.width == 5


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_scores_equal_their_similarity(similarity: str, tiny_folder: FolderOf, tmp_path: Path) -> None:
    theirs = their_model(tiny_folder("bert"), Pooling(16), similarity_fn_name=similarity)
    ours = exchange(theirs, tmp_path)
    expected = theirs.similarity(theirs.encode(SENTENCES[:3]), theirs.encode(SENTENCES))
    np.testing.assert_allclose(ours.score_many(SENTENCES[:3], SENTENCES), expected, rtol=1e-5, atol=1e-5)


def test_two_towers_are_exchanged(tmp_path: Path) -> None:
    towers = [make_folder(tmp_path / name, seed=seed) for seed, name in enumerate(("left", "right"))]
    routes = [
        [Transformer(str(folder)), Pooling(16, mode)]
        for folder, mode in zip(towers, ("mean", "max"), strict=True)
    ]
    router = Router.for_query_document(*routes)
    ours = exchange(SentenceTransformer(modules=[router, Normalize()], device="cpu"), tmp_path)
    assert ours.config.towers == 2


def test_lowercasing_is_exchanged(tiny_folder: FolderOf, tmp_path: Path) -> None:
    transformer = Transformer(str(tiny_folder("bert")), do_lower_case=True)
    theirs = SentenceTransformer(modules=[transformer, Pooling(16)], device="cpu")
    exchange(theirs, tmp_path, [*SENTENCES, "The CAT sat"])


def test_a_shorter_maximum_length_is_exchanged(tiny_folder: FolderOf, tmp_path: Path) -> None:
    theirs = their_model(tiny_folder("bert"), Pooling(16))
    theirs.max_seq_length = 6
    with pytest.warns(TruncationWarning):
        exchange(theirs, tmp_path)


def test_sentence_transformers_refuses_a_pooling_that_only_tercet_has(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    pooling = tercet.PoolingConfig(kinds=("mean_first",), first_tokens=3)
    ours = tercet.BiEncoder.from_backbone(tiny_folder("bert"), pooling=pooling, device="cpu")
    folder = ours.save(tmp_path / "ours")
    with pytest.raises((ValueError, ImportError)):
        SentenceTransformer(str(folder), device="cpu")
    loaded = tercet.load(folder, device="cpu")
    assert loaded.context_tower.pooling == pooling
    np.testing.assert_array_equal(loaded.encode_candidates(SENTENCES), ours.encode_candidates(SENTENCES))
