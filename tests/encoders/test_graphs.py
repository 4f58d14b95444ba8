"""Buckets of CUDA graphs, their cache, and the forward pass that is captured, without a GPU."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.conftest import ARCHITECTURES, SENTENCES
from tests.reference.test_architectures import ids_of

from tercet.encoders import graphs
from tercet.encoders.graphs import Bucket, GraphCache, bucket_of, filled, padded_forward, static_inputs
from tercet.formats.transformer import read_encoder

CAPTURED = [name for name in ARCHITECTURES if name != "modernbert"]  # which has a sliding window
CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("lengths", "bucket"),
    [
        ([1], (1, 16)),
        ([16], (1, 16)),
        ([17, 3], (2, 32)),
        ([9] * 50, (64, 16)),
        ([64] * 50, (64, 64)),
        ([512], (1, 512)),
        ([300] * 8, (8, 384)),
    ],
)
def test_a_bucket_is_the_smallest_that_holds_the_texts(lengths: list[int], bucket: tuple[int, int]) -> None:
    assert bucket_of(lengths, has_segments=True, max_tokens=None) == Bucket(*bucket, has_segments=True)


@pytest.mark.parametrize("lengths", [[513], [9] * 65, [65] * 64, [16] * 64 + [17]])
def test_large_batches_have_no_bucket(lengths: list[int]) -> None:
    assert bucket_of(lengths, has_segments=False, max_tokens=None) is None


def test_a_bucket_has_no_positions_that_the_model_lacks() -> None:
    assert bucket_of([40], has_segments=False, max_tokens=48) == Bucket(1, 48, has_segments=False)
    assert bucket_of([40], has_segments=False, max_tokens=41) == Bucket(1, 41, has_segments=False)


def bucket(texts: int) -> Bucket:
    return Bucket(texts, 16, has_segments=False)


def test_a_graph_is_captured_once_its_bucket_has_been_used() -> None:
    captured: list[Bucket] = []

    def capture(of: Bucket) -> str:
        captured.append(of)
        return f"graph of {of.texts}"

    cache = GraphCache(capture)
    assert [cache.get(bucket(1)) for _ in range(4)] == [None, None, "graph of 1", "graph of 1"]
    assert captured == [bucket(1)]


def test_the_graphs_that_were_used_last_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "MOST_GRAPHS", 2)
    monkeypatch.setattr(graphs, "USES_BEFORE", 0)
    captured: list[int] = []
    cache = GraphCache(lambda of: captured.append(of.texts) or of)
    for texts in (1, 2, 1, 4, 1, 2):
        assert cache.get(bucket(texts)) == bucket(texts)
        assert len(cache) <= 2
    assert captured == [1, 2, 4, 2]


def test_a_capture_that_fails_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "USES_BEFORE", 0)
    tries: list[Bucket] = []

    def fail(of: Bucket) -> str:
        tries.append(of)
        raise torch.cuda.OutOfMemoryError

    cache = GraphCache(fail)
    assert [cache.get(bucket(1)) for _ in range(3)] == [None] * 3
    assert len(tries) == 1


@pytest.mark.parametrize("architecture", CAPTURED)
def test_the_captured_forward_pass_has_the_states_of_the_encoder(
    architecture: str, tiny_folder: Callable[[str], Path]
) -> None:
    encoder = read_encoder(tiny_folder(architecture)).eval()
    ids = ids_of(tiny_folder(architecture), SENTENCES[:5])
    found = bucket_of(list(map(len, ids)), has_segments=False, max_tokens=encoder.max_tokens)
    assert found is not None
    assert found.texts > len(ids)  # a text is missing
    inputs = static_inputs(found, CPU)
    with torch.inference_mode():
        inputs.buffer.copy_(torch.from_numpy(filled(found, ids, None, encoder._padding)))
        states, mask = padded_forward(
            encoder.transformer, inputs, first_position=encoder._first_position, with_segments=False
        )
        expected, expected_mask = encoder(ids)
    longest = max(map(len, ids))
    assert torch.equal(mask[: len(ids), :longest], expected_mask)
    assert torch.isfinite(states).all()
    torch.testing.assert_close(
        states[: len(ids), :longest][expected_mask], expected[expected_mask], atol=1e-5, rtol=1e-5
    )


def test_segments_and_ids_share_a_buffer_without_overlap() -> None:
    of = Bucket(2, 4, has_segments=True)
    content = filled(of, [[5, 6, 7]], [[0, 1, 1]], 9)
    inputs = static_inputs(of, CPU)
    inputs.buffer.copy_(torch.from_numpy(content))
    assert inputs.ids.tolist() == [[5, 6, 7, 9], [9, 9, 9, 9]]
    assert inputs.segments.tolist() == [[0, 1, 1, 0], [0, 0, 0, 0]]
    assert inputs.lengths.tolist() == [3, 1]
