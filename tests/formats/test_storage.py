"""The registry through which scorers reach their folders: it registers itself on first use."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import SENTENCES

import tercet
from tercet.formats.storage import FORMATS
from tercet.scorers.kinds import KINDS

SAVE_AND_LOAD = """
import sys
from tercet.scorers.{module} import {name}
scorer = {name}.from_backbone(sys.argv[1], device="cpu")
loaded = {name}.load(scorer.save(sys.argv[2]), device="cpu")
assert loaded.fingerprint == scorer.fingerprint
"""

LOAD_PACKAGED = """
from tercet.formats.load import load
assert load("poly", device="cpu").kind == "poly"
"""


def run(code: str, *arguments: Path) -> None:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize("module", KINDS)
def test_the_module_of_a_scorer_alone_can_save_and_load(
    module: str, minilm: tercet.BiEncoder, tmp_path: Path
) -> None:
    backbone = minilm.save(tmp_path / "backbone")
    run(SAVE_AND_LOAD.format(module=module, name=KINDS[module].__name__), backbone, tmp_path / "saved")
    saved = tercet.load(tmp_path / "saved", device="cpu")
    assert type(saved) is KINDS[module]
    assert saved.score(SENTENCES[0], SENTENCES).shape == (len(SENTENCES),)


def test_load_alone_can_read_a_delta() -> None:
    run(LOAD_PACKAGED)


def test_every_kind_of_scorer_has_a_folder_format() -> None:
    assert FORMATS.keys() == KINDS.keys()
