"""Dev results of encoders: recall at 1, Spearman's correlation for STS, nDCG@10 for SciFact, in percent."""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from model import DEVICE, Encoder, embed
from numpy.typing import NDArray
from scipy.stats import spearmanr
from texts import Spans, TokenFile
from torch import Tensor
from torch.nn import functional

ENGLISH = (
    "ubuntu",
    "selfdialogue",
    "dailydialog",
    "convai2",
    "medquad",
    "docs_en_faq",
    "dstc9",
    "trivia",
    "stsb",
    "scifact",
)
KOREAN = (
    "korsts",
    "docs_ko_faq",
    "headings_ko",
    "ko_chatbot",
    "stylekqc",
    "parakqc",
    "kluenli",
    "qpair_ko",
    "xpersona_ko",
    "enko_tatoeba",
    "enko_square",
    "enko_news",
)
RERANKED = 150

EncodeSpans = Callable[[Spans, bool], Tensor]
ScorePairs = Callable[[TokenFile, NDArray[np.int32], bool], Tensor]


def means(results: dict[str, float]) -> dict[str, float]:
    """The means by which models are chosen; the two sample FAQs do not count."""
    english = np.mean([results[name] for name in ENGLISH if name in results])
    korean = np.mean([results[name] for name in KOREAN if name in results])
    return {
        "english": round(float(english), 2),
        "korean": round(float(korean), 2),
        "mean": round(float(english + korean) / 2, 2),
    }


def match_vectors(queries: Tensor, documents: Tensor) -> Tensor:
    """Dot products ``[B, C]`` of ``[B, D]`` with ``[C, D]`` or ``[B, C, D]``."""
    if documents.dim() == 2:
        return queries @ documents.T
    return torch.einsum("bd,bcd->bc", queries, documents)


class Evaluator:
    """Results on the dev sets; ``hits`` keeps which cases were right."""

    def __init__(self, path: Path, *, small: bool = False) -> None:
        self.file = TokenFile(path)
        self.columns = self.file.columns
        self.small = small
        self.hits: dict[str, NDArray[np.bool_]] = {}

    def bi(self, encoder: Encoder) -> dict[str, float]:
        def encode(spans: Spans, keep_end: bool) -> Tensor:
            return embed(encoder, self.file, spans, keep_end=keep_end)

        return self.dual(encode, encode, match_vectors)

    def dual(
        self, contexts: EncodeSpans, candidates: EncodeSpans, match: Callable[[Tensor, Tensor], Tensor]
    ) -> dict[str, float]:
        """Results of a scorer that encodes contexts and candidates on their own."""
        results = {}
        for name in self.file.names("choice"):
            context, candidate, label = self._read(f"choice/{name}", "context", "candidate", "label")
            distinct, back = np.unique(candidate.reshape(-1, 2), axis=0, return_inverse=True)
            vectors = candidates(distinct, False)[torch.from_numpy(back.ravel()).to(DEVICE)]
            scores = match(contexts(context, True), vectors.view(*candidate.shape[:2], -1))
            results[name] = self._recall(name, scores, label)
        for name in self.file.names("all"):
            query, document = self._read(f"all/{name}", "query", "document")
            scores = match(contexts(query, False), candidates(document, False))
            results[name] = self._recall(name, scores, np.arange(len(query)))
        for name in self.file.names("sts"):
            left, right, score = self._read(f"sts/{name}", "left", "right", "score")
            scores = match(contexts(left, False), candidates(right, False).unsqueeze(1))[:, 0]
            results[name] = spearman(scores, score)
        query, relevant = self._read("scifact", "query", "relevant")
        query_codes = contexts(query, False)
        documents = candidates(self.columns["scifact/document"][: 20 if self.small else None], False)
        results["scifact"] = ndcg(match(query_codes, documents), relevant)
        if not self.small:
            results["scifact_rerank"] = self._rerank(partial(self._match_rows, match, query_codes, documents))
        return rounded(results)

    def cross(self, score: ScorePairs, max_queries: int) -> dict[str, float]:
        """Results of a cross-encoder, with at most ``max_queries`` questions of a set."""
        score = partial(score, self.file)

        def grid(left: Spans, right: NDArray[np.int32], keep_end: bool) -> Tensor:
            pairs = np.stack([np.repeat(left[:, None], right.shape[1], axis=1), right], axis=2)
            return score(pairs.reshape(-1, 2, 2), keep_end).view(*right.shape[:2])

        results = {}
        for name in self.file.names("choice"):
            context, candidate, label = self._read(f"choice/{name}", "context", "candidate", "label")
            results[name] = self._recall(name, grid(context, candidate, True), label)
        for name in self.file.names("all"):
            query, document = self._read(f"all/{name}", "query", "document")
            query = query[:max_queries]
            every = np.repeat(document[None], len(query), axis=0)
            results[name] = self._recall(name, grid(query, every, False), np.arange(len(query)))
        for name in self.file.names("sts"):
            left, right, gold = self._read(f"sts/{name}", "left", "right", "score")
            results[name] = spearman(score(np.stack([left, right], axis=1), False), gold)
        documents, queries = self.columns["scifact/document"], self.columns["scifact/query"]
        results["scifact"] = self._rerank(lambda rows, first: grid(queries[rows], documents[first], False))
        return rounded(results)

    def _read(self, prefix: str, *parts: str) -> list[NDArray]:
        return [self.columns[f"{prefix}/{part}"][: 4 if self.small else None] for part in parts]

    def _recall(self, name: str, scores: Tensor, labels: NDArray) -> float:
        self.hits[name] = first_ranks(scores, labels)
        return 100 * float(self.hits[name].mean())

    def _match_rows(self, match, codes: Tensor, documents: Tensor, rows: slice, first: NDArray) -> Tensor:
        return match(codes[rows], documents[torch.from_numpy(first).to(DEVICE)])

    def _rerank(self, score: Callable[[slice, NDArray], Tensor]) -> float:
        """nDCG@10 of BM25's first documents in the order of the scores."""
        relevant, first = (part[:RERANKED] for part in self._read("scifact", "relevant", "bm25"))
        scores = score(slice(len(first)), np.maximum(first, 0).astype(np.int64))
        return ndcg(scores.masked_fill(torch.from_numpy(first < 0).to(DEVICE), -1e9), relevant, first)


def rounded(results: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 2) for name, value in results.items()}


def spearman(scores: Tensor, gold: NDArray) -> float:
    return 100 * float(spearmanr(scores.float().cpu().numpy(), gold).statistic)


def first_ranks(scores: Tensor, labels: NDArray) -> NDArray[np.bool_]:
    """``[B]``: whether the right candidate has the highest score; a tie counts as wrong."""
    right = torch.as_tensor(labels, device=scores.device).long()
    others = torch.nan_to_num(scores.float(), nan=1e9)
    others = others.masked_fill(functional.one_hot(right, scores.shape[1]).bool(), -1e9).amax(dim=1)
    return (scores.float().gather(1, right[:, None])[:, 0] > others).cpu().numpy()


def ndcg(scores: Tensor, relevant: NDArray, documents: NDArray | None = None, k: int = 10) -> float:
    """nDCG@k; ``documents [Q, C]`` names the columns of the scores, ``relevant [Q, R]`` has -1 for none."""
    top = scores.float().topk(min(k, scores.shape[1])).indices.cpu().numpy()
    total = 0.0
    for row, columns in enumerate(top):
        wanted = {int(document) for document in relevant[row] if document >= 0}
        found = columns if documents is None else documents[row][columns]
        gain = sum(1 / math.log2(rank + 2) for rank, document in enumerate(found) if int(document) in wanted)
        total += gain / sum(1 / math.log2(rank + 2) for rank in range(min(len(wanted), k)))
    return 100 * total / len(top)
