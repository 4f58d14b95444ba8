"""What a GPU computes in another way comes to the same; skipped where there is none."""

import numpy as np
import pytest
import torch
from tests.conftest import ARCHITECTURES, SENTENCES
from tests.reference.test_architectures import FolderOf, ids_of

import tercet
from tercet.models.encoder import Encoder, read_encoder

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")


def on_gpu(architecture: str, tiny_folder: FolderOf) -> Encoder:
    return read_encoder(tiny_folder(architecture)).cuda().eval()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_packed_states_in_half_precision_equal_padded_ones(architecture: str, tiny_folder: FolderOf) -> None:
    encoder = on_gpu(architecture, tiny_folder)
    ids = ids_of(tiny_folder(architecture), SENTENCES)
    with torch.inference_mode(), torch.autocast("cuda", torch.bfloat16):
        packed, mask = encoder(ids)
        encoder.packable = False
        padded, _ = encoder(ids)
    torch.testing.assert_close(packed[mask], padded[mask], atol=0.05, rtol=0.05)


def test_gradients_of_packed_states_equal_those_of_padded_ones(tiny_folder: FolderOf) -> None:
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


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-3), ("bf16", 0.5)])
def test_pairs_read_aside_score_as_on_a_cpu(tiny_folder: FolderOf, precision: str, tolerance: float) -> None:
    config = tercet.CrossConfig(head="compare", other_weight=0.2)
    here, there = (
        tercet.CrossEncoder.from_backbone(tiny_folder("bert"), config=config, device=device, precision=each)
        for device, each in (("cuda", precision), ("cpu", "fp32"))
    )
    ours, theirs = (scorer.score_many(SENTENCES, SENTENCES) for scorer in (here, there))
    np.testing.assert_allclose(ours, theirs, atol=tolerance)


def test_pairs_read_aside_are_learnt_from_in_half_precision(tiny_folder: FolderOf) -> None:
    config = tercet.CrossConfig(head="compare", other_weight=0.2)
    scorer = tercet.CrossEncoder.from_backbone(tiny_folder("bert"), config=config, device="cuda").train()
    ids = scorer.token_ids(SENTENCES, "context")
    pairs = [scorer.pair_tokenizer.pair(*each) for each in zip(ids, ids[::-1], strict=True)]
    with torch.autocast("cuda", torch.bfloat16):
        scorer(pairs).sum().backward()
    gradients = [weight.grad for weight in scorer.parameters() if weight.grad is not None]
    assert gradients
    assert all(torch.isfinite(each).all() for each in gradients)
