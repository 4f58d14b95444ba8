"""What a GPU computes in another way comes to the same; skipped where there is none."""

import pytest
import torch
from tests.conftest import ARCHITECTURES, SENTENCES
from tests.reference.test_architectures import FolderOf, ids_of

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
