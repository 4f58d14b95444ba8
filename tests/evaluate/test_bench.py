"""Interleaved timing, ratios and the actions of ``tercet bench``."""

from functools import partial
from time import sleep

import torch

import tercet
from tercet.evaluate.bench.rounds import Action, Ratio, Times, in_turn, ratio
from tercet.evaluate.bench.scorers import paper_formula


def test_every_round_runs_every_action() -> None:
    calls: list[str] = []
    actions = {name: Action(lambda name=name: calls.append(name)) for name in "ab"}  # type: ignore[misc]
    times = in_turn(actions, rounds=3)
    assert "".join(calls) == "ab" + "ab" * 3
    assert all(len(taken.seconds) == 3 for taken in times.values())


def test_the_result_of_the_last_round_is_kept() -> None:
    numbers = iter(range(10))
    times = in_turn({"count": Action(lambda: next(numbers))}, rounds=3)
    assert times["count"].result == 3  # after an uncounted round


def test_times_of_a_part_are_extrapolated_and_marked_as_estimated() -> None:
    pause = partial(sleep, 0.002)
    times = in_turn({"part": Action(pause, times=1000), "whole": Action(pause)}, rounds=2)
    assert times["part"].estimated
    assert not times["whole"].estimated
    assert times["part"].median > 1 > times["whole"].median


def test_a_ratio_worked_out_by_hand() -> None:
    found = ratio(Times((4.0, 6.0, 1.0)), Times((2.0, 2.0, 2.0)))
    assert found == (2.0, 0.5, 3.0)
    assert found.tie
    assert str(found) == "2.00x (0.50-3.00), a tie"
    assert found.spread == "2.00x (0.50-3.00)"
    assert not Ratio(2.0, 1.5, 2.5).tie


def test_the_formula_of_the_paper_equals_match() -> None:
    codes, candidates = torch.randn(1, 5, 8), torch.randn(7, 8)
    ours = tercet.match(codes, candidates)
    theirs = paper_formula(codes, candidates)
    torch.testing.assert_close(ours, theirs)
