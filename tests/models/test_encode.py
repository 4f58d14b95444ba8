"""Streaming texts into a file of vectors."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import SENTENCES

import tercet
from tercet.config import BatchConfig


def test_the_file_holds_what_encode_candidates_gives(tiny: tercet.BiEncoder, tmp_path: Path) -> None:
    texts = SENTENCES * 20
    tiny.batching = BatchConfig(tokens=40, window_texts=7)
    written = tiny.encode(iter(texts), tmp_path / "vectors.npy")
    assert (written.count, written.width, written.cut) == (len(texts), 16, 0)
    vectors = tercet.open_vectors(written.path)
    np.testing.assert_allclose(vectors, tiny.encode_candidates(texts), atol=1e-6)


def test_contexts_of_turns_are_written_as_codes(tiny: tercet.BiEncoder, tmp_path: Path) -> None:
    contexts = [SENTENCES[:2], SENTENCES[3]]
    written = tiny.encode(contexts, tmp_path / "codes.npy", side="context")
    expected = tiny.encode_contexts(contexts).vectors[:, 0]
    np.testing.assert_allclose(tercet.open_vectors(written.path), expected, atol=1e-6)


def test_progress_counts_every_text(tiny: tercet.BiEncoder, tmp_path: Path) -> None:
    done: list[int] = []
    tiny.batching = BatchConfig(tokens=10)
    tiny.encode(SENTENCES, tmp_path / "vectors.npy", on_progress=done.append)
    assert sum(done) == len(SENTENCES)
    assert len(done) > 1


def test_texts_that_were_cut_are_counted(tiny: tercet.BiEncoder, tmp_path: Path) -> None:
    with pytest.warns(tercet.TruncationWarning):
        written = tiny.encode(["cat", "cat " * 99, "dog " * 99], tmp_path / "vectors.npy")
    assert written.cut == 2


def test_a_bad_text_is_named_and_leaves_no_file(tiny: tercet.BiEncoder, tmp_path: Path) -> None:
    with pytest.raises(tercet.InputError, match="text 2 must be a string, got None"):
        tiny.encode(["cat", "dog", None], tmp_path / "vectors.npy")  # type: ignore[list-item]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("texts", ["a text", None, 5])
def test_what_is_no_list_is_refused(tiny: tercet.BiEncoder, tmp_path: Path, texts: object) -> None:
    with pytest.raises(tercet.InputError, match="texts must be a list of them"):
        tiny.encode(texts, tmp_path / "vectors.npy")  # type: ignore[arg-type]
    assert os.listdir(tmp_path) == []


def test_an_existing_file_is_kept_and_nothing_is_read(tiny: tercet.BiEncoder, tmp_path: Path) -> None:
    path = tmp_path / "vectors.npy"
    path.write_text("precious")

    def texts() -> Iterator[str]:
        pytest.fail("texts were read in vain")
        yield ""

    with pytest.raises(tercet.OutputError, match=r"vectors\.npy exists"):
        tiny.encode(texts(), path)
    assert path.read_text() == "precious"


def test_an_existing_file_is_overwritten_on_request(tiny: tercet.BiEncoder, tmp_path: Path) -> None:
    path = tmp_path / "vectors.npy"
    path.write_text("old")
    tiny.encode(SENTENCES, path, overwrite=True)
    assert tercet.open_vectors(path).shape == (len(SENTENCES), 16)


ENCODE_FOR_EVER = """
import signal, sys, tercet
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job would ignore it
def texts():
    for number in range(10**9):
        if number == 8_300:
            print("going", flush=True)
        yield f"sentence number {number}"
tercet.load("bi", device="cpu").encode(texts(), sys.argv[1])
"""


def stop_midway(path: Path, how: signal.Signals) -> None:
    """Start an encode in another process, wait until it writes, and stop it."""
    command = [sys.executable, "-c", ENCODE_FOR_EVER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "going\n"
        assert any(name.endswith(".partial") for name in os.listdir(path.parent))
        process.send_signal(how)
        try:
            assert process.wait(timeout=60) != 0
        finally:
            process.kill()


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    stop_midway(tmp_path / "vectors.npy", signal.SIGINT)
    assert os.listdir(tmp_path) == []


def test_a_killed_encode_leaves_nothing_under_the_final_name(tmp_path: Path) -> None:
    stop_midway(tmp_path / "vectors.npy", signal.SIGKILL)
    assert not (tmp_path / "vectors.npy").exists()
