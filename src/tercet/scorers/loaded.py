"""The scorers that ``tercet.load`` returns, whatever runs them."""

from typing import TypeAlias

from tercet.scorers.bi_scorer import BiScorer
from tercet.scorers.cross_scorer import CrossScorer
from tercet.scorers.poly_scorer import PolyScorer

LoadedScorer: TypeAlias = BiScorer | PolyScorer | CrossScorer
