"""The contract of all scorers, tested for every kind and both precisions. A new kind is one line in KINDS."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from tests.conftest import SENTENCES

import tercet
from tercet.errors import InputError, OutputError
from tercet.settings.encoding import EncodingConfig
from tercet.settings.models import CODE_KINDS, POOLING_KINDS, REDUCTIONS

Build = Callable[..., Any]
FolderOf = Callable[[str], Path]

PRECISIONS = ("fp32", "bf16")
"""Those of a CPU, where fp16 is refused."""
NEIGHBOUR_TOLERANCE = {"fp32": 1e-6, "bf16": 1e-2}
"""The largest effect of the rest of a batch on a score, as a share of the largest score."""

BF16_TOLERANCE = 4e-2
"""The largest difference of bf16 and fp32 scores, as a share of the largest score. Tiny random models differ
more than trained ones."""


def bi(pooling: str, towers: int) -> Build:
    return partial(
        tercet.BiEncoder.from_backbone,
        pooling=tercet.PoolingConfig(kinds=(pooling,), first_tokens=3),  # type: ignore[arg-type]
        config=tercet.BiConfig(towers=towers),
    )


def poly(**settings: Any) -> Build:
    settings = {"codes": 4, "first_tokens": 3} | settings
    return partial(tercet.PolyEncoder.from_backbone, config=tercet.PolyConfig(**settings))


def cross(**settings: Any) -> Build:
    return partial(tercet.CrossEncoder.from_backbone, config=tercet.CrossConfig(**settings))


def scaled_cross(head: str, factor: float, **settings: Any) -> Build:
    """A cross-encoder whose last layer is multiplied by ``factor``: its scores are near 1, as the tolerances
    assume."""

    def build(folder: Path, **options: Any) -> tercet.CrossEncoder:
        scorer = cross(head=head, **settings)(folder, device="cpu")
        scorer.head.linear.weight.data *= factor
        with TemporaryDirectory() as saved:
            return tercet.CrossEncoder.load(scorer.save(Path(saved) / "scaled"), **options)

    return build


KINDS: dict[str, Build] = {
    **{f"bi-{pooling}-{towers}": bi(pooling, towers) for pooling in POOLING_KINDS for towers in (1, 2)},
    **{f"poly-{kind}": poly(code_kind=kind) for kind in CODE_KINDS},
    **{f"poly-by-{reduction}": poly(reduction=reduction) for reduction in REDUCTIONS},
    "poly-one-code": poly(codes=1),
    "poly-one-tower": poly(towers=1),
    "poly-cosine": poly(similarity="cosine", candidate_scale=10),
    "poly-cosine-last": poly(similarity="cosine", code_kind="last_and_first"),
    "poly-symmetric": poly(towers=1, symmetric=True, code_kind="first"),
    "poly-learnt-scales": poly(learn_scales=True, logit_scale=0.1),
    "cross-linear": cross(head="linear"),
    "cross-dense": cross(head="dense"),
    "cross-native": scaled_cross("native", 0.04),  # tiny models have 25 times BERT's initial std
    "cross-symmetric": cross(symmetric=True),
    "cross-compare": scaled_cross("compare", 0.1),  # the cosine
    "cross-separate": scaled_cross("compare", 0.1, cross_text_weight=0.1),
    "cross-labels": cross(num_labels=3, activation="softmax", score_class=1),
    "cross-sigmoid": cross(activation="sigmoid", head="dense"),
}


@dataclass
class Case:
    """A scorer and its precision, which sets the tolerance."""

    scorer: Any
    precision: str

    def assert_close(self, ours: Any, theirs: Any) -> None:
        size = max(1.0, float(np.abs(theirs).max()))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=NEIGHBOUR_TOLERANCE[self.precision] * size)


@pytest.fixture(params=[(kind, precision) for kind in KINDS for precision in PRECISIONS], ids="-".join)
def case(request: pytest.FixtureRequest, tiny_folder: FolderOf) -> Case:
    kind, precision = request.param
    return Case(KINDS[kind](tiny_folder("bert"), precision=precision, device="cpu"), precision)


def test_a_score_does_not_depend_on_the_other_candidates(case: Case) -> None:
    together = case.scorer.score(SENTENCES[0], SENTENCES)
    alone = [case.scorer.score(SENTENCES[0], [text])[0] for text in SENTENCES]
    case.assert_close(together, alone)


def test_a_score_does_not_depend_on_the_order_of_the_candidates(case: Case) -> None:
    reversed_back = case.scorer.score(SENTENCES[0], SENTENCES[::-1])[::-1]
    case.assert_close(case.scorer.score(SENTENCES[0], SENTENCES), reversed_back)


def test_a_score_does_not_depend_on_the_size_of_batches(case: Case) -> None:
    scores = case.scorer.score_many(SENTENCES, SENTENCES)
    case.scorer.encoding = EncodingConfig(cpu_tokens=8, window_texts=3)
    case.assert_close(case.scorer.score_many(SENTENCES, SENTENCES), scores)


def test_scores_are_float32_and_finite(case: Case) -> None:
    scores = case.scorer.score(SENTENCES[0], SENTENCES)
    assert scores.dtype == np.float32
    assert np.isfinite(scores).all()


def test_different_candidates_have_different_scores(case: Case) -> None:
    assert len(np.unique(case.scorer.score(SENTENCES[0], SENTENCES))) == len(SENTENCES)


def test_rank_sorts_by_score(case: Case) -> None:
    scores = case.scorer.score(SENTENCES[1], SENTENCES)
    ranking = case.scorer.rank(SENTENCES[1], SENTENCES, k=len(SENTENCES))
    assert [ranked.position for ranked in ranking] == np.argsort(-scores, kind="stable").tolist()
    assert [ranked.score for ranked in ranking] == scores[[ranked.position for ranked in ranking]].tolist()
    assert [ranked.text for ranked in ranking] == [SENTENCES[ranked.position] for ranked in ranking]


def test_many_contexts_score_as_each_one_alone(case: Case) -> None:
    contexts = [SENTENCES[0], SENTENCES[1:4], SENTENCES[4]]
    together = case.scorer.score_many(contexts, SENTENCES)
    case.assert_close(together, [case.scorer.score(context, SENTENCES) for context in contexts])


def test_pairs_score_as_in_the_full_table(case: Case) -> None:
    contexts = [*SENTENCES, SENTENCES[0]]
    candidates = [*SENTENCES[::-1], SENTENCES[2]]
    table = case.scorer.score_many(contexts, candidates)
    case.assert_close(case.scorer.score_pairs(contexts, candidates), table.diagonal())


def test_threads_can_share_a_scorer(case: Case) -> None:
    expected = [case.scorer.score(text, SENTENCES) for text in SENTENCES]
    with ThreadPoolExecutor(max_workers=4) as threads:
        scores = list(threads.map(lambda text: case.scorer.score(text, SENTENCES), SENTENCES * 4))
    case.assert_close(scores, expected * 4)


def test_a_saved_fp32_scorer_is_the_same_bit_for_bit_and_bf16_is_refused(case: Case, tmp_path: Path) -> None:
    if case.precision == "bf16":
        with pytest.raises(OutputError, match="load the model in fp32 to save it"):
            case.scorer.save(tmp_path / "model")
        return
    loaded = tercet.load(case.scorer.save(tmp_path / "model"), device="cpu")
    assert type(loaded) is type(case.scorer)
    assert loaded.config == case.scorer.config
    assert loaded.fingerprint == case.scorer.fingerprint
    np.testing.assert_array_equal(
        loaded.score_many(SENTENCES, SENTENCES), case.scorer.score_many(SENTENCES, SENTENCES)
    )


def test_scoring_in_training_mode_is_refused(case: Case) -> None:
    case.scorer.train()
    with pytest.raises(InputError, match=r"call \.eval\(\)"):
        case.scorer.score("cat", ["dog"])


@pytest.mark.parametrize("kind", KINDS)
def test_bf16_scores_stay_near_fp32(kind: str, tiny_folder: FolderOf) -> None:
    exact, rough = (
        KINDS[kind](tiny_folder("bert"), precision=precision, device="cpu").score_many(SENTENCES, SENTENCES)
        for precision in PRECISIONS
    )
    np.testing.assert_allclose(rough, exact, rtol=0, atol=BF16_TOLERANCE * max(1.0, np.abs(exact).max()))


@pytest.mark.parametrize("kind", KINDS)
def test_bf16_keeps_the_fingerprint(kind: str, tiny_folder: FolderOf) -> None:
    exact, rough = (
        KINDS[kind](tiny_folder("bert"), precision=precision, device="cpu") for precision in PRECISIONS
    )
    assert rough.fingerprint == exact.fingerprint


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("bi-")])
def test_both_sides_start_with_equal_vectors(kind: str, tiny_folder: FolderOf) -> None:
    scorer = KINDS[kind](tiny_folder("bert"), device="cpu")
    codes = scorer.encode_contexts(SENTENCES).vectors[:, 0]
    np.testing.assert_array_equal(codes, scorer.encode_candidates(SENTENCES))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("bi-")])
def test_two_towers_share_no_weights_and_one_tower_shares_all(kind: str, tiny_folder: FolderOf) -> None:
    scorer = KINDS[kind](tiny_folder("bert"), device="cpu")
    left = {id(weight) for weight in scorer.context_tower.parameters()}
    right = {id(weight) for weight in scorer.candidate_tower.parameters()}
    assert left == right if scorer.config.towers == 1 else left.isdisjoint(right)
