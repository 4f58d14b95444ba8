"""Models as the engine sees them: texts to tokens in any thread, tokens to results in one thread."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tercet.encoders.memory import release_free_memory
from tercet.errors import InputError
from tercet.records import Codes, Context, Floats
from tercet.scorers.cross_scorer import CrossScorer
from tercet.scorers.dual_scorer import DualScorer
from tercet.scorers.scorer import Scorer
from tercet.scorers.text_scorer import TextScorer
from tercet.serve.work import Lane, Tokenized
from tercet.settings.models import Side


@dataclass(frozen=True, slots=True)
class TokenArray:
    """A text that a client has tokenized itself, without special tokens."""

    ids: tuple[int, ...]


class ServedModel(Protocol):
    """What the engine needs of a model."""

    batch_tokens: int
    """Tokens of a forward pass."""
    max_tokens: int
    """Tokens of the longest item."""

    def tokenize(self, lane: Lane, texts: Sequence[Any]) -> list[Tokenized]:
        """The tokens of texts (of pairs of texts in the lane ``pair``), in any thread."""

    def run(self, lane: Lane, tokens: Sequence[Any]) -> list[Any]:
        """The results of what ``tokenize`` made, in the one thread of the engine."""

    def release_memory(self) -> None:
        """Return unused memory to the system."""


class ServedDual:
    """A bi- or poly-encoder: codes ``[M, D]`` of each context, one vector ``[1, D]`` of each candidate."""

    def __init__(self, scorer: DualScorer, *, batch_tokens: int | None = None) -> None:
        self.scorer = scorer
        self.batch_tokens = batch_tokens or _batch_tokens(scorer)
        self.max_tokens = scorer.tokenizer.max_tokens

    def lane(self, side: Side) -> Lane:
        """Where texts of a side are computed: those of a siamese model in one lane, so that they share a
        batch and the cache."""
        return "candidate" if self.scorer.is_siamese else side

    def tokenize(self, lane: Lane, texts: Sequence[Context | TokenArray]) -> list[Tokenized]:
        """The tokens of texts."""
        side = _side(lane)
        plain = [text for text in texts if not isinstance(text, TokenArray)]
        tokens = iter(self.scorer.tokenize(plain, side) if plain else [])
        given = self.scorer.tokenizer.from_ids
        prompt = self.scorer.prompt(side)
        found = (
            given(text.ids, prompt=prompt) if isinstance(text, TokenArray) else next(tokens) for text in texts
        )
        codes = self.scorer.max_codes if side == "context" else 1
        return [
            Tokenized(
                each,
                tokens=len(each.ids),
                cost=len(each.ids) + codes - 1,  # codes need memory too
                truncated=(each.truncated,),
            )
            for each in found
        ]

    def run(self, lane: Lane, tokens: Sequence[Any]) -> list[Any]:
        """The codes of texts, each in memory of its own."""
        codes = self.scorer.encode_tokens(tokens, _side(lane))
        return [vectors[mask] for vectors, mask in zip(codes.vectors, codes.mask, strict=True)]

    def match(self, codes: Codes, vectors: Floats) -> Floats:
        """``[B, C]``: one direction of the score; ``vectors`` is ``[C, D]`` or ``[B, C, D]``."""
        return self.scorer.match_codes(codes, vectors)

    def release_memory(self) -> None:
        """Return unused memory to the system."""
        release_free_memory()


class ServedCross:
    """A cross-encoder: the score of each pair."""

    def __init__(self, scorer: CrossScorer, *, batch_tokens: int | None = None) -> None:
        scorer.check_has_score()
        self.scorer = scorer
        self.batch_tokens = batch_tokens or _batch_tokens(scorer)
        self.max_tokens = scorer.tokenizer.max_tokens * (2 if scorer.config.symmetric else 1)

    def tokenize(self, lane: Lane, texts: Sequence[tuple[Context, str]]) -> list[Tokenized]:
        """The tokens of pairs."""
        contexts, candidates = zip(*texts, strict=True)
        return [
            Tokenized(
                orders,
                tokens=sum(len(each.ids) for each in orders),
                cost=sum(len(each.ids) for each in orders),
                truncated=(orders[0].context_truncated, orders[0].candidate_truncated),
            )
            for orders in self.scorer.tokenize_pairs(contexts, candidates)
        ]

    def run(self, lane: Lane, tokens: Sequence[Any]) -> list[float]:
        """The scores of pairs."""
        scores: list[float] = self.scorer.score_tokens(tokens).tolist()
        return scores

    def release_memory(self) -> None:
        """Return unused memory to the system."""
        release_free_memory()


def served(scorer: Scorer, *, batch_tokens: int | None = None) -> ServedDual | ServedCross:
    """The scorer in the form that the engine runs."""
    if isinstance(scorer, DualScorer):
        return ServedDual(scorer, batch_tokens=batch_tokens)
    if isinstance(scorer, CrossScorer):
        return ServedCross(scorer, batch_tokens=batch_tokens)
    raise InputError(f"the server runs bi-, poly- and cross-encoders, got {type(scorer).__name__}")


def _batch_tokens(scorer: TextScorer) -> int:
    """On a CPU, half of what bulk encoding takes: it is as fast, and new requests wait half as long."""
    return scorer.token_budget // 2 if scorer.is_on_cpu else scorer.token_budget


def _side(lane: Lane) -> Side:
    return "context" if lane == "context" else "candidate"
