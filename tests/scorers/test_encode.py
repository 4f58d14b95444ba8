"""``encode``: texts to an array, or a stream of texts to a file of vectors."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import SENTENCES

import tercet
from tercet.errors import InputError, OutputError, TruncationWarning
from tercet.files.vectors import open_vectors
from tercet.settings.encoding import EncodingConfig


def test_an_array_comes_back_with_and_without_a_file(tiny: tercet.BiEncoder, tmp_path: Path) -> None:
    in_memory, in_file = tiny.encode(SENTENCES), tiny.encode(SENTENCES, tmp_path / "vectors.npy")
    assert in_memory.shape == in_file.shape == (len(SENTENCES), 16)
    assert isinstance(in_file, np.memmap)
    np.testing.assert_array_equal(in_memory, in_file)
    np.testing.assert_allclose(in_memory, tiny.encode_candidates(SENTENCES), atol=1e-6)


def test_windows_keep_the_order_of_the_texts(tiny: tercet.BiEncoder) -> None:
    expected = tiny.encode(SENTENCES)
    tiny.encoding = EncodingConfig(cpu_tokens=20, window_texts=3)
    np.testing.assert_allclose(tiny.encode(text for text in SENTENCES), expected, atol=1e-6)


def test_normalized_vectors_have_length_1(tiny: tercet.BiEncoder, tmp_path: Path) -> None:
    plain = tiny.encode(SENTENCES)
    for path in (None, tmp_path / "unit.npy"):
        vectors = tiny.encode(SENTENCES, path, normalize=True)
        np.testing.assert_allclose(vectors, plain / np.sqrt((plain**2).sum(axis=1, keepdims=True)), atol=1e-6)


def test_dimensions_are_cut_before_vectors_are_normalized(tiny: tercet.BiEncoder, tmp_path: Path) -> None:
    first = tiny.encode(SENTENCES)[:, :3]
    np.testing.assert_array_equal(tiny.encode(SENTENCES, dimensions=3), first)
    for path in (None, tmp_path / "unit.npy"):
        vectors = tiny.encode(SENTENCES, path, dimensions=3, normalize=True)
        np.testing.assert_allclose(vectors, first / np.sqrt((first**2).sum(axis=1, keepdims=True)), atol=1e-6)
    assert np.load(tmp_path / "unit.npy").shape == (len(SENTENCES), 3)


@pytest.mark.parametrize(
    ("dimensions", "message"),
    [(17, "at most 16, the width of this model's vectors, got 17"), (0, "at least 1, got 0"), (2.5, "float")],
)
def test_other_dimensions_are_refused(tiny: tercet.BiEncoder, dimensions: object, message: str) -> None:
    with pytest.raises(InputError, match=f"dimensions must be .*{message}"):
        tiny.encode(SENTENCES, dimensions=dimensions)  # type: ignore[arg-type]


def test_a_single_text_is_refused_with_the_call_that_encodes_it(tiny: tercet.BiEncoder) -> None:
    with pytest.raises(InputError, match=r"got str 'a text': use encode\(\[text\]\)\[0\]"):
        tiny.encode("a text")


@pytest.mark.parametrize("name", [None, "vectors.npy"])
def test_no_texts_are_refused(tiny: tercet.BiEncoder, name: str | None, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no texts to encode: give at least one"):
        tiny.encode([], None if name is None else tmp_path / name)


def test_overwriting_without_a_path_is_refused(tiny: tercet.BiEncoder) -> None:
    with pytest.raises(InputError, match="overwrite needs a path"):
        tiny.encode(SENTENCES, overwrite=True)


def test_a_cross_encoder_says_that_it_has_no_vectors(tiny_folder: Callable[[str], Path]) -> None:
    cross = tercet.CrossEncoder.from_backbone(tiny_folder("bert"), device="cpu")
    with pytest.raises(InputError, match="a CrossEncoder has no vectors: use a bi- or poly-encoder"):
        cross.encode(SENTENCES)


def test_the_file_equals_encode_candidates(tiny: tercet.BiEncoder, tmp_path: Path) -> None:
    texts = SENTENCES * 20
    tiny.encoding = EncodingConfig(cpu_tokens=40, window_texts=7)
    written = tiny.encode_to_file(iter(texts), tmp_path / "vectors.npy")
    assert (written.count, written.width, written.truncated) == (len(texts), 16, 0)
    vectors = open_vectors(written.path)
    np.testing.assert_allclose(vectors, tiny.encode_candidates(texts), atol=1e-6)


def test_the_file_of_contexts_equals_encode_contexts(tiny: tercet.BiEncoder, tmp_path: Path) -> None:
    contexts = [SENTENCES[:2], SENTENCES[3]]
    written = tiny.encode_to_file(contexts, tmp_path / "codes.npy", side="context")
    expected = tiny.encode_contexts(contexts).vectors[:, 0]
    np.testing.assert_allclose(open_vectors(written.path), expected, atol=1e-6)


def test_progress_counts_every_text(tiny: tercet.BiEncoder, tmp_path: Path) -> None:
    done: list[int] = []
    tiny.encoding = EncodingConfig(cpu_tokens=10)
    tiny.encode(SENTENCES, tmp_path / "vectors.npy", on_progress=done.append)
    assert sum(done) == len(SENTENCES)
    assert len(done) > 1


def test_truncated_texts_are_counted(tiny: tercet.BiEncoder, tmp_path: Path) -> None:
    with pytest.warns(TruncationWarning):
        written = tiny.encode_to_file(["cat", "cat " * 99, "dog " * 99], tmp_path / "vectors.npy")
    assert written.truncated == 2


def test_an_invalid_text_is_named_and_leaves_no_file(tiny: tercet.BiEncoder, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="text 2 must be a string, got None"):
        tiny.encode(["cat", "dog", None], tmp_path / "vectors.npy")  # type: ignore[list-item]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("texts", ["a text", None, 5])
def test_texts_that_are_not_a_list_are_refused(tiny: tercet.BiEncoder, tmp_path: Path, texts: object) -> None:
    with pytest.raises(InputError, match="texts must be a list, got"):
        tiny.encode(texts, tmp_path / "vectors.npy")  # type: ignore[arg-type]
    assert os.listdir(tmp_path) == []


def test_an_existing_file_is_kept_and_no_text_is_read(tiny: tercet.BiEncoder, tmp_path: Path) -> None:
    path = tmp_path / "vectors.npy"
    path.write_text("existing")

    def texts() -> Iterator[str]:
        pytest.fail("a text was read")
        yield ""

    with pytest.raises(OutputError, match=r"vectors\.npy exists"):
        tiny.encode(texts(), path)
    assert path.read_text() == "existing"


def test_an_existing_file_is_overwritten_on_request(tiny: tercet.BiEncoder, tmp_path: Path) -> None:
    path = tmp_path / "vectors.npy"
    path.write_text("old")
    tiny.encode(SENTENCES, path, overwrite=True)
    assert open_vectors(path).shape == (len(SENTENCES), 16)


ENCODE_FOREVER = """
import signal, sys, tercet
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it by default
def texts():
    for number in range(10**9):
        if number == 8_300:
            print("writing", flush=True)
        yield f"sentence number {number}"
tercet.load("bi", device="cpu").encode(texts(), sys.argv[1])
"""


def stop_while_writing(path: Path, by: signal.Signals) -> None:
    """Start an encode in another process, wait until it writes, and stop it."""
    command = [sys.executable, "-c", ENCODE_FOREVER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        assert any(name.endswith(".partial") for name in os.listdir(path.parent))
        process.send_signal(by)
        try:
            assert process.wait(timeout=60) != 0
        finally:
            process.kill()


def test_an_interrupted_encode_leaves_no_file(tmp_path: Path) -> None:
    stop_while_writing(tmp_path / "vectors.npy", signal.SIGINT)
    assert os.listdir(tmp_path) == []


def test_a_killed_encode_leaves_no_file_under_the_final_name(tmp_path: Path) -> None:
    stop_while_writing(tmp_path / "vectors.npy", signal.SIGKILL)
    assert not (tmp_path / "vectors.npy").exists()
