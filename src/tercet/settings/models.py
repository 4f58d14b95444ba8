"""Settings of the three scorers, and the specification of the model that training starts from."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from tercet.errors import InputError
from tercet.inputs import (
    check_choice,
    check_count,
    check_factor,
    check_flag,
    check_scale,
    check_seed,
    check_string,
)
from tercet.settings.limits import current_limits, exceeds
from tercet.settings.tables import lists_to_tuples

Precision: TypeAlias = Literal["fp32", "bf16", "fp16", "int8"]
Runtime: TypeAlias = Literal["torch", "openvino"]
Side: TypeAlias = Literal["context", "candidate"]
Similarity: TypeAlias = Literal["cosine", "dot"]
PoolingKind: TypeAlias = Literal["first", "mean", "max", "mean_first", "mean_sqrt", "weighted_mean", "last"]
CodeKind: TypeAlias = Literal["learnt", "first", "last", "last_and_first"]
Reduction: TypeAlias = Literal["first", "mean", "max", "mean_first"]
HeadKind: TypeAlias = Literal["linear", "dense", "native", "compare"]
Activation: TypeAlias = Literal["identity", "sigmoid", "softmax", "tanh"]
ScorerKind: TypeAlias = Literal["bi", "poly", "cross"]
SpecKind: TypeAlias = Literal["model", "bi", "poly", "cross"]

PRECISIONS: tuple[Precision, ...] = get_args(Precision)
RUNTIMES: tuple[Runtime, ...] = get_args(Runtime)
SIDES: tuple[Side, ...] = get_args(Side)
SIMILARITIES: tuple[Similarity, ...] = get_args(Similarity)
POOLING_KINDS: tuple[PoolingKind, ...] = get_args(PoolingKind)
CODE_KINDS: tuple[CodeKind, ...] = get_args(CodeKind)
REDUCTIONS: tuple[Reduction, ...] = get_args(Reduction)
HEAD_KINDS: tuple[HeadKind, ...] = get_args(HeadKind)
ACTIVATIONS: tuple[Activation, ...] = get_args(Activation)
SPEC_KINDS: tuple[SpecKind, ...] = get_args(SpecKind)


@dataclass(frozen=True, kw_only=True)
class PoolingConfig:
    """How token states become one vector; the vectors of several kinds are concatenated."""

    kinds: tuple[PoolingKind, ...] = ("mean",)
    """The kinds of pooling, such as ``mean`` of all states or ``first`` for that of the first token."""
    first_tokens: int = 16
    """For ``mean_first``: number of tokens to average."""
    include_prompt: bool = True
    """Whether the tokens of a prompt are pooled too."""

    def __post_init__(self) -> None:
        if not self.kinds:
            raise InputError(f"pooling needs at least one of {', '.join(POOLING_KINDS)}")
        for kind in self.kinds:
            check_choice("pooling", kind, POOLING_KINDS)
        check_count("first_tokens", self.first_tokens)


@dataclass(frozen=True, kw_only=True)
class BiConfig:
    """Settings of a bi-encoder."""

    towers: int = 1
    """1: contexts and candidates share one encoder. 2: two encoders, initialized with the same weights."""
    similarity: Similarity = "cosine"
    """How two vectors are compared."""
    context_prompt: str = ""
    """Prefix of every context."""
    candidate_prompt: str = ""
    """Prefix of every candidate."""
    turn_separator: str = "\n"
    """String that joins the turns of a context."""

    def __post_init__(self) -> None:
        check_choice("similarity", self.similarity, SIMILARITIES)
        for name in ("context_prompt", "candidate_prompt", "turn_separator"):
            check_string(name, getattr(self, name))
        _check_towers(self.towers)


@dataclass(frozen=True, kw_only=True)
class PolyConfig:
    """Settings of a poly-encoder (Humeau et al., 2020)."""

    codes: int = 64
    """Number of codes per context (m in the paper)."""
    code_kind: CodeKind = "learnt"
    """``learnt``: learnt queries attend over the tokens of the context. ``first``, ``last``,
    ``last_and_first``: the codes are the states of these tokens."""
    reduction: Reduction = "mean"
    """How the token states of a candidate become one vector. The paper uses ``first``. MiniLM and other
    models trained with mean pooling need ``mean``: their first state is untrained."""
    first_tokens: int = 16
    """For ``mean_first``: number of tokens to average."""
    towers: int = 2
    """2: each side has its own encoder, as in the paper; both start with the same weights. 1: both share
    one."""
    similarity: Similarity = "cosine"
    """How a candidate is compared with a code: ``cosine``, for which backbones such as MiniLM were trained,
    or ``dot`` as in the paper. Cosine scores lie between -1 and 1."""
    symmetric: bool = False
    """Average the scores of both directions, for pairs of interchangeable texts. Needs one tower."""
    code_scale: float = 10.0
    """Multiplies the logits of the codes' attention over the tokens. The paper uses 1; with MiniLM, all codes
    then collapse to the mean of the tokens."""
    candidate_scale: float = 10.0
    """Multiplies the logits of the candidates' attention over the codes. 10 suits cosines; the paper uses 1,
    with dot products."""
    logit_scale: float = 1.0
    """Multiplies the scores."""
    learn_scales: bool = False
    """Whether training updates the three scales."""
    turn_separator: str = "\n"
    """String that joins the turns of a context."""

    def __post_init__(self) -> None:
        check_choice("code_kind", self.code_kind, CODE_KINDS)
        check_choice("reduction", self.reduction, REDUCTIONS)
        check_choice("similarity", self.similarity, SIMILARITIES)
        for name in ("codes", "first_tokens"):
            _set(self, name, check_count(name, getattr(self, name)))
        for name in ("code_scale", "candidate_scale", "logit_scale"):
            _set(self, name, check_scale(name, getattr(self, name)))
        for name in ("symmetric", "learn_scales"):
            check_flag(name, getattr(self, name))
        check_string("turn_separator", self.turn_separator)
        _check_towers(self.towers)
        if self.symmetric and self.towers != 1:
            raise InputError(f"a symmetric poly-encoder needs 1 tower for both texts, got {self.towers}")


@dataclass(frozen=True, kw_only=True)
class CrossConfig:
    """Settings of a cross-encoder."""

    head: HeadKind = "linear"
    """``linear``: one layer on the first state (Humeau et al.). ``dense``: dropout, dense, GELU, dropout,
    linear. ``native``: the classification head that transformers has for the architecture. ``compare``: one
    layer on the mean-pooled texts u and v, ``|u − v|`` and u ∗ v; untrained, it returns a scaled cosine."""
    num_labels: int = 1
    """Number of outputs. 1: a score, for regression or ranking. More: one per class."""
    activation: Activation = "identity"
    """Activation function, from logits to scores."""
    labels: tuple[str, ...] = ()
    """Names of the classes."""
    score_class: int | None = None
    """Index of the class that serves as the score for ranking."""
    cross_text_weight: float | None = None
    """Default: both texts form one sequence, as in BERT. With a number, each text has its own special tokens
    and positions, and attention to the other text is multiplied by this weight. With a sentence encoder as
    the backbone, 0 equals the bi-encoder, and 0.05 is a good start. Needs ``head = "compare"``."""
    candidate_segment: bool = False
    """With ``cross_text_weight``: whether the tokens of the candidate have token type 1, so that the encoder
    can tell the texts apart. Without it, pairs have the token types of the tokenizer's own template."""
    symmetric: bool = False
    """Average the scores of both directions, for pairs of interchangeable texts. Takes twice the time."""
    min_context_tokens: int = 32
    """If a pair is too long, the context is truncated first, but to no fewer than this many tokens; then the
    candidate is."""
    dropout: float = 0.1
    """Dropout in the head during training; the linear head has none."""
    turn_separator: str = "\n"
    """String that joins the turns of a context."""

    def __post_init__(self) -> None:
        check_choice("head", self.head, HEAD_KINDS)
        check_choice("activation", self.activation, ACTIVATIONS)
        for name in ("num_labels", "min_context_tokens"):
            _set(self, name, check_count(name, getattr(self, name)))
        if self.num_labels > current_limits().max_labels:
            raise InputError(f"num_labels is {exceeds('max_labels', self.num_labels)}")
        check_string("turn_separator", self.turn_separator)
        for name in ("symmetric", "candidate_segment"):
            check_flag(name, getattr(self, name))
        if self.candidate_segment and self.cross_text_weight is None:
            raise InputError("candidate_segment needs cross_text_weight")
        _set(self, "labels", _checked_labels(self.labels, self.num_labels))
        if self.score_class is not None and not 0 <= self.score_class < self.num_labels:
            raise InputError(
                f"score_class must be between 0 and {self.num_labels - 1}, got {self.score_class}"
            )
        if self.activation == "softmax" and self.num_labels == 1:
            raise InputError("softmax over one output is always 1: use sigmoid or identity")
        if self.cross_text_weight is not None:
            _set(self, "cross_text_weight", check_factor("cross_text_weight", self.cross_text_weight))
            if self.head != "compare":
                raise InputError(f'cross_text_weight needs head = "compare", got {self.head!r}')
        if self.head == "compare" and self.num_labels != 1:
            raise InputError(f'head = "compare" has 1 output, got num_labels = {self.num_labels}')
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be at least 0 and below 1, got {self.dropout}")


@dataclass(frozen=True, kw_only=True)
class AdapterConfig:
    """Low-rank adapters (LoRA): the transformer is frozen, and each linear layer learns a low-rank update."""

    rank: int = 16
    """Rank of the update."""
    alpha: float = 32.0
    """The update is multiplied by alpha / rank."""
    dropout: float = 0.05
    """Dropout before the update during training."""
    layers: tuple[str, ...] = ()
    """Names of the linear layers to adapt, such as ``query``. Default: all."""

    def __post_init__(self) -> None:
        check_count("rank", self.rank)
        check_scale("alpha", self.alpha)
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be at least 0 and below 1, got {self.dropout}")


ScorerConfig: TypeAlias = BiConfig | PolyConfig | CrossConfig

SCORER_CONFIGS: dict[ScorerKind, type[ScorerConfig]] = {
    "bi": BiConfig,
    "poly": PolyConfig,
    "cross": CrossConfig,
}


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """The model that training starts from: an existing scorer, or a new one built on a backbone."""

    kind: SpecKind = "model"
    """``model``: continue training ``source``. ``bi``, ``poly``, ``cross``: a new scorer on ``source``."""
    source: str = "bi"
    """A packaged model (``bi``, and for finished models ``poly`` and ``cross``), a folder, or a hub id."""
    settings: dict[str, Any] = field(default_factory=dict)
    """For a new scorer: the fields of its config, such as ``codes``."""
    pooling: tuple[PoolingKind, ...] = ("mean",)
    """For a new bi-encoder: how token states become one vector; several kinds are concatenated."""
    first_tokens: int = PoolingConfig.first_tokens
    """For a new bi-encoder with the pooling ``mean_first``: number of tokens to average."""
    max_tokens: int | None = None
    """For a new scorer: maximum sequence length. Default: the backbone's."""
    seed: int = 0
    """Random seed of new weights, such as codes or a head."""

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, SPEC_KINDS)
        check_seed(self.seed)
        if self.kind != "model":
            self.config()
            self._check_pooling()
        elif self.settings or self.max_tokens is not None:
            raise InputError(
                f"{', '.join(self.settings) or 'max_tokens'} applies to new scorers only: remove it, or set "
                f"kind to one of {', '.join(SCORER_CONFIGS)}"
            )

    def _check_pooling(self) -> None:
        """Raise if the pooling is unknown, or has no effect."""
        pooling, default = self.pooling_config(), PoolingConfig()
        if self.kind != "bi" and pooling != default:
            raise InputError(f"pooling applies to new bi-encoders, and this is a {self.kind}-encoder")
        if pooling.first_tokens != default.first_tokens and "mean_first" not in pooling.kinds:
            raise InputError(
                f'first_tokens = {self.first_tokens} has no effect without pooling = ["mean_first"], got '
                f"{', '.join(pooling.kinds)}"
            )

    def pooling_config(self) -> PoolingConfig:
        """The pooling of a new bi-encoder."""
        return PoolingConfig(kinds=self.pooling, first_tokens=self.first_tokens)

    def config(self) -> Any:
        """The settings as the config of the scorer's kind."""
        if self.kind == "model":
            raise InputError("a loaded model has its own config")
        known: Any = SCORER_CONFIGS[self.kind]
        try:
            return known(**lists_to_tuples(self.settings))
        except TypeError as error:
            names = ", ".join(known.__dataclass_fields__)
            raise InputError(
                f"invalid settings of a {self.kind}-encoder ({error}); known settings: {names}"
            ) from None

    def resolved(self) -> dict[str, Any]:
        """Every setting, including the defaults of the scorer's config."""
        table = asdict(self)
        return table if self.kind == "model" else {**table, "settings": asdict(self.config())}


def _set(config: object, name: str, value: object) -> None:
    """Store a checked value in a frozen dataclass."""
    object.__setattr__(config, name, value)


def _check_towers(towers: object) -> None:
    if towers not in (1, 2):
        raise InputError(f"towers must be 1 or 2, got {towers}")


def _checked_labels(labels: object, num_labels: int) -> tuple[str, ...]:
    if not isinstance(labels, (list, tuple)) or not all(isinstance(label, str) for label in labels):
        raise InputError(f"labels must be a list of strings, got {labels!r}")
    if labels and (len(labels) != num_labels or len(set(labels)) != num_labels):
        raise InputError(f"labels must be {num_labels} different names, got {', '.join(labels)}")
    return tuple(labels)
