"""The public names of ``tercet``, which are imported on first use."""

import subprocess
import sys
from pathlib import Path

import pytest

import tercet

MAX_NAMES = 26


@pytest.mark.parametrize("name", tercet.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(tercet, name) is not None


def test_there_are_at_most_26_public_names() -> None:
    assert len(set(tercet.__all__)) == len(tercet.__all__) <= MAX_NAMES


@pytest.mark.parametrize("name", ["errors.InputError", "index.ExactIndex"])
def test_errors_and_indexes_need_no_import_of_their_own(name: str) -> None:
    subprocess.run([sys.executable, "-c", f"import tercet; tercet.{name}"], check=True)


def test_a_process_started_by_a_test_imports_the_tree() -> None:
    """Also without a PYTHONPATH, and although a copy may be installed."""
    command = [sys.executable, "-c", "import tercet; print(tercet.__file__)"]
    imported = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert Path(imported) == Path(__file__).parents[1] / "src" / "tercet" / "__init__.py"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'loda'"):
        _ = tercet.loda


@pytest.mark.parametrize("code", ["import tercet", "import tercet.cli", "import tercet.data.sample"])
def test_torch_and_numpy_are_not_imported_before_they_are_needed(code: str) -> None:
    check = f"{code}; import sys; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
