"""Without the other library, the error says what to install."""

import subprocess
import sys

import pytest

NAMES = {
    "bertopic": ("bertopic", "bertopic"),
    "haystack": ("haystack", "haystack-ai"),
    "keybert": ("keybert", "keybert"),
    "langchain": ("langchain_core", "langchain-core"),
    "llama_index": ("llama_index.core", "llama-index-core"),
    "scikit_learn": ("sklearn", "scikit-learn"),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_library_is_reported_with_its_install_command(name: str) -> None:
    module, package = NAMES[name]
    hidden = f"""
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
import tercet.integrations.{name}
"""
    done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, check=False)
    assert f"not installed: pip install '{package}'" in done.stderr


def test_with_a_client_torch_is_not_imported() -> None:
    check = """
import sys, tercet
from tercet.integrations.langchain import TercetEmbeddings
TercetEmbeddings(tercet.Client())
sys.exit("torch" in sys.modules)
"""
    pytest.importorskip("langchain_core", reason="needs langchain-core")
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
