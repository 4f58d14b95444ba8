"""The three kinds of scorer, by name."""

from typing import TypeAlias

from tercet.scorers.bi import BiEncoder
from tercet.scorers.cross import CrossEncoder
from tercet.scorers.poly import PolyEncoder
from tercet.settings.models import ScorerKind

AnyScorer: TypeAlias = BiEncoder | PolyEncoder | CrossEncoder

KINDS: dict[ScorerKind, type[AnyScorer]] = {
    "bi": BiEncoder,
    "poly": PolyEncoder,
    "cross": CrossEncoder,
}
