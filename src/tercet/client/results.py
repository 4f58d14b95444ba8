"""What only a server answers; rankings, hits and explanations are those of ``tercet.records``."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reranked:
    """A document of a reranking; ``position`` is its index in the list that was reranked.

    ``relevance`` is the calibrated probability if the model is calibrated, the sigmoid of an unbounded score,
    or the score itself. ``truncated`` counts the tokens of the document that the model did not read.
    """

    position: int
    score: float
    relevance: float
    text: str
    truncated: int = 0


@dataclass(frozen=True, slots=True)
class Written:
    """A change of an index, which is on disk: the number of changed candidates, and of all candidates now."""

    index: str
    changed: int
    size: int


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model of the server; ``width`` and ``codes`` of a cross-encoder are None."""

    id: str
    kind: str
    width: int | None
    codes: int | None
    max_tokens: int
    calibrated: bool
    precision: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """An index of the server, the model that encodes its candidates, and the one that reranks them."""

    id: str
    size: int
    model: str
    kind: str
    reranker: str | None
