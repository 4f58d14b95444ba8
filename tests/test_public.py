import subprocess
import sys

import pytest

import tercet


@pytest.mark.parametrize("name", tercet.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(tercet, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'loda'"):
        _ = tercet.loda


@pytest.mark.parametrize("code", ["import tercet", "import tercet.cli", "import tercet.data.sample"])
def test_torch_is_not_imported_before_it_is_needed(code: str) -> None:
    check = f"{code}; import sys; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
