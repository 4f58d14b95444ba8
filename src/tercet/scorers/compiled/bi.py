"""The bi-encoder that OpenVINO runs."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tercet.encoders.openvino.graphs import GraphPart
from tercet.errors import InputError
from tercet.records import Codes, Context, Explanation, Floats
from tercet.scorers.bi_scorer import BiScorer
from tercet.scorers.compiled.base import CompiledDual, Origin, one_code
from tercet.scorers.compiled.tower import TowerWeights, VectorTower
from tercet.scorers.explain import ExplainedSide, explain_bi
from tercet.scorers.numpy_layers import normalize, norms, products
from tercet.settings.models import SIDES, BiConfig, Precision, Side
from tercet.text.tokenizer import Passage, Tokenizer


class BiWeights(NamedTuple):
    """What a bi-encoder is compiled from."""

    tokenizer: Tokenizer
    context: TowerWeights
    candidate: TowerWeights
    config: BiConfig


class CompiledBi(CompiledDual, BiScorer):
    """A bi-encoder that OpenVINO runs."""

    def __init__(self, weights: BiWeights, origin: Origin, *, precision: Precision = "fp32") -> None:
        self._set_text(weights.tokenizer, turn_separator=weights.config.turn_separator, precision=precision)
        self.config, self.origin = weights.config, origin
        self._transformer = weights.context.transformer
        context = VectorTower(weights.context, precision)
        shared = weights.candidate is weights.context
        candidate = context if shared else VectorTower(weights.candidate, precision)
        self._towers: dict[Side, VectorTower] = {"context": context, "candidate": candidate}
        self._prompt_tokens: dict[Side, int] = {
            "context": weights.tokenizer.prompt_length(weights.config.context_prompt),
            "candidate": weights.tokenizer.prompt_length(weights.config.candidate_prompt),
        }

    @property
    def width(self) -> int:
        """D, the dimension of a vector."""
        return self._towers["candidate"].width

    @property
    def is_siamese(self) -> bool:
        """Whether one tower encodes both sides in the same way."""
        same_prompt = self.config.context_prompt == self.config.candidate_prompt
        return self._towers["context"] is self._towers["candidate"] and same_prompt

    def graph_parts(self) -> dict[str, GraphPart]:
        """The towers; one that serves both sides is that of the contexts."""
        towers = {id(tower): (side, tower) for side, tower in reversed(self._towers.items())}
        return {side: tower.part for side, tower in towers.values()}

    def _run_batch(self, ids: Sequence[Sequence[int]], side: Side) -> Codes:
        vectors = self._towers[side](ids, prompt_tokens=self._prompt_tokens[side])
        return one_code(vectors)

    def _match(self, codes: Codes, vectors: Floats) -> Floats:
        if not self.uses_cosine:
            return products(codes, vectors)
        unit = Codes(normalize(codes.vectors), codes.mask)
        cosines: Floats = products(unit, vectors) / norms(vectors)
        return cosines

    def classify(self, contexts: Iterable[Context], candidates: Iterable[str]) -> Floats:
        """Raises: models with classes are loaded in torch."""
        raise InputError(
            "this bi-encoder has no classes: train it on labelled pairs with the objective softmax"
        )

    def _description(self) -> dict[str, object]:
        return {
            "vectors": self.width,
            "towers": self.config.towers,
            "pooling": " + ".join(self._towers["context"].pooling.kinds),
            "similarity": self.config.similarity,
            "context prompt": self.config.context_prompt,
            "candidate prompt": self.config.candidate_prompt,
        }

    def _explain_exactly(self, context: Context, candidate: str) -> Explanation | None:
        """None if a layer after the pooling is not linear: a token then has no part of the vector."""
        self._warn_of_script([context, candidate])
        if not all(tower.is_linear for tower in self._towers.values()):
            return None
        passages = self._passages([context, candidate])
        left, right = (self._side(passage, side) for passage, side in zip(passages, SIDES, strict=True))
        poolings = self._towers["context"].pooling, self._towers["candidate"].pooling
        return explain_bi(passages, left, right, cosine=self.uses_cosine, poolings=poolings)

    def _side(self, passage: Passage, side: Side) -> ExplainedSide:
        """The tokens of a text and their parts of its vector."""
        prompt = self.prompt(side)
        (tokens,) = self.tokenizer.encode([passage], prompt=prompt)
        parts = self._towers[side].token_parts(tokens.ids, prompt_tokens=self._prompt_tokens[side])
        return ExplainedSide(parts, self.tokenizer.pieces(passage, prompt=prompt), tokens.truncated)
