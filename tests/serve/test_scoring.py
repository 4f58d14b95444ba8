"""Scores by the engine, with an engine that a test controls."""

import asyncio
from typing import Any

import pytest

from tercet.errors import ModelError
from tercet.serve.models import ServedDual
from tercet.serve.scoring import score_all


class TwoTowers(ServedDual):
    """A model whose contexts and candidates are computed in two lanes."""

    def __init__(self) -> None:
        pass

    def lane(self, side: Any) -> Any:
        return side


class FailingEngine:
    """Contexts fail, and candidates are never ready."""

    def __init__(self) -> None:
        self.cancelled: list[str] = []

    def model(self, name: str) -> TwoTowers:
        return TwoTowers()

    async def run(self, name: str, lane: str, texts: Any) -> Any:
        if lane == "context":
            await asyncio.sleep(0)
            raise ModelError("a context fails")
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            self.cancelled.append(lane)
            raise


def test_if_a_context_fails_its_candidates_are_dropped() -> None:
    async def scenario() -> list[str]:
        engine: Any = FailingEngine()
        with pytest.raises(ModelError):
            await score_all(engine, "poly", ["context"], ["candidate"])
        await asyncio.sleep(0.01)
        return list(engine.cancelled)  # before the loop is closed, which cancels everything

    assert asyncio.run(scenario()) == ["candidate"]
