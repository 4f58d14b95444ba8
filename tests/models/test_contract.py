"""What every scorer promises, over every pooling, tower and precision; a new kind joins by one line."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import SENTENCES

import tercet
from tercet.config import POOLING_KINDS, PRECISIONS, BatchConfig

NEIGHBOUR_TOLERANCE = {"fp32": 1e-6, "bf16": 1e-2}
"""How far a score (a cosine) may move with what else is in the batch."""

BF16_TOLERANCE = 3e-2
"""How far a bf16 score of these tiny, wild models may be from the fp32 one."""

KINDS = [
    (pooling, towers, precision) for pooling in POOLING_KINDS for towers in (1, 2) for precision in PRECISIONS
]


@pytest.fixture(params=KINDS, ids=lambda kind: "-".join(map(str, kind)))
def scorer(request: pytest.FixtureRequest, tiny_folder: Callable[[str], Path]) -> tercet.BiEncoder:
    pooling, towers, precision = request.param
    return build(tiny_folder("bert"), pooling, towers, precision)


def build(folder: Path, pooling: str, towers: int, precision: str) -> tercet.BiEncoder:
    return tercet.BiEncoder.from_backbone(
        folder,
        pooling=tercet.PoolingConfig(kinds=(pooling,), first_tokens=3),  # type: ignore[arg-type]
        config=tercet.BiConfig(towers=towers),
        precision=precision,  # type: ignore[arg-type]
        device="cpu",
    )


def test_a_score_does_not_depend_on_its_neighbours(scorer: tercet.BiEncoder) -> None:
    together = scorer.score(SENTENCES[0], SENTENCES)
    alone = [scorer.score(SENTENCES[0], [text])[0] for text in SENTENCES]
    np.testing.assert_allclose(together, alone, atol=NEIGHBOUR_TOLERANCE[scorer.precision])


def test_a_score_does_not_depend_on_the_order_of_the_candidates(scorer: tercet.BiEncoder) -> None:
    backwards = scorer.score(SENTENCES[0], SENTENCES[::-1])[::-1]
    tolerance = NEIGHBOUR_TOLERANCE[scorer.precision]
    np.testing.assert_allclose(scorer.score(SENTENCES[0], SENTENCES), backwards, atol=tolerance)


def test_a_score_does_not_depend_on_the_size_of_batches(scorer: tercet.BiEncoder) -> None:
    scores = scorer.score(SENTENCES[0], SENTENCES)
    scorer.batching = BatchConfig(tokens=8, window_texts=3)
    tolerance = NEIGHBOUR_TOLERANCE[scorer.precision]
    np.testing.assert_allclose(scorer.score(SENTENCES[0], SENTENCES), scores, atol=tolerance)


def test_scores_are_float32_and_finite(scorer: tercet.BiEncoder) -> None:
    scores = scorer.score(SENTENCES[0], SENTENCES)
    assert scores.dtype == np.float32
    assert np.isfinite(scores).all()


def test_rank_is_score_sorted(scorer: tercet.BiEncoder) -> None:
    scores = scorer.score(SENTENCES[1], SENTENCES)
    ranking = scorer.rank(SENTENCES[1], SENTENCES, k=len(SENTENCES))
    assert [ranked.position for ranked in ranking] == np.argsort(-scores, kind="stable").tolist()
    assert [ranked.score for ranked in ranking] == scores[[ranked.position for ranked in ranking]].tolist()
    assert [ranked.candidate for ranked in ranking] == [SENTENCES[ranked.position] for ranked in ranking]


def test_many_contexts_score_as_each_alone(scorer: tercet.BiEncoder) -> None:
    contexts = [SENTENCES[0], SENTENCES[1:4], SENTENCES[4]]
    together = scorer.score_many(contexts, SENTENCES)
    alone = [scorer.score(context, SENTENCES) for context in contexts]
    np.testing.assert_allclose(together, alone, atol=NEIGHBOUR_TOLERANCE[scorer.precision])


def test_pairs_score_as_in_the_full_table(scorer: tercet.BiEncoder) -> None:
    contexts = [*SENTENCES, SENTENCES[0]]
    candidates = [*SENTENCES[::-1], SENTENCES[2]]
    table = scorer.score_many(contexts, candidates)
    tolerance = NEIGHBOUR_TOLERANCE[scorer.precision]
    np.testing.assert_allclose(scorer.score_pairs(contexts, candidates), table.diagonal(), atol=tolerance)


def test_threads_may_share_a_scorer(scorer: tercet.BiEncoder) -> None:
    expected = [scorer.score(text, SENTENCES) for text in SENTENCES]
    with ThreadPoolExecutor(max_workers=4) as threads:
        scores = list(threads.map(lambda text: scorer.score(text, SENTENCES), SENTENCES * 4))
    np.testing.assert_allclose(scores, expected * 4, atol=NEIGHBOUR_TOLERANCE[scorer.precision])


def test_a_saved_scorer_scores_the_same(scorer: tercet.BiEncoder, tmp_path: Path) -> None:
    if scorer.precision == "bf16":
        with pytest.raises(tercet.OutputError, match="load it in fp32 to save it"):
            scorer.save(tmp_path / "model")
        return
    again = tercet.load(scorer.save(tmp_path / "model"), device="cpu")
    assert again.config == scorer.config
    np.testing.assert_array_equal(
        again.score_many(SENTENCES, SENTENCES), scorer.score_many(SENTENCES, SENTENCES)
    )


def test_two_towers_start_equal(scorer: tercet.BiEncoder) -> None:
    codes = scorer.encode_contexts(SENTENCES).vectors[:, 0]
    np.testing.assert_array_equal(codes, scorer.encode_candidates(SENTENCES))


def test_two_towers_share_no_weight_and_one_shares_all(scorer: tercet.BiEncoder) -> None:
    left = {id(weight) for weight in scorer.context_tower.parameters()}
    right = {id(weight) for weight in scorer.candidate_tower.parameters()}
    assert left == right if scorer.config.towers == 1 else left.isdisjoint(right)


@pytest.mark.parametrize("pooling", POOLING_KINDS)
def test_bf16_scores_stay_near_fp32(pooling: str, tiny_folder: Callable[[str], Path]) -> None:
    tables = [
        build(tiny_folder("bert"), pooling, 1, precision).score_many(SENTENCES, SENTENCES)
        for precision in PRECISIONS
    ]
    np.testing.assert_allclose(tables[0], tables[1], atol=BF16_TOLERANCE)
