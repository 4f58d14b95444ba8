"""Settings, one frozen dataclass per concept; defaults live here and nowhere else."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, get_args

from tercet.errors import InputError
from tercet.inputs import check_choice, check_count, check_factor, check_flag, check_scale, check_string

Precision: TypeAlias = Literal["fp32", "bf16"]
Side: TypeAlias = Literal["context", "candidate"]
Similarity: TypeAlias = Literal["cosine", "dot"]
PoolingKind: TypeAlias = Literal["first", "mean", "max", "mean_first", "mean_sqrt", "weighted_mean", "last"]
CodeKind: TypeAlias = Literal["learnt", "first", "last", "last_and_first"]
Reduction: TypeAlias = Literal["first", "mean", "max", "mean_first"]
HeadKind: TypeAlias = Literal["linear", "dense", "native", "compare"]
Activation: TypeAlias = Literal["identity", "sigmoid", "softmax", "tanh"]

PRECISIONS: tuple[Precision, ...] = get_args(Precision)
SIDES: tuple[Side, ...] = get_args(Side)
SIMILARITIES: tuple[Similarity, ...] = get_args(Similarity)
POOLING_KINDS: tuple[PoolingKind, ...] = get_args(PoolingKind)
CODE_KINDS: tuple[CodeKind, ...] = get_args(CodeKind)
REDUCTIONS: tuple[Reduction, ...] = get_args(Reduction)
HEAD_KINDS: tuple[HeadKind, ...] = get_args(HeadKind)
ACTIVATIONS: tuple[Activation, ...] = get_args(Activation)


@dataclass(frozen=True, kw_only=True)
class PoolingConfig:
    """How the states of a text's tokens become one vector; several kinds are concatenated."""

    kinds: tuple[PoolingKind, ...] = ("mean",)
    first_tokens: int = 16
    """How many tokens ``mean_first`` averages."""
    include_prompt: bool = True
    """Whether the tokens of a prompt count."""

    def __post_init__(self) -> None:
        if not self.kinds:
            raise InputError(f"pooling needs at least one of {', '.join(POOLING_KINDS)}")
        for kind in self.kinds:
            check_choice("pooling", kind, POOLING_KINDS)
        if self.first_tokens < 1:
            raise InputError(f"first_tokens must be at least 1, got {self.first_tokens}")


@dataclass(frozen=True, kw_only=True)
class BiConfig:
    """What makes a bi-encoder out of its towers."""

    towers: int = 1
    """1: both sides share one tower (siamese). 2: each side has its own; they start equal."""
    similarity: Similarity = "cosine"
    context_prompt: str = ""
    """Put in front of every context."""
    candidate_prompt: str = ""
    """Put in front of every candidate."""
    turn_separator: str = "\n"
    """Stands between the turns of a context."""

    def __post_init__(self) -> None:
        check_choice("similarity", self.similarity, SIMILARITIES)
        for name in ("context_prompt", "candidate_prompt", "turn_separator"):
            check_string(name, getattr(self, name))
        _check_towers(self.towers)


@dataclass(frozen=True, kw_only=True)
class PolyConfig:
    """What makes a poly-encoder out of its towers (Humeau et al., 2020)."""

    codes: int = 64
    """m: how many vectors stand for a context."""
    code_kind: CodeKind = "learnt"
    """Codes that attend over the context, or the states of its first or last tokens."""
    reduction: Reduction = "mean"
    """How a candidate becomes one vector. The paper takes the first state; that of a backbone trained for
    the mean, such as MiniLM, says little before training."""
    first_tokens: int = 16
    """How many tokens ``mean_first`` averages."""
    towers: int = 2
    """2: each side has its own transformer, as in the paper; they start equal. 1: both share one."""
    similarity: Similarity = "dot"
    """How a candidate meets a code: ``dot`` as in the paper, or ``cosine``, where lengths do not count, as in
    the training of backbones such as MiniLM; scores then lie between -1 and 1, as a bi-encoder's."""
    symmetric: bool = False
    """Average both directions, so that either text may be the context; needs one tower."""
    code_scale: float = 10.0
    """How sharply learnt codes attend to tokens. At 1, as in the paper, all codes over MiniLM become the mean
    of the tokens."""
    candidate_scale: float = 4.0
    """How sharply a candidate attends to the codes."""
    logit_scale: float = 1.0
    """What scores are multiplied by; training softmaxes them."""
    learn_scales: bool = False
    """Whether training moves the three scales."""
    turn_separator: str = "\n"
    """Stands between the turns of a context."""

    def __post_init__(self) -> None:
        check_choice("code_kind", self.code_kind, CODE_KINDS)
        check_choice("reduction", self.reduction, REDUCTIONS)
        check_choice("similarity", self.similarity, SIMILARITIES)
        for name in ("codes", "first_tokens"):
            _keep(self, name, check_count(name, getattr(self, name)))
        for name in ("code_scale", "candidate_scale", "logit_scale"):
            _keep(self, name, check_scale(name, getattr(self, name)))
        for name in ("symmetric", "learn_scales"):
            check_flag(name, getattr(self, name))
        check_string("turn_separator", self.turn_separator)
        _check_towers(self.towers)
        if self.symmetric and self.towers != 1:
            raise InputError(
                f"a symmetric poly-encoder reads both texts alike, with 1 tower, got {self.towers}"
            )


@dataclass(frozen=True, kw_only=True)
class CrossConfig:
    """What makes a cross-encoder out of a transformer."""

    head: HeadKind = "linear"
    """``linear`` on the first state (Humeau et al.); ``dense``: dropout, dense, GELU, dropout, linear;
    ``native``: what transformers gives the architecture for sequence classification; ``compare``: linear on
    the mean states of both texts, their difference and product, which begins as a cosine."""
    outputs: int = 1
    """1: a score, for regression or ranking. More: classes."""
    activation: Activation = "identity"
    """What turns the outputs into scores."""
    labels: tuple[str, ...] = ()
    """Names of the classes, if they have any."""
    score_class: int | None = None
    """Which of several classes is the score that candidates are ranked by."""
    other_weight: float | None = None
    """None: both texts in one row, as BERT reads pairs. A number: each text is written as if alone, and its
    tokens heed the other's by that factor. Over a bi-encoder's encoder (mean pooling, cosine) 0 is that
    bi-encoder, as long as nothing is cut, and about 0.05 a cross-encoder that begins with what it knows."""
    symmetric: bool = False
    """Read each pair both ways and take the mean, for pairs in which neither text is the context: (a, b) then
    scores as (b, a), in twice the time."""
    context_floor: int = 32
    """So many tokens of a context no candidate pushes out; above that, the candidate is kept whole."""
    dropout: float = 0.1
    """In the head, while training; the linear head has none."""
    turn_separator: str = "\n"
    """Stands between the turns of a context."""

    def __post_init__(self) -> None:
        check_choice("head", self.head, HEAD_KINDS)
        check_choice("activation", self.activation, ACTIVATIONS)
        for name in ("outputs", "context_floor"):
            _keep(self, name, check_count(name, getattr(self, name)))
        check_string("turn_separator", self.turn_separator)
        check_flag("symmetric", self.symmetric)
        _keep(self, "labels", _checked_labels(self.labels, self.outputs))
        if self.score_class is not None and not 0 <= self.score_class < self.outputs:
            raise InputError(f"score_class must be between 0 and {self.outputs - 1}, got {self.score_class}")
        if self.activation == "softmax" and self.outputs == 1:
            raise InputError("softmax over one output is always 1: choose sigmoid or identity")
        if self.other_weight is not None:
            _keep(self, "other_weight", check_factor("other_weight", self.other_weight))
            if self.head != "compare":
                raise InputError(f"other_weight needs a comparing head, not {self.head}: set head to compare")
        if self.head == "compare" and self.outputs != 1:
            raise InputError(f"a comparing head gives 1 score, not {self.outputs} classes: choose another")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be at least 0 and below 1, got {self.dropout}")


def cross_settings(config: CrossConfig) -> dict[str, Any]:
    """Its fields; one that came later is left out while it is off, so that older models keep their names."""
    table = asdict(config)
    if config.other_weight is None:
        del table["other_weight"]
    return table


@dataclass(frozen=True, kw_only=True)
class AdapterConfig:
    """Low-rank adapters: transformers stay as they are, and learn two thin matrices for each of theirs."""

    rank: int = 16
    """Of the matrices; they are saved, a few megabytes."""
    alpha: float = 32.0
    """Their product is multiplied by alpha / rank."""
    dropout: float = 0.05
    layers: tuple[str, ...] = ()
    """Names of the linear layers to adapt, such as ``query``; all of them by default."""

    def __post_init__(self) -> None:
        check_count("rank", self.rank)
        check_scale("alpha", self.alpha)
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be at least 0 and below 1, got {self.dropout}")


@dataclass(frozen=True, kw_only=True)
class BatchConfig:
    """How much is computed at once."""

    tokens: int = 2048
    """Real tokens in one forward pass on a CPU; more is not faster and takes more memory."""
    gpu_tokens: int = 32_768
    """Real tokens in one forward pass on a GPU; fewer leave it idle, more are padded too much."""
    window_texts: int = 8192
    """Texts that are sorted by length together, and the most that a stream holds in memory."""
    window_characters: int = 4_000_000
    """Ends a window early when its texts are long."""


def _keep(config: object, name: str, value: object) -> None:
    """Put a checked value, such as a plain number for numpy's, into a frozen dataclass."""
    object.__setattr__(config, name, value)


def _check_towers(towers: object) -> None:
    if towers not in (1, 2):
        raise InputError(f"towers must be 1 or 2, got {towers}")


def _checked_labels(labels: object, outputs: int) -> tuple[str, ...]:
    if not isinstance(labels, (list, tuple)) or not all(isinstance(label, str) for label in labels):
        raise InputError(f"labels must be a list of strings, got {labels!r}")
    if labels and (len(labels) != outputs or len(set(labels)) != outputs):
        raise InputError(f"{outputs} outputs need as many different labels, got {', '.join(labels)}")
    return tuple(labels)
