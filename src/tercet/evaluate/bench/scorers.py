"""The inference times of Humeau et al. (2020), table 5, on this machine and beside sentence-transformers.

Only public calls are timed, such as ``scorer.match``.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from tercet.arrays import top_k, unit_vectors
from tercet.data.sample import questions
from tercet.evaluate.bench.limits import Limits, forward_seconds, match_seconds, measure_limits
from tercet.evaluate.bench.rounds import Action
from tercet.formats.load import load
from tercet.records import Floats
from tercet.scorers.bi import BiEncoder
from tercet.scorers.cross import CrossEncoder
from tercet.scorers.dual import DualEncoder
from tercet.scorers.gpu.vectors import DeviceVectors
from tercet.scorers.poly import PolyEncoder
from tercet.settings.models import CrossConfig, PolyConfig

CODES = (16, 64, 360)
TOP_K = 10
PEER = "sentence-transformers"
PAPER = "paper's formula"
CROSS_PAIRS = 500
"""Pairs that a cross-encoder scores; times for more are extrapolated."""


@dataclass(frozen=True)
class BenchModels:
    """Models built on one backbone: ours and, if installed, the same weights in sentence-transformers."""

    dual: dict[str, DualEncoder]
    cross: CrossEncoder
    limits: Limits
    peer_bi: Any = None
    peer_cross: Any = None

    @property
    def device(self) -> torch.device:
        """Where all models run."""
        return self.cross.device


@contextmanager
def bench_models(source: str, *, device: str, peers: bool = True) -> Iterator[BenchModels]:
    """A bi-encoder, poly-encoders and a cross-encoder. They are untrained, which does not change their times.

    Args:
        source: the backbone.
        peers: also time sentence-transformers, if it is installed.
    """
    bi = load(source, device=device, runtime="torch")
    if not isinstance(bi, BiEncoder):
        bi = BiEncoder.from_backbone(source, device=device)
    dual: dict[str, DualEncoder] = {"bi": bi}
    for codes in CODES:
        dual[f"poly {codes}"] = PolyEncoder.from_backbone(
            source,
            config=PolyConfig(codes=codes),
            max_tokens=max(bi.tokenizer.max_tokens, codes),
            device=device,
        )
    cross = CrossEncoder.from_backbone(source, config=CrossConfig(head="native"), device=device)
    has_peers = peers and find_spec("sentence_transformers") is not None
    with TemporaryDirectory() as folder:
        limits = measure_limits(bi.device)
        yield BenchModels(
            dual, cross, limits, **(_peers(bi, cross, Path(folder), device) if has_peers else {})
        )


Measurement: TypeAlias = tuple[int, dict[str, Action]]
"""The number of candidates, texts or pairs, and the actions to compare."""


def ranking(models: BenchModels, candidates: int) -> Measurement:
    """From one context to its best candidates.

    The vectors of the candidates are cached. A cross-encoder scores every pair.
    """
    context = questions()[0].context
    actions: dict[str, Action] = {}
    for name, scorer in models.dual.items():
        random = _random_vectors(candidates, scorer.width)
        vectors = torch.from_numpy(random).to(models.device)
        rank = partial(_rank, scorer, context, vectors)
        if models.device.type == "cuda":
            rank = partial(_rank_on_device, scorer, context, DeviceVectors(random, device=models.device))
        actions[name] = Action(rank, limit=_ranking_limit(models, scorer, context, candidates))
        if isinstance(scorer, PolyEncoder):
            actions[f"{name}, {PAPER}"] = Action(partial(_rank_by_paper, scorer, context, vectors))
    actions["cross"] = _cross_action(models.cross.score_pairs, context, candidates)
    if models.peer_bi is not None:
        actions[f"bi, {PEER}"] = Action(_peer_rank(models.peer_bi, context, candidates, models.device))
        actions[f"cross, {PEER}"] = _cross_action(
            lambda left, right: models.peer_cross.predict(list(zip(left, right, strict=True))),
            context,
            candidates,
        )
    return candidates, actions


def searching(models: BenchModels, candidates: int) -> Measurement:
    """From the codes of one context to the best vectors of an exact index."""
    from tercet.index.exact import ExactIndex

    context = questions()[0].context
    width = models.dual["bi"].width
    index = ExactIndex(width)
    index.add(np.arange(candidates), _random_vectors(candidates, width))
    return candidates, {
        name: Action(partial(index.search, scorer.encode_contexts([context]), TOP_K))
        for name, scorer in models.dual.items()
    }


def encoding(models: BenchModels) -> Measurement:
    """From texts to vectors."""
    texts = _texts()
    bi = models.dual["bi"]
    lengths = [len(ids) for ids in bi.token_ids(texts, "candidate")]
    limit = _forward_limit(models, bi, lengths)
    actions = {"tercet": Action(lambda: bi.encode_candidates(texts), limit=limit)}
    if models.peer_bi is not None:
        actions[PEER] = Action(lambda: models.peer_bi.encode(texts))
    return len(texts), actions


def reranking(models: BenchModels) -> Measurement:
    """From pairs to the scores of a cross-encoder."""
    sample = questions()
    pairs = [(question.context, other.answer) for question in sample[:4] for other in sample]
    left, right = zip(*pairs, strict=True)
    lengths = [len(ids.ids) for pair in models.cross.tokenize_pairs(left, right) for ids in pair]
    limit = _forward_limit(models, models.cross, lengths)
    actions = {"tercet": Action(lambda: models.cross.score_pairs(left, right), limit=limit)}
    if models.peer_cross is not None:
        actions[PEER] = Action(lambda: models.peer_cross.predict(pairs))
    return len(pairs), actions


def paper_formula(codes: Tensor, candidates: Tensor) -> Tensor:
    """``[1, C]``: attend over the codes, sum them up for each candidate, multiply.

    Args:
        codes: ``[1, M, D]``
        candidates: ``[C, D]``
    """
    weights = (candidates @ codes[0].T).softmax(dim=-1)  # [C, M]
    return ((weights @ codes[0]) * candidates).sum(dim=-1).unsqueeze(0)


def _rank(scorer: DualEncoder, context: str, vectors: Tensor) -> list[int]:
    scores = scorer.match(scorer.encode_contexts([context]), vectors)
    best: list[int] = top_k(scores[0], TOP_K).tolist()
    return best


def _rank_on_device(scorer: DualEncoder, context: str, vectors: DeviceVectors) -> list[int]:
    """The best of vectors on the device, which does not copy their scores."""
    found = vectors.search(scorer.encode_contexts([context]), TOP_K, scale=scorer.attention_scale)
    best: list[int] = found.ids[0].tolist()
    return best


def _ranking_limit(models: BenchModels, scorer: DualEncoder, context: str, candidates: int) -> float:
    """The least time to encode a context and to match it with candidates; on a GPU these have 16 bits."""
    (ids,) = scorer.token_ids([context], "context")
    size = 2 if models.device.type == "cuda" else 4
    matching = match_seconds(
        models.limits,
        contexts=1,
        codes=scorer.max_codes,
        candidates=candidates,
        width=scorer.width,
        candidate_bytes=size,
    )
    return matching + _forward_limit(models, scorer, [len(ids)])


def _forward_limit(models: BenchModels, scorer: DualEncoder | CrossEncoder, lengths: list[int]) -> float:
    encoder = scorer.backbone
    return forward_seconds(models.limits, encoder.transformer, lengths, width=encoder.width)


@torch.inference_mode()
def _rank_by_paper(scorer: DualEncoder, context: str, vectors: Tensor) -> list[int]:
    codes = torch.from_numpy(scorer.encode_contexts([context]).vectors).to(vectors.device)
    best: list[int] = paper_formula(codes, vectors)[0].topk(TOP_K).indices.tolist()
    return best


def _peer_rank(peer: Any, context: str, candidates: int, device: torch.device) -> Callable[[], object]:
    from sentence_transformers.util import semantic_search

    vectors = torch.from_numpy(_random_vectors(candidates, peer.get_embedding_dimension())).to(device)
    return lambda: semantic_search(peer.encode(context, convert_to_tensor=True), vectors, top_k=TOP_K)


def _peers(bi: BiEncoder, cross: CrossEncoder, folder: Path, device: str) -> dict[str, Any]:
    from sentence_transformers import CrossEncoder as PeerCrossEncoder
    from sentence_transformers import SentenceTransformer

    return {
        "peer_bi": SentenceTransformer(str(bi.save(folder / "bi")), device=device),
        "peer_cross": PeerCrossEncoder(str(cross.save(folder / "cross")), device=device),
    }


def _cross_action(score: Callable[..., object], context: str, candidates: int) -> Action:
    count = min(candidates, CROSS_PAIRS)
    texts = _texts()
    right = [texts[position % len(texts)] for position in range(count)]
    return Action(lambda: score([context] * count, right), times=candidates / count)


def _texts() -> list[str]:
    return [text for question in questions() for text in (question.context, question.answer)]


def _random_vectors(count: int, width: int) -> Floats:
    """``[count, width]``: random unit vectors; their values do not change the time."""
    rng = np.random.default_rng(0)
    return unit_vectors(rng.standard_normal((count, width), dtype=np.float32))
