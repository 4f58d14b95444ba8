"""What a recipe learns if it does not say so: by the kind of model and the reader of its data."""

from tercet.settings.data import DataConfig, ReaderKind
from tercet.settings.models import SCORER_CONFIGS, ModelSpec, ScorerKind
from tercet.settings.training import ObjectiveKind

RANKED_READERS: tuple[ReaderKind, ...] = (
    "answers",
    "choices",
    "triplets",
    "dialogues",
    "documents",
    "retrieval",
)
"""Readers of rows with a right candidate."""

OBJECTIVES_BY_READER: dict[ScorerKind, dict[ReaderKind, ObjectiveKind]] = {
    "bi": {
        **dict.fromkeys(RANKED_READERS, "in_batch"),
        "pairs": "cosine",
        "scored": "kl_divergence",
        "translations": "translation",
    },
    "poly": {**dict.fromkeys(RANKED_READERS, "in_batch"), "scored": "kl_divergence"},
    "cross": {**dict.fromkeys(RANKED_READERS, "listwise"), "pairs": "bce"},
}
LABEL_OBJECTIVES: dict[ScorerKind, ObjectiveKind] = {"bi": "softmax", "cross": "cross_entropy"}

LISTWISE_NEGATIVES = 15
"""Random negatives of a cross-encoder's row that has only an answer (Humeau et al., 2020)."""


def scorer_kind(model: ModelSpec) -> ScorerKind | None:
    """The kind of the scorer that is trained; None if it is known only after loading."""
    name = model.source if model.kind == "model" else model.kind
    return next((kind for kind in SCORER_CONFIGS if kind == name), None)


def default_objective(kind: ScorerKind | None, data: DataConfig) -> ObjectiveKind | None:
    """The objective of a kind of model on this data; None if there is none, or several could be meant."""
    if kind is None:
        return None
    return LABEL_OBJECTIVES.get(kind) if data.labels else OBJECTIVES_BY_READER[kind].get(data.reader)


def default_negatives(objective: ObjectiveKind, data: DataConfig) -> int:
    """Random negatives per row: some for ``listwise``, if the rows have none of their own."""
    has_own = "negatives" in data.column_names() or "candidates" in data.column_names()
    return LISTWISE_NEGATIVES if objective == "listwise" and not has_own else 0
