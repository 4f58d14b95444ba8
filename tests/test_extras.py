import pytest

import tercet
from tercet.extras import require


def test_a_present_extra_is_imported() -> None:
    assert require("json", extra="none", purpose="nothing").__name__ == "json"


def test_a_missing_extra_prints_its_install_line() -> None:
    with pytest.raises(
        tercet.MissingExtraError, match=r"reading Parquet needs no_such.*pip install 'tercet\[parquet\]'"
    ):
        require("no_such.module", extra="parquet", purpose="reading Parquet")
