"""Lists of replies with the scores of a cross-encoder, from which bi- and poly-encoders learn."""

import numpy as np
import torch
from numpy.typing import NDArray
from pairs import DIALOGUES, PairSets
from poly_teacher import PolyTeacher
from scorer_models import Cross

CONTEXTS = {
    "selfdialogue": 70_000,
    "ubuntu": 30_000,
    "topical_chat": 15_000,
    "synthetic_persona_chat": 15_000,
    "short_dialogues": 10_000,
    "sgd": 5000,
    "star": 4000,
    "qa_circa": 5000,
}
"""Largest number of lists of each set."""
POOL, HARD, CANDIDATES = 64, 8, 16
BLOCK = 2000
"""Contexts at a time."""


@torch.no_grad()
def score_lists(cross: Cross, teacher: PolyTeacher, data: PairSets) -> dict[str, NDArray]:
    """For each set ``NAME/rows [N, 16]`` and ``NAME/scores [N, 16]``; the first row is that of the context.

    Eight of the candidates have the highest scores of the poly-encoder among 64 at random, seven are random.
    """
    rng, found = np.random.default_rng(5), {}
    for name, most in CONTEXTS.items():
        count = len(data.left[name])
        chosen = np.sort(rng.choice(count, min(most, count), replace=False))
        rows = np.concatenate(
            [listed(chosen[at : at + BLOCK], name, teacher, data, rng) for at in range(0, len(chosen), BLOCK)]
        )
        contexts = np.repeat(data.left[name][chosen][:, None], CANDIDATES, axis=1)
        pairs = np.stack([contexts, data.right[name][rows]], axis=2).reshape(-1, 2, 2)
        scores = cross.score(data.file, pairs, name in DIALOGUES)
        found |= {f"{name}/rows": rows, f"{name}/scores": scores.view(rows.shape).half().cpu().numpy()}
        right = (scores.view(rows.shape).argmax(dim=1) == 0).float().mean()
        print(f"{name}: {len(rows)} lists, the right reply is first in {right:.1%}", flush=True)
    return found


def listed(
    chosen: NDArray[np.int64], name: str, teacher: PolyTeacher, data: PairSets, rng: np.random.Generator
) -> NDArray[np.int64]:
    """``[B, 16]`` rows; a candidate that is right too is replaced by the next one of the pool."""
    pool = rng.integers(0, len(data.left[name]), (len(chosen), POOL))
    own = np.broadcast_to(chosen[:, None], pool.shape)
    masked = data.same(name, own, pool) | (own == pool)
    scores = np.where(masked, -np.inf, teacher.scores(name, chosen, pool))
    order = np.argsort(-scores, axis=1, kind="stable")
    easy = rng.random((len(chosen), POOL // 2 - HARD)).argsort(axis=1)[:, : CANDIDATES - 1 - HARD] + HARD
    places = np.concatenate([order[:, :HARD], np.take_along_axis(order, easy, axis=1)], axis=1)
    return np.concatenate([chosen[:, None], np.take_along_axis(pool, places, axis=1)], axis=1)
