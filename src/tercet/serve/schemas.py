"""Requests and answers of the HTTP interface. This module imports no model and no torch."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tercet.settings.index import Mode

Turns = Annotated[list[str], Field(min_length=1, description="The turns of a dialogue, oldest first.")]
ContextField = str | Turns
Texts = Annotated[list[str], Field(min_length=1)]


class Strict(BaseModel):
    """Unknown fields are errors, so that a misspelt one is noticed."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Lenient(BaseModel):
    """Unknown fields are ignored, because other vendors' clients send their own."""

    model_config = ConfigDict(extra="ignore", strict=True)


class Truncated(BaseModel):
    """A text of which the model read only a part."""

    index: int
    tokens: int = Field(description="Tokens that were dropped.")


class Usage(BaseModel):
    """Tokens that the model read."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingRequest(Lenient):
    """OpenAI's request for embeddings; ``input_type`` is ours."""

    input: (
        str
        | Annotated[list[str], Field(min_length=1)]
        | Annotated[list[int], Field(min_length=1)]
        | Annotated[list[Annotated[list[int], Field(min_length=1)]], Field(min_length=1)]
    ) = Field(description="A text, texts, or token ids of this model without special tokens.")
    model: str | None = None
    encoding_format: Literal["float", "base64"] | None = "float"
    dimensions: int | None = Field(default=None, ge=1, description="Keep only the first dimensions.")
    input_type: Literal["context", "candidate", "query", "document"] = Field(
        default="candidate", description="Which side the texts are on; a query is a context."
    )
    user: str | None = None


class Embedding(BaseModel):
    """The vector of one text: numbers, or little-endian float32 in base64."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class EmbeddingResponse(BaseModel):
    """OpenAI's answer, and which texts were truncated."""

    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: Usage
    truncated: list[Truncated] = []


class Document(Lenient):
    """A document of a rerank request."""

    text: str


class RerankRequest(Lenient):
    """Cohere's and Jina's request for a reranking."""

    query: ContextField
    documents: Annotated[list[str | Document], Field(min_length=1)]
    model: str | None = None
    top_n: int | None = Field(default=None, ge=1)
    return_documents: bool = False


class RerankResult(BaseModel):
    """A document of a reranking.

    ``relevance_score`` is the calibrated probability if the model is calibrated, the sigmoid of an unbounded
    score, or the score itself. The order is always that of ``score``.
    """

    index: int
    relevance_score: float
    score: float = Field(description="The model's own score.")
    document: Document | None = None


class RerankResponse(BaseModel):
    """The answer of ``/v1/rerank`` and ``/v2/rerank``."""

    id: str
    model: str
    results: list[RerankResult]
    usage: Usage
    meta: dict[str, Any] = {}
    truncated: list[Truncated] = Field(default=[], description="Documents that were truncated.")
    query_truncated: int = Field(default=0, description="Tokens of the query that were dropped.")


class TeiRerankRequest(Lenient):
    """The rerank request of Text Embeddings Inference."""

    query: ContextField
    texts: Texts
    raw_scores: bool = False
    return_text: bool = False
    model: str | None = None


class TeiRank(BaseModel):
    """A text of TEI's reranking."""

    index: int
    score: float
    text: str | None = None


class ScoreRequest(Strict):
    """Contexts and candidates to score: all against all, or in pairs."""

    contexts: Annotated[list[ContextField], Field(min_length=1)]
    candidates: Texts
    pairs: bool = Field(default=False, description="Score each context with the candidate at its position.")
    model: str | None = None


class ScoreResponse(BaseModel):
    """``scores`` is one row per context, or one number per pair. ``truncated`` counts by text."""

    model: str
    scores: list[list[float]] | list[float]
    probabilities: list[list[float]] | list[float] | None = None
    usage: Usage
    truncated_contexts: list[Truncated] = []
    truncated_candidates: list[Truncated] = []
    seconds: float


class RankRequest(Strict):
    """A context and its candidates."""

    context: ContextField
    candidates: Texts
    k: int = Field(default=10, ge=1, description="Number of candidates to return.")
    model: str | None = None


class RankedCandidate(BaseModel):
    """A candidate of a ranking; ``position`` is its index in the request."""

    position: int
    score: float
    probability: float | None = None
    text: str
    context_truncated: int
    candidate_truncated: int


class RankResponse(BaseModel):
    """The best candidates, best first."""

    model: str
    kind: str
    ranking: list[RankedCandidate]
    usage: Usage
    seconds: float


class ExplainRequest(Strict):
    """A pair to explain."""

    context: ContextField
    candidate: str
    model: str | None = None
    leave_one_out: bool = False


class Share(BaseModel):
    """A word or token and its part of the score; ``start`` and ``end`` are its characters."""

    text: str
    start: int
    end: int
    weight: float | None = None
    contribution: float


class Code(BaseModel):
    """A code of a poly-encoder: the candidate's attention to it and its part of the score."""

    position: int
    weight: float
    contribution: float


class ExplainResponse(BaseModel):
    """How the words of both texts contribute to the score."""

    model: str
    kind: str
    method: str
    score: float
    context: str
    candidate: str
    tokens: list[Share]
    candidate_tokens: list[Share]
    codes: list[Code]
    context_truncated: int
    candidate_truncated: int
    notes: list[str]
    seconds: float


class SearchRequest(Strict):
    """A search in an index."""

    index: str
    context: ContextField
    k: int = Field(default=10, ge=1)
    mode: Mode = "vectors"
    where: dict[str, Any] | None = Field(
        default=None, description='Metadata that a candidate must have, such as {"topic": "cards"}.'
    )
    rerank: int | None = Field(default=None, ge=0, description="How many candidates the reranker reads.")
    exact: bool = Field(default=False, description="Scan all vectors, even if there is a graph.")


class PartOfText(BaseModel):
    """The characters ``text[start:end]``."""

    start: int
    end: int


class FoundCandidate(BaseModel):
    """A candidate that was found."""

    id: str
    text: str
    score: float
    metadata: dict[str, Any]
    part: PartOfText | None = None


class SearchResponse(BaseModel):
    """The best candidates, and whether it is proven that there are no better ones."""

    index: str
    model: str
    hits: list[FoundCandidate]
    certainty: str
    context_truncated: int
    seconds: float


class WriteRequest(Strict):
    """Candidates for an index: texts, or objects with text and optionally id and metadata."""

    candidates: Annotated[list[str | dict[str, Any]], Field(min_length=1)]


class RemoveRequest(Strict):
    """Candidates to remove from an index."""

    ids: Annotated[list[str], Field(min_length=1)]


class WriteResponse(BaseModel):
    """The change is on disk when this answer comes."""

    index: str
    changed: int
    size: int = Field(description="Candidates in the index now.")


class Model(BaseModel):
    """A loaded model, in OpenAI's form with our own fields."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "tercet"
    kind: Literal["bi", "poly", "cross"]
    width: int | None = Field(description="Dimensions of a vector; a cross-encoder has none.")
    codes: int | None
    max_tokens: int
    calibrated: bool
    precision: str
    fingerprint: str
    scripts: list[str] = Field(description="Scripts that its vocabulary reads, such as Latin and Hangul.")


class ModelList(BaseModel):
    """The loaded models."""

    object: Literal["list"] = "list"
    data: list[Model]


class Index(BaseModel):
    """An index."""

    id: str
    size: int
    model: str
    kind: str
    reranker: str | None


class IndexList(BaseModel):
    """The indexes."""

    object: Literal["list"] = "list"
    data: list[Index]


class Health(BaseModel):
    """Whether the server is alive, or ready."""

    status: Literal["alive", "ready", "loading", "index_missing"]
    indexes: list[str] = Field(
        default=[], description="The indexes whose folders were moved, deleted or replaced."
    )


class ErrorDetail(BaseModel):
    """A problem: what must hold, what came, and what to do next."""

    message: str
    type: str
    code: int
    param: str | None = None
    limit: str | None = Field(default=None, description="The setting that was exceeded.")
    request_id: str


class ErrorResponse(BaseModel):
    """The shape of every error."""

    error: ErrorDetail
