"""Our token states equal those of transformers, in float64, so that only rounding differs."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.conftest import ARCHITECTURES, PADDED_ARCHITECTURES, SENTENCES
from transformers import AutoModel, AutoTokenizer

from tercet.encoders.encoder import Encoder
from tercet.formats.transformer import read_encoder

FolderOf = Callable[[str], Path]


def ids_of(folder: Path, texts: list[str]) -> list[list[int]]:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return [tokenizer(text, truncation=False, padding=False).input_ids for text in texts]


def reference_states(folder: Path, ids: list[int]) -> torch.Tensor:
    """``[T, D]``: the states of one text alone, without padding."""
    model = AutoModel.from_pretrained(folder).eval().double()
    with torch.inference_mode():
        outputs = model(input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)))
    return outputs.last_hidden_state[0]


@pytest.mark.parametrize("architecture", [*ARCHITECTURES, *PADDED_ARCHITECTURES])
def test_states_equal_those_of_transformers(architecture: str, tiny_folder: FolderOf) -> None:
    folder = tiny_folder(architecture)
    ids = ids_of(folder, SENTENCES)
    with torch.inference_mode():
        states, mask = read_encoder(folder).double()(ids)
    for row, text in enumerate(ids):
        assert mask[row].sum() == len(text)
        torch.testing.assert_close(
            states[row, mask[row]], reference_states(folder, text), atol=1e-10, rtol=1e-10
        )


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_listed_architectures_are_packed(architecture: str, tiny_folder: FolderOf) -> None:
    assert read_encoder(tiny_folder(architecture)).packable


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_padded_and_packed_states_are_equal(architecture: str, tiny_folder: FolderOf) -> None:
    folder = tiny_folder(architecture)
    encoder = read_encoder(folder).double()
    ids = ids_of(folder, SENTENCES)
    with torch.inference_mode():
        packed, mask = encoder(ids)
        encoder.packable = False
        padded, _ = encoder(ids)
    torch.testing.assert_close(packed[mask], padded[mask], atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("architecture", ["bert", "modernbert"])
def test_packed_and_padded_gradients_are_equal(architecture: str, tiny_folder: FolderOf) -> None:
    folder = tiny_folder(architecture)
    ids = ids_of(folder, SENTENCES)
    gradients = []
    for packable in (True, False):
        encoder = read_encoder(folder).double()
        encoder.packable = packable
        states, mask = encoder(ids)
        states[mask].square().sum().backward()
        gradients.append(gradient_of(encoder))
    torch.testing.assert_close(gradients[0], gradients[1], atol=1e-10, rtol=1e-10)


def gradient_of(encoder: Encoder) -> torch.Tensor:
    return torch.cat([p.grad.flatten() for p in encoder.parameters() if p.grad is not None])
