"""The states of OpenVINO graphs equal those of the torch encoders."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
import torch
from safetensors.numpy import load_file
from tests.conftest import SENTENCES
from tests.reference.test_architectures import ids_of

from tercet.encoders.openvino.architectures import ARCHITECTURES, Tokens, _layer_kinds, encoder_states
from tercet.encoders.openvino.inputs import IDS, LENGTHS, make_inputs, padding_bias
from tercet.errors import ModelError
from tercet.formats.transformer import read_encoder

FolderOf = Callable[[str], Path]


def padded(ids: list[list[int]]) -> dict[str, np.ndarray]:
    lengths = np.array([len(text) for text in ids], np.int32)
    rows = np.zeros((len(ids), lengths.max() + 3), np.int32)
    for row, text in zip(rows, ids, strict=True):
        row[: len(text)] = text
    return {IDS: rows, LENGTHS: lengths}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_states_equal_those_of_torch(architecture: str, tiny_folder: FolderOf) -> None:
    folder = tiny_folder(architecture)
    settings = json.loads((folder / "config.json").read_text())
    inputs = make_inputs()
    tokens = Tokens(inputs[IDS], inputs.places, None, padding_bias(inputs))
    states = encoder_states(settings, load_file(folder / "model.safetensors"), tokens)
    model = ov.Model([states], list(inputs.parameters.values()), "states")
    compiled = ov.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    ids = ids_of(folder, SENTENCES)
    found = compiled(padded(ids))[0]
    with torch.inference_mode():
        expected, mask = read_encoder(folder)(ids)
    width = mask.shape[1]
    np.testing.assert_allclose(found[:, :width][mask.numpy()], expected[mask].numpy(), atol=1e-5)


def test_every_third_layer_is_global_where_the_config_does_not_list_the_layers() -> None:
    kinds = _layer_kinds({"num_hidden_layers": 5, "global_attn_every_n_layers": 3})
    near, all_tokens = "sliding_attention", "full_attention"
    assert kinds == [all_tokens, near, near, all_tokens, near]


def test_an_unknown_architecture_names_the_other_runtime() -> None:
    inputs = make_inputs()
    tokens = Tokens(inputs[IDS], inputs.places, None, padding_bias(inputs))
    with pytest.raises(ModelError, match='this model is a gpt2: use runtime="torch"'):
        encoder_states({"model_type": "gpt2"}, {}, tokens)
