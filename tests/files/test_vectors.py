"""Files of vectors, written as a stream."""

from pathlib import Path

import numpy as np
import pytest

from tercet.errors import DataError, InputError
from tercet.files.vectors import open_vectors, writing_vectors


def test_appended_vectors_are_read_in_order_through_a_memory_map(tmp_path: Path) -> None:
    path = tmp_path / "vectors.npy"
    parts = [
        np.random.default_rng(seed).random((rows, 3), dtype=np.float32) for seed, rows in enumerate((4, 1, 7))
    ]
    with writing_vectors(path) as writer:
        for part in parts:
            writer.append(part)
    vectors = open_vectors(path)
    np.testing.assert_array_equal(vectors, np.concatenate(parts))
    assert isinstance(vectors, np.memmap)
    assert not vectors.flags.writeable


def test_the_header_has_room_for_any_count(tmp_path: Path) -> None:
    path = tmp_path / "vectors.npy"
    with writing_vectors(path) as writer:
        writer.append(np.zeros((1, 2), dtype=np.float32))
        writer.append(np.zeros((1_234_567, 2), dtype=np.float32))
    assert np.load(path, mmap_mode="r").shape == (1_234_568, 2)


def test_vectors_of_another_width_are_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match=r"shape \(3,\), got \(4,\)"),
        writing_vectors(tmp_path / "vectors.npy") as writer,
    ):
        writer.append(np.zeros((1, 3), dtype=np.float32))
        writer.append(np.zeros((1, 4), dtype=np.float32))
    assert list(tmp_path.iterdir()) == []


def test_a_file_without_vectors_is_named(tmp_path: Path) -> None:
    (tmp_path / "junk.npy").write_text("junk")
    for name in ("junk.npy", "missing.npy"):
        with pytest.raises(DataError, match=rf"{name} is not a complete \.npy file"):
            open_vectors(tmp_path / name)


def test_a_writer_without_vectors_leaves_no_file(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match="there are no texts"),
        writing_vectors(tmp_path / "vectors.npy"),
    ):
        pass
    assert list(tmp_path.iterdir()) == []
