"""Times in turn, and when a ratio is a tie."""

from functools import partial
from time import sleep

import torch

import tercet
from tercet.evaluate.bench.rounds import Action, Ratio, Times, in_turn, ratio
from tercet.evaluate.bench.scorers import paper_formula
from tercet.models.code_layer import CodeTensors


def test_every_round_gives_each_its_turn() -> None:
    calls: list[str] = []
    actions = {name: Action(lambda name=name: calls.append(name)) for name in "ab"}  # type: ignore[misc]
    times = in_turn(actions, rounds=3)
    assert "".join(calls) == "ab" + "ab" * 3
    assert all(len(each.seconds) == 3 for each in times.values())


def test_what_is_done_in_part_is_multiplied_and_said_to_be_estimated() -> None:
    pause = partial(sleep, 0.002)
    times = in_turn({"part": Action(pause, times=1000), "whole": Action(pause)}, rounds=2)
    assert times["part"].estimated
    assert not times["whole"].estimated
    assert times["part"].median > 1 > times["whole"].median


def test_a_ratio_worked_out_by_hand() -> None:
    found = ratio(Times((4.0, 6.0, 1.0)), Times((2.0, 2.0, 2.0)))
    assert found == (2.0, 0.5, 3.0)
    assert found.tie
    assert "a tie" in str(found)
    assert not Ratio(2.0, 1.5, 2.5).tie


def test_the_papers_formula_equals_match() -> None:
    codes, candidates = torch.randn(1, 5, 8), torch.randn(7, 8)
    ours = tercet.match(codes, candidates)
    theirs = paper_formula(CodeTensors(codes, torch.ones(1, 5, dtype=torch.bool)), candidates)
    torch.testing.assert_close(ours, theirs)
