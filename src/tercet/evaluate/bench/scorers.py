"""The table of inference times of Humeau et al. (2020), on this machine, beside sentence-transformers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tercet.config import CrossConfig, PolyConfig
from tercet.data.sample import questions
from tercet.evaluate.bench.rounds import Action
from tercet.models.bi import BiEncoder
from tercet.models.code_layer import CodeTensors
from tercet.models.cross import CrossEncoder
from tercet.models.dual import DualEncoder
from tercet.models.load import load
from tercet.models.poly import PolyEncoder

CODES = (16, 64, 360)
BEST = 10
PEER = "sentence-transformers"
PAIRS_READ = 500
"""Of a cross-encoder; the time for more is worked out from these."""


@dataclass(frozen=True)
class Contestants:
    """Models over one backbone: ours, and the same weights in sentence-transformers, if installed."""

    dual: dict[str, DualEncoder]
    cross: CrossEncoder
    peer_bi: Any = None
    peer_cross: Any = None

    @property
    def device(self) -> torch.device:
        """Where they run."""
        return next(self.cross.parameters()).device


@contextmanager
def contestants(source: str, *, device: str, peers: bool = True) -> Iterator[Contestants]:
    """A bi-encoder, poly-encoders and a cross-encoder, not trained: that does not change their times."""
    bi = load(source, device=device)
    if not isinstance(bi, BiEncoder):
        bi = BiEncoder.from_backbone(source, device=device)
    dual: dict[str, DualEncoder] = {"bi": bi}
    for codes in CODES:
        limit = max(bi.tokenizer.max_tokens, codes)
        dual[f"poly {codes}"] = PolyEncoder.from_backbone(
            source, config=PolyConfig(codes=codes), max_tokens=limit, device=device
        )
    cross = CrossEncoder.from_backbone(source, config=CrossConfig(head="native"), device=device)
    there = peers and find_spec("sentence_transformers") is not None
    with TemporaryDirectory() as folder:
        yield Contestants(dual, cross, **(_peers(bi, cross, Path(folder), device) if there else {}))


def _peers(bi: BiEncoder, cross: CrossEncoder, folder: Path, device: str) -> dict[str, Any]:
    from sentence_transformers import CrossEncoder as TheirCross
    from sentence_transformers import SentenceTransformer

    return {
        "peer_bi": SentenceTransformer(str(bi.save(folder / "bi")), device=device),
        "peer_cross": TheirCross(str(cross.save(folder / "cross")), device=device),
    }


def answering(models: Contestants, candidates: int) -> dict[str, Action]:
    """One context to its best candidates, whose vectors are kept; a cross-encoder reads all pairs."""
    context = questions()[0].context
    made: dict[str, Action] = {}
    for name, scorer in models.dual.items():
        vectors = _vectors(candidates, scorer.width, models.device)
        made[name] = Action(_answer(scorer, context, vectors, scorer.match_codes))
        if isinstance(scorer, PolyEncoder):
            made[f"{name}, paper's formula"] = Action(_answer(scorer, context, vectors, paper_formula))
    made["cross"] = _reading(models.cross.score_pairs, context, candidates)
    if models.peer_bi is not None:
        made[f"bi, {PEER}"] = Action(_their_answer(models.peer_bi, context, candidates, models.device))
        made[f"cross, {PEER}"] = _reading(
            lambda left, right: models.peer_cross.predict(list(zip(left, right, strict=True))),
            context,
            candidates,
        )
    return made


def searching(models: Contestants, candidates: int) -> dict[str, Action]:
    """One context's codes to the best vectors of an exact index; nothing without the extra."""
    if find_spec("simsimd") is None:
        return {}
    from tercet.index.exact import ExactIndex

    context = questions()[0].context
    width = models.dual["bi"].width
    index = ExactIndex(width)
    index.add(np.arange(candidates), _vectors(candidates, width, torch.device("cpu")).numpy())
    return {
        name: Action(partial(index.search, scorer.encode_contexts([context]), BEST))
        for name, scorer in models.dual.items()
    }


def encoding(models: Contestants) -> tuple[int, dict[str, Action]]:
    """How many texts there are, and their encoding."""
    texts = _texts()
    bi = models.dual["bi"]
    made = {"tercet": Action(lambda: bi.encode_candidates(texts))}
    if models.peer_bi is not None:
        made[PEER] = Action(lambda: models.peer_bi.encode(texts))
    return len(texts), made


def reranking(models: Contestants) -> tuple[int, dict[str, Action]]:
    """How many pairs there are, and their reading."""
    asked = questions()
    pairs = [(one.context, other.answer) for one in asked[:4] for other in asked]
    left, right = zip(*pairs, strict=True)
    made = {"tercet": Action(lambda: models.cross.score_pairs(left, right))}
    if models.peer_cross is not None:
        made[PEER] = Action(lambda: models.peer_cross.predict(pairs))
    return len(pairs), made


def paper_formula(codes: CodeTensors, candidates: Tensor) -> Tensor:
    """``[1, C]``: attend over the codes, sum them up for each candidate, multiply."""
    vectors = codes.vectors[0]
    weights = (candidates @ vectors.T).softmax(dim=-1)  # [C, M]
    return ((weights @ vectors) * candidates).sum(dim=-1).unsqueeze(0)


def _answer(
    scorer: DualEncoder, context: str, vectors: Tensor, match: Callable[[CodeTensors, Tensor], Tensor]
) -> Callable[[], object]:
    @torch.inference_mode()
    def answer() -> list[int]:
        codes = scorer.context_codes(scorer.token_ids([context], "context"))
        best: list[int] = match(codes, vectors)[0].topk(BEST).indices.tolist()
        return best

    return answer


def _their_answer(peer: Any, context: str, candidates: int, device: torch.device) -> Callable[[], object]:
    vectors = _vectors(candidates, peer.get_embedding_dimension(), device)

    def answer() -> object:
        from sentence_transformers.util import semantic_search

        return semantic_search(peer.encode(context, convert_to_tensor=True), vectors, top_k=BEST)

    return answer


def _reading(score: Callable[..., object], context: str, candidates: int) -> Action:
    read = min(candidates, PAIRS_READ)
    texts = _texts()
    right = [texts[place % len(texts)] for place in range(read)]
    return Action(lambda: score([context] * read, right), times=candidates / read)


def _texts() -> list[str]:
    return [text for each in questions() for text in (each.context, each.answer)]


def _vectors(count: int, width: int, device: torch.device) -> Tensor:
    """Of length 1, by chance: what they hold does not change the time."""
    chance = torch.Generator().manual_seed(0)
    return torch.nn.functional.normalize(torch.randn(count, width, generator=chance), dim=-1).to(device)
