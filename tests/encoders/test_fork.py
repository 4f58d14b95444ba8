"""A process that is forked after a model was used works, or fails at once with a clear error."""

import os
import subprocess
import sys
from pathlib import Path

SETUP = """
import os, sys
from pathlib import Path
import torch
torch.set_num_threads(2)  # with one thread nothing can hang
import tercet
from tests.conftest import SENTENCES, make_folder

folder = Path(sys.argv[1])
scorer = tercet.BiEncoder.from_backbone(make_folder(folder / "model", width=256), device="cpu")
texts = SENTENCES * 50
vectors = scorer.encode(texts)

def forked(work):
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", flush=True)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""


def run(code: str, folder: Path) -> list[str]:
    """The lines that a new process prints; one that hangs is an error."""
    done = subprocess.run(
        [sys.executable, "-u", "-W", "ignore", "-c", SETUP + code, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_model_works_in_a_forked_process(tmp_path: Path) -> None:
    code = """
import numpy as np
print(forked(lambda: np.testing.assert_allclose(scorer.encode(texts), vectors, atol=1e-4)))
print(forked(lambda: scorer.rank(texts[0], texts)))
"""
    assert run(code, tmp_path) == ["0", "0"]


def test_an_index_that_was_opened_before_a_fork_is_refused_and_stays_whole(tmp_path: Path) -> None:
    code = """
retriever = tercet.Retriever(scorer, path=folder / "index.tercet")
retriever.add(texts)
retriever.search("a dog", mode="hybrid")
for work in (lambda: retriever.search("a dog"), lambda: retriever.add(["bread"]), lambda: len(retriever)):
    print(forked(work))
print(forked(retriever.close))
print(forked(lambda: tercet.Retriever.open(folder / "index.tercet", scorer).add(["bread"])))
print(len(retriever), retriever.problems())
"""
    refusal = (
        f"InputError: {tmp_path / 'index.tercet'} was open when this process was forked, and SQLite's locks "
        "do not survive that: close it before the fork, or start processes with "
        'multiprocessing.get_context("spawn")'
    )
    assert run(code, tmp_path) == [*[refusal, "1"] * 3, "0", refusal, "1", "400 []"]


def test_a_forked_process_that_ends_keeps_the_temporary_index_of_its_parent(tmp_path: Path) -> None:
    code = """
retriever = tercet.Retriever(scorer)
retriever.add(texts)
child = os.fork()
if child == 0:
    sys.exit(0)  # runs what Python does at the end of a process
os.waitpid(child, 0)
print(retriever.path.exists(), len(retriever.search("a dog", 3)))
path = retriever.path
retriever.close()
print(path.parent.exists())
"""
    assert run(code, tmp_path) == ["True 3", "False"]
