"""Segments that are scanned on a device: the results of the scan on the CPU."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.conftest import SENTENCES

import tercet
from tercet.errors import DeviceMemoryError, SlowDeviceWarning
from tercet.index.exact import ExactIndex
from tercet.records import Codes
from tercet.scorers.gpu import scan as device_scan
from tercet.scorers.gpu.scan import DeviceScan

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def vectors(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, 24), dtype=np.float32)


def codes(number: int) -> Codes:
    values = np.random.default_rng(1).standard_normal((2, number, 24), dtype=np.float32)
    return Codes(values, np.ones((2, number), dtype=np.bool_))


@pytest.mark.parametrize("storage", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("number", [1, 5])
def test_a_search_on_a_device_equals_one_on_the_cpu(number: int, storage: str) -> None:
    on_device = ExactIndex(24, storage=storage, scan=DeviceScan(DEVICE, fewest_rows=1))  # type: ignore[arg-type]
    on_cpu = ExactIndex(24, storage=storage)  # type: ignore[arg-type]
    for index in (on_device, on_cpu):
        index.add(np.arange(500), vectors(500))
        index.add(np.arange(600, 700), vectors(100, seed=2))
        index.remove(np.arange(0, 500, 3))
    for found, expected in (
        (index.search(codes(number), 20, scale=3.0) for index in (on_device, on_cpu)),
        (index.subset(np.arange(50, 650)).search(codes(number), 20) for index in (on_device, on_cpu)),
    ):
        np.testing.assert_array_equal(found.ids, expected.ids)
        np.testing.assert_array_equal(found.scores, expected.scores)
        assert found.certainty == expected.certainty


def test_a_segment_is_copied_once_and_its_copy_goes_with_it() -> None:
    scan = DeviceScan(DEVICE, fewest_rows=1)
    index = ExactIndex(24, scan=scan)
    index.add(np.arange(500), vectors(500))
    for _ in range(3):
        index.search(codes(2), 5)
        index.remove(np.array([len(index) - 1]))
    assert len(scan._copies) == 1
    index.segments.clear()
    assert len(scan._copies) == 0


def test_small_segments_are_scanned_on_the_cpu() -> None:
    scan = DeviceScan(DEVICE, fewest_rows=501)
    index = ExactIndex(24, scan=scan)
    index.add(np.arange(500), vectors(500))
    assert index.search(codes(2), 5).ids.shape == (2, 5)
    assert len(scan._copies) == 0


def test_segments_beyond_the_memory_of_a_gpu_are_scanned_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **more: object) -> None:
        raise DeviceMemoryError("500 vectors need 3 GB")

    monkeypatch.setattr(device_scan, "DeviceVectors", full)
    index, on_cpu = ExactIndex(24, scan=DeviceScan(DEVICE, fewest_rows=1)), ExactIndex(24)
    for each in (index, on_cpu):
        each.add(np.arange(500), vectors(500))
    with pytest.warns(SlowDeviceWarning, match="search runs on the CPU: 500 vectors need 3 GB"):
        found = index.search(codes(2), 5)
    np.testing.assert_array_equal(found.ids, on_cpu.search(codes(2), 5).ids)


def test_a_retriever_searches_with_the_scan_of_its_scorer(
    tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = tercet.BiEncoder.from_backbone(tiny_folder("bert"), device=DEVICE)
    expected = tercet.Retriever(scorer, lexical=False)
    scan = DeviceScan(DEVICE, fewest_rows=1)
    monkeypatch.setattr(scorer, "device_scan", lambda: scan)
    retriever = tercet.Retriever(scorer, lexical=False)
    for each in (expected, retriever):
        each.add(SENTENCES)
    found = retriever.search(SENTENCES[0], k=4)
    assert found.certified
    assert [hit.text for hit in found] == [hit.text for hit in expected.search(SENTENCES[0], k=4)]
    assert len(scan._copies) == 1
