"""Optional dependencies."""

import pytest

from tercet.errors import MissingExtraError
from tercet.extras import require


def test_an_installed_module_is_imported() -> None:
    assert require("json", extra="none", purpose="nothing").__name__ == "json"


def test_a_missing_module_is_reported_with_its_install_command() -> None:
    with pytest.raises(
        MissingExtraError, match=r"reading Parquet needs no_such.*pip install 'tercet\[parquet\]'"
    ):
        require("no_such.module", extra="parquet", purpose="reading Parquet")
