"""On a GPU, states, gradients and scores equal those on a CPU; skipped without a GPU."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.conftest import ARCHITECTURES, SENTENCES
from tests.reference.test_architectures import FolderOf, ids_of
from tests.training.small_recipes import tables

import tercet
from tercet.encoders.encoder import Encoder
from tercet.formats.transformer import read_encoder
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
