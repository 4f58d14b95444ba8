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
from tercet.encoders.openvino.inputs import IDS, PLACES, arrays, make_inputs, text_bias
from tercet.errors import ModelError
from tercet.formats.transformer import read_encoder

FolderOf = Callable[[str], Path]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_states_equal_those_of_torch(architecture: str, tiny_folder: FolderOf) -> None:
    folder = tiny_folder(architecture)
    settings = json.loads((folder / "config.json").read_text())
    inputs = make_inputs()
    tokens = Tokens(inputs[IDS], inputs[PLACES], None, text_bias(inputs))
    states = inputs.by_text(encoder_states(settings, load_file(folder / "model.safetensors"), tokens))
    model = ov.Model([states], list(inputs.parameters.values()), "states")
    compiled = ov.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    ids = ids_of(folder, SENTENCES)
    found = compiled(dict(arrays(ids, {})))[0]
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
    tokens = Tokens(inputs[IDS], inputs[PLACES], None, text_bias(inputs))
    with pytest.raises(ModelError, match='this model is a gpt2: use runtime="torch"'):
        encoder_states({"model_type": "gpt2"}, {}, tokens)
