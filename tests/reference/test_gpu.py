"""On a GPU, states, gradients and scores equal those on a CPU; skipped without a GPU."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.conftest import ARCHITECTURES, SENTENCES
from tests.reference.test_architectures import FolderOf, ids_of
from tests.training.small_recipes import tables

import tercet
from tercet.encoders.encoder import Encoder
from tercet.encoders.graphs import _graphs
from tercet.errors import DeviceMemoryError, InputError
from tercet.formats.transformer import read_encoder
from tercet.index.scoring import exact_scores
from tercet.records import Codes
from tercet.scorers.gpu.choice import match_kind
from tercet.scorers.gpu.formula import plain_scores
from tercet.scorers.gpu.vectors import DeviceVectors, check_room
from tercet.settings.encoding import EncodingConfig
from tercet.settings.recipe import make_recipe
from tercet.training.run import run_recipe

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU")


def on_gpu(architecture: str, tiny_folder: FolderOf) -> Encoder:
    return read_encoder(tiny_folder(architecture)).cuda().eval()


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_packed_states_in_half_precision_equal_padded_ones(
    architecture: str, half: torch.dtype, tiny_folder: FolderOf
) -> None:
    encoder = on_gpu(architecture, tiny_folder)
    ids = ids_of(tiny_folder(architecture), SENTENCES)
    with torch.inference_mode(), torch.autocast("cuda", half):
        packed, mask = encoder(ids)
        encoder.packable = False
        padded, _ = encoder(ids)
    torch.testing.assert_close(packed[mask], padded[mask], atol=0.05, rtol=0.05)


def test_gradients_of_packed_states_equal_padded_ones(tiny_folder: FolderOf) -> None:
    gradients = []
    for packable in (True, False):
        encoder = on_gpu("bert", tiny_folder)
        encoder.packable = packable
        with torch.autocast("cuda", torch.bfloat16):
            states, mask = encoder(ids_of(tiny_folder("bert"), SENTENCES))
            states[mask].square().sum().backward()
        gradients.append(
            torch.cat([weight.grad.flatten() for weight in encoder.parameters() if weight.grad is not None])
        )
    similar = torch.nn.functional.cosine_similarity(*gradients, dim=0)
    assert similar > 0.999


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-3), ("bf16", 0.5), ("fp16", 0.1)])
def test_separate_texts_score_as_on_a_cpu(tiny_folder: FolderOf, precision: str, tolerance: float) -> None:
    config = tercet.CrossConfig(head="compare", cross_text_weight=0.2)
    gpu, cpu = (
        tercet.CrossEncoder.from_backbone(tiny_folder("bert"), config=config, device=device, precision=each)
        for device, each in (("cuda", precision), ("cpu", "fp32"))
    )
    ours, theirs = (scorer.score_many(SENTENCES, SENTENCES) for scorer in (gpu, cpu))
    np.testing.assert_allclose(ours, theirs, atol=tolerance)


def test_separate_texts_have_finite_gradients_in_half_precision(tiny_folder: FolderOf) -> None:
    config = tercet.CrossConfig(head="compare", cross_text_weight=0.2)
    scorer = tercet.CrossEncoder.from_backbone(tiny_folder("bert"), config=config, device="cuda").train()
    ids = scorer.token_ids(SENTENCES, "context")
    pairs = [scorer.pair_tokenizer.pair(*each) for each in zip(ids, ids[::-1], strict=True)]
    with torch.autocast("cuda", torch.bfloat16):
        scorer(pairs).sum().backward()
    gradients = [weight.grad for weight in scorer.parameters() if weight.grad is not None]
    assert gradients
    assert all(torch.isfinite(each).all() for each in gradients)


@pytest.mark.parametrize("kind", [tercet.BiEncoder, tercet.PolyEncoder], ids=lambda kind: kind.kind)
def test_public_scores_equal_those_on_a_cpu(
    kind: type[tercet.BiEncoder | tercet.PolyEncoder], tiny_folder: FolderOf
) -> None:
    config = tercet.BiConfig() if kind is tercet.BiEncoder else tercet.PolyConfig(codes=4)
    gpu, cpu = (
        kind.from_backbone(tiny_folder("bert"), config=config, device=name) for name in ("cuda", "cpu")
    )
    expected = cpu.score_many(SENTENCES, SENTENCES)
    codes, vectors = gpu.encode_contexts(SENTENCES), gpu.encode_candidates(SENTENCES)
    for scores in (gpu.score_many(SENTENCES, SENTENCES), gpu.match(codes, vectors)):
        np.testing.assert_allclose(scores, expected, rtol=1e-3, atol=1e-3)
    pairs = gpu.score_pairs(SENTENCES, SENTENCES)
    np.testing.assert_allclose(pairs, expected.diagonal(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_scores_nearly_as_a_cpu(precision: str, minilm: tercet.BiEncoder) -> None:
    half = tercet.load("bi", precision=precision, device="cuda")  # type: ignore[arg-type]
    ours, theirs = (scorer.score_many(SENTENCES, SENTENCES) for scorer in (half, minilm))
    np.testing.assert_allclose(ours, theirs, atol=2e-2 if precision == "bf16" else 2e-3)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_run_in_half_precision_lowers_the_loss(
    precision: str, tiny_folder: FolderOf, tmp_path: Path
) -> None:
    training = {"epochs": 4, "learning_rate": 1e-3, precision: True}
    table = tables(tiny_folder("bert"), training=training)
    run_recipe(make_recipe(table, name="test"), tmp_path / "run", device="cuda")
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    losses = [row["eval_loss"] for row in rows if "eval_loss" in row]
    assert losses[-1] < losses[0]


CANDIDATE_TYPES = [torch.float32, torch.bfloat16, torch.float16]


@pytest.mark.parametrize("codes", [1, 16, 64, 360])
@pytest.mark.parametrize("width", [384, 768, 100])
@pytest.mark.parametrize("dtype", CANDIDATE_TYPES, ids=str)
def test_match_equals_float64(dtype: torch.dtype, width: int, codes: int) -> None:
    y = torch.randn(2, codes, width, device="cuda") / width**0.5
    c = torch.randn(3001, width, device="cuda").to(dtype)
    found = tercet.match(y, c, scale=3.0)
    expected = plain_scores(y.double(), c.double(), None, 3.0)
    assert found.dtype == torch.float32
    assert (found - expected).abs().max() < 1e-5 * expected.abs().max()


def test_this_gpu_uses_the_kernel() -> None:
    assert match_kind(torch.device("cuda")) == "triton"


def test_gradients_of_match_equal_those_of_a_cpu() -> None:
    y, c = torch.randn(16, 64, 384) / 20, torch.randn(200, 384)
    gradients = []
    for device in ("cpu", "cuda"):
        given = [tensor.to(device).requires_grad_() for tensor in (y, c)]
        tercet.match(*given, scale=4.0).sin().sum().backward()
        gradients.append([tensor.grad.cpu() for tensor in given if tensor.grad is not None])
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("storage", ["float32", "bfloat16", "float16", "int8"])
def test_a_search_on_the_gpu_equals_one_on_the_cpu(storage: str) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((200_000, 384), dtype=np.float32)
    codes = Codes(rng.standard_normal((3, 64, 384), dtype=np.float32) / 20, np.ones((3, 64), dtype=np.bool_))
    kept = DeviceVectors(vectors, device="cuda", storage=storage)  # type: ignore[arg-type]
    found = kept.search(codes, 10, scale=5.0)
    for row, one in enumerate(codes.vectors):
        scores = exact_scores(one, vectors, 5.0)
        np.testing.assert_array_equal(found.ids[row], np.lexsort((np.arange(len(scores)), -scores))[:10])


def test_more_vectors_than_the_gpu_has_memory_are_refused() -> None:
    with pytest.raises(DeviceMemoryError, match=r"need 409.6 GB in bfloat16 .* free: use the storage int8"):
        check_room((200_000_000, 1024), torch.cuda.mem_get_info()[0], "bfloat16", name="cuda")


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("name", ["bi", "poly", "cross"])
def test_replayed_scores_equal_those_before_the_capture(name: str, precision: str) -> None:
    scorer = tercet.load(name, precision=precision, device="cuda", runtime="torch")  # type: ignore[arg-type]
    for texts in (SENTENCES[:1], SENTENCES[:5], SENTENCES):
        results = [scorer.score(SENTENCES[0], texts) for _ in range(6)]
        for later in results[1:]:
            np.testing.assert_allclose(later, results[0], atol=1e-4 if precision == "fp32" else 5e-2)
    assert sum(len(graphs._cache) for graphs in _graphs.values()) > 0


def test_threads_that_share_graphs_get_their_own_scores() -> None:
    scorer = tercet.load("bi", device="cuda", runtime="torch")
    expected = [scorer.encode_candidates([text])[0] for text in SENTENCES]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda text: scorer.encode_candidates([text])[0], SENTENCES * 30))
    for number, vector in enumerate(found):
        np.testing.assert_allclose(vector, expected[number % len(SENTENCES)], atol=1e-4)


def test_graphs_follow_a_change_of_precision_and_of_weights() -> None:
    scorer = tercet.load("bi", device="cuda", runtime="torch")
    for _ in range(5):
        before = scorer.encode_candidates(SENTENCES[:1])
    with torch.no_grad():
        scorer.backbone.transformer.embeddings.word_embeddings.weight.mul_(-1)
    changed = scorer.encode_candidates(SENTENCES[:1])
    assert np.abs(changed - before).max() > 1e-2
    scorer.set_precision("bf16")
    for _ in range(5):
        np.testing.assert_allclose(scorer.encode_candidates(SENTENCES[:1]), changed, atol=2e-2)


def test_a_stream_of_windows_has_the_vectors_of_a_list() -> None:
    scorer = tercet.load("bi", device="cuda", runtime="torch")
    expected = scorer.encode(SENTENCES)
    scorer.encoding = EncodingConfig(window_texts=2)  # the next window is tokenized meanwhile
    np.testing.assert_allclose(scorer.encode(SENTENCES), expected, atol=1e-4)


def test_a_retriever_on_the_gpu_finds_what_one_on_the_cpu_finds() -> None:
    texts = [f"{text} {number}" for number in range(700) for text in SENTENCES]
    results = []
    for device in ("cuda", "cpu"):
        retriever = tercet.Retriever(tercet.load("bi", device=device, runtime="torch"), lexical=False)
        retriever.add(texts)
        retriever.compact()
        results.append(retriever.search("a dog sat 12", k=5))
    assert results[0].certified
    assert [hit.text for hit in results[0]] == [hit.text for hit in results[1]]


def test_mixed_devices_are_refused() -> None:
    with pytest.raises(InputError, match="must be on one device, got cpu, cuda:0"):
        tercet.match(torch.ones(1, 2, 3, device="cuda"), torch.ones(4, 3))
