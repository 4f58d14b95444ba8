"""Bi-, poly- and cross-encoder over the packed encoder, with the formulas of tercet."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from evaluation import Evaluator, match_vectors
from model import (
    DEVICE,
    EVAL_TOKENS,
    WIDTH,
    Encoder,
    Packed,
    Weights,
    batches,
    build,
    embed,
    in_order,
    mean_vectors,
    padded_states,
)
from numpy.typing import NDArray
from pairs import DIALOGUES, PairSets
from safetensors.torch import load_file
from texts import Spans, TokenFile
from torch import Tensor, nn
from torch.nn import functional


class Bi(nn.Module):
    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.encoder = build(weights)

    def forward(self, left: Packed, right: Packed) -> tuple[Tensor, Tensor]:
        """Unit vectors ``[B, D]`` and ``[C, D]``."""
        return mean_vectors(self.encoder(left), left), mean_vectors(self.encoder(right), right)

    def match(self, vectors: Tensor, candidates: Tensor) -> Tensor:
        return match_vectors(vectors, candidates)

    def evaluate(self, evaluator: Evaluator) -> dict[str, float]:
        return evaluator.bi(self.encoder)


class Poly(nn.Module):
    """As tercet's poly-encoder with cosine similarity and two towers; the towers share the word table."""

    def __init__(
        self, weights: Weights, *, codes: int, seed: int, code_scale: float, candidate_scale: float
    ) -> None:
        super().__init__()
        self.context, self.candidate = build(weights), build(weights)
        self.candidate.word = self.context.word
        generator = torch.Generator().manual_seed(seed)
        new = torch.empty(codes, WIDTH).normal_(mean=0.0, std=WIDTH**-0.5, generator=generator)
        self.codes = nn.Parameter(new.to(DEVICE))
        self.code_scale, self.candidate_scale = code_scale, candidate_scale

    def forward(self, left: Packed, right: Packed) -> tuple[Tensor, Tensor]:
        """Codes ``[B, M, D]`` and candidates ``[C, D]``."""
        return self.code_vectors(self.context(left), left), mean_vectors(self.candidate(right), right)

    def code_vectors(self, states: Tensor, packed: Packed) -> Tensor:
        """``[B, M, D]``: each code attends over the tokens."""
        tokens, mask = padded_states(states, packed)
        tokens = tokens.float()
        logits = self.code_scale * self.codes @ tokens.transpose(1, 2)  # [B, M, T]
        weights = logits.masked_fill(~mask.unsqueeze(1), float("-inf")).softmax(dim=-1)
        return functional.normalize(weights @ tokens, dim=-1)

    def match(self, codes: Tensor, candidates: Tensor) -> Tensor:
        """Scores ``[B, C]`` of candidates ``[C, D]`` or ``[B, C, D]``, which attend over the codes."""
        form = "bmd,cd->bcm" if candidates.dim() == 2 else "bmd,bcd->bcm"
        cosines = torch.einsum(form, codes, candidates)
        return ((self.candidate_scale * cosines).softmax(dim=-1) * cosines).sum(dim=-1)

    def evaluate(self, evaluator: Evaluator) -> dict[str, float]:
        def contexts(spans: Spans, keep_end: bool) -> Tensor:
            options = {"keep_end": keep_end, "reduce": self.code_vectors, "batch_tokens": 60_000}
            return embed(self.context, evaluator.file, spans, **options)

        def candidates(spans: Spans, keep_end: bool) -> Tensor:
            return embed(self.candidate, evaluator.file, spans, keep_end=keep_end)

        def match(codes: Tensor, vectors: Tensor) -> Tensor:
            parts = [slice(start, start + 16) for start in range(0, len(codes), 16)]
            return torch.cat(
                [self.match(codes[p], vectors if vectors.dim() == 2 else vectors[p]) for p in parts]
            )

        return evaluator.dual(contexts, candidates, match)


class Cross(nn.Module):
    """As tercet's cross-encoder with the ``compare`` head and ``cross_text_weight``."""

    def __init__(self, weights: Weights, cross_text_weight: float) -> None:
        super().__init__()
        self.encoder, self.cross_text_weight = build(weights), cross_text_weight
        self.linear = nn.Linear(4 * WIDTH, 1).to(DEVICE)
        with torch.no_grad():  # starts as 20 cos - 10
            self.linear.weight.zero_()
            self.linear.weight[:, -WIDTH:] = 20.0
            self.linear.bias.fill_(-10.0)

    def forward(self, packed: Packed) -> Tensor:
        """Scores ``[N]`` of pairs."""
        states = self.encoder(packed, self.cross_text_weight)
        left, right = mean_vectors(states, packed).view(-1, 2, WIDTH).unbind(1)
        return self.linear(torch.cat([left, right, (left - right).abs(), left * right], dim=-1))[:, 0]

    @torch.no_grad()
    def score(self, file: TokenFile, pairs: NDArray[np.int32], keep_end: bool) -> Tensor:
        """Scores ``[N]`` of pairs of spans ``[N, 2, 2]``; ``keep_end`` is for the left texts."""
        lengths = np.minimum(pairs[..., 1] - pairs[..., 0], EVAL_TOKENS).sum(axis=1) + 4
        order = batches(lengths, 200_000)
        parts = []
        for chosen in order:
            flags = np.tile([keep_end, False], len(chosen))
            sequences = file.sequences(pairs[chosen].reshape(-1, 2), EVAL_TOKENS, flags)
            parts.append(self(Packed(*sequences, group=2)))
        return in_order(torch.cat(parts), np.concatenate(order))

    def evaluate(self, evaluator: Evaluator, max_queries: int) -> dict[str, float]:
        return evaluator.cross(self.score, max_queries)


def read_weights(work: Path, name: str) -> Weights:
    """An encoder's weights: the backbone's, or a trained bi-encoder's with the backbone's word table."""
    weights = load_file(work / f"{name}.safetensors")
    if "word.weight" in weights:
        return weights
    body = {
        key.removeprefix("encoder."): value for key, value in weights.items() if not key.startswith("linear.")
    }
    return {"word.weight": load_file(work / "backbone.safetensors")["word.weight"], **body}


def trained_weights(model: nn.Module) -> Weights:
    """All weights but the word table."""
    state = model.state_dict().items()
    return {name: value.detach().clone() for name, value in state if not name.endswith("word.weight")}


def between(start: Weights, end: Weights, share: float) -> Weights:
    return {name: start[name] + share * (value - start[name]) for name, value in end.items()}


def teacher_vectors(
    encoder: Encoder, data: PairSets, names: Iterable[str], *, left_tokens: int, right_tokens: int
) -> Weights:
    """Vectors of both sides of the sets, under ``NAME/left`` and ``NAME/right``."""
    vectors = {}
    for name in names:
        left = embed(encoder, data.file, data.left[name], max_tokens=left_tokens, keep_end=name in DIALOGUES)
        right = embed(encoder, data.file, data.right[name], max_tokens=right_tokens)
        vectors |= {f"{name}/left": left.half(), f"{name}/right": right.half()}
    return vectors
