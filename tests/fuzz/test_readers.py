"""Damaged data files, recipes and tasks are read or refused; no other error comes out.

``tests/fuzz/run.py`` does the same for longer, and with model folders and indexes.
"""

from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fuzz.targets import Target, check, readers


@pytest.mark.parametrize("target", readers(), ids=lambda target: target.name)
@given(random=st.randoms(use_true_random=False))
@settings(
    max_examples=40,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_damaged_file_is_read_or_refused(target: Target, random: Random, tmp_path: Path) -> None:
    path = tmp_path / target.name
    path.write_bytes(target.damage(target.content, random))
    check(target.read, path)


@pytest.mark.parametrize("target", readers(), ids=lambda target: target.name)
def test_the_files_are_valid_before_they_are_damaged(target: Target, tmp_path: Path) -> None:
    path = tmp_path / target.name
    path.write_bytes(target.content)
    target.read(path)
