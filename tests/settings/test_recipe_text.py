"""Values of recipes as TOML."""

import math
import tomllib

import pytest

from tercet.settings.recipe_text import toml_value


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.123456789, "0.123456789"),
        (2e-05, "2e-05"),
        (3.0, "3"),
        (1e300, "1e+300"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
    ],
)
def test_a_float_keeps_all_its_digits(value: float, written: str) -> None:
    assert toml_value(value) == written
    assert str(float(tomllib.loads(f"x = {written}")["x"])) == str(value)
