"""The first answer of a command comes soon: what it does not need is not imported. No test measures time."""

from pathlib import Path

import pytest

from tests.light.process import run

UNWANTED = {
    "absl",
    "accelerate",
    "fastapi",
    "httpx2",
    "huggingface_hub",
    "jinja2",
    "matplotlib",
    "openvino.tools.ovc",
    "openvino_telemetry",
    "pandas",
    "scipy",
    "sentence_transformers",
    "sklearn",
    "tercet.augment",
    "tercet.evaluate",
    "tercet.serve",
    "tercet.training",
    "torch",
    "transformers",
    "uvicorn",
}

COMMAND = """
import sys
from tercet.cli import main
sys.argv = ["tercet", *{arguments!r}]
try:
    main()
except SystemExit as end:
    assert not end.code
print("modules:", *sys.modules)
"""


def imported(folder: Path, *arguments: str) -> set[str]:
    """The modules that a command has imported when it ends; nothing is missing in its process."""
    done = run(COMMAND.format(arguments=arguments), folder=folder)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.partition("modules:")[2].split())


@pytest.mark.parametrize("model", ["bi", "poly", "cross"])
def test_a_ranking_imports_no_heavy_module(model: str, tmp_path: Path) -> None:
    rank = ("rank", "My card was declined", "-c", "sample:faq.en", "--column", "question", "--model", model)
    modules = imported(tmp_path, *rank)
    assert "openvino" in modules
    assert modules & UNWANTED == set()


def test_a_search_of_an_index_imports_no_heavy_module(tmp_path: Path) -> None:
    built = ("index", "build", "sample:faq.en", "--column", "question", "-o", "faq.tercet")
    imported(tmp_path, *built)
    modules = imported(tmp_path, "search", "faq.tercet", "My card was declined")
    assert "openvino" in modules
    assert modules & UNWANTED == set()
