"""Transformer encoders as OpenVINO graphs, from their configuration and weights.

A new architecture is a function from settings, weights and ``Tokens`` to states, and an entry in
``ARCHITECTURES``.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import openvino.opset15 as ops

from tercet.encoders.openvino.blocks import (
    MASKED,
    Node,
    Weights,
    activation,
    attention,
    constant,
    integers,
    join_heads,
    layer_norm,
    linear,
    lookup,
    split_heads,
    weight,
    where,
)
from tercet.errors import UnsupportedModelError

Settings: TypeAlias = dict[str, Any]
"""The content of a model's ``config.json``."""


class Tokens(NamedTuple):
    """What an encoder reads."""

    ids: Node
    """``[B, T]``"""
    places: Node
    """``[B, T]``: the position of each token in its text, from 0."""
    segments: Node | None
    """``[B, T]``, or None where all are 0."""
    bias: Node
    """``[B, 1, T, T]``, added to attention logits."""


def bert(settings: Settings, weights: Weights, tokens: Tokens, *, first_position: int = 0) -> Node:
    """BERT, MiniLM, ELECTRA, RoBERTa, XLM-RoBERTa and CamemBERT."""
    epsilon = settings.get("layer_norm_eps", 1e-12)
    x = ops.add(
        lookup(weight(weights, "embeddings.word_embeddings.weight"), tokens.ids),
        _absolute_positions(weights, tokens.places, first_position),
    )
    types = weight(weights, "embeddings.token_type_embeddings.weight")
    added = (
        constant(types[:1].reshape(1, 1, -1)) if tokens.segments is None else lookup(types, tokens.segments)
    )
    x = layer_norm(ops.add(x, added), weights, "embeddings.LayerNorm", epsilon=epsilon)
    if "embeddings_project.weight" in weights:  # ELECTRA
        x = linear(x, weights, "embeddings_project")
    heads, width = settings["num_attention_heads"], settings["hidden_size"]
    for number in range(settings["num_hidden_layers"]):
        layer = f"encoder.layer.{number}"
        parts = (f"{layer}.attention.self.{part}" for part in ("query", "key", "value"))
        split = [split_heads(linear(x, weights, part), heads, width // heads) for part in parts]
        attended = join_heads(attention(split, tokens.bias), width)
        x = _residual(x, attended, weights, f"{layer}.attention.output", epsilon=epsilon)
        inner = activation(
            linear(x, weights, f"{layer}.intermediate.dense"), settings.get("hidden_act", "gelu")
        )
        x = _residual(x, inner, weights, f"{layer}.output", epsilon=epsilon)
    return x


def distilbert(settings: Settings, weights: Weights, tokens: Tokens) -> Node:
    """DistilBERT."""
    epsilon = 1e-12
    x = ops.add(
        lookup(weight(weights, "embeddings.word_embeddings.weight"), tokens.ids),
        _absolute_positions(weights, tokens.places, 0),
    )
    x = layer_norm(x, weights, "embeddings.LayerNorm", epsilon=epsilon)
    heads, width = settings["n_heads"], settings["dim"]
    for number in range(settings["n_layers"]):
        layer = f"transformer.layer.{number}"
        parts = (f"{layer}.attention.{part}_lin" for part in "qkv")
        split = [split_heads(linear(x, weights, part), heads, width // heads) for part in parts]
        attended = linear(
            join_heads(attention(split, tokens.bias), width), weights, f"{layer}.attention.out_lin"
        )
        x = layer_norm(ops.add(x, attended), weights, f"{layer}.sa_layer_norm", epsilon=epsilon)
        inner = activation(linear(x, weights, f"{layer}.ffn.lin1"), settings.get("activation", "gelu"))
        inner = linear(inner, weights, f"{layer}.ffn.lin2")
        x = layer_norm(ops.add(x, inner), weights, f"{layer}.output_layer_norm", epsilon=epsilon)
    return x


def mpnet(settings: Settings, weights: Weights, tokens: Tokens) -> Node:
    """MPNet: absolute positions, and a bias of attention by the distance of two tokens."""
    epsilon = settings.get("layer_norm_eps", 1e-12)
    x = ops.add(
        lookup(weight(weights, "embeddings.word_embeddings.weight"), tokens.ids),
        _absolute_positions(weights, tokens.places, first_position(settings)),
    )
    x = layer_norm(x, weights, "embeddings.LayerNorm", epsilon=epsilon)
    heads, width = settings["num_attention_heads"], settings["hidden_size"]
    buckets = lookup(
        weight(weights, "encoder.relative_attention_bias.weight"),
        _distance_buckets(tokens.places, settings),
    )  # [B, T, T, heads]
    bias = ops.add(ops.transpose(buckets, integers(0, 3, 1, 2)), tokens.bias)
    for number in range(settings["num_hidden_layers"]):
        layer = f"encoder.layer.{number}"
        split = [
            split_heads(linear(x, weights, f"{layer}.attention.attn.{part}"), heads, width // heads)
            for part in "qkv"
        ]
        attended = linear(join_heads(attention(split, bias), width), weights, f"{layer}.attention.attn.o")
        x = layer_norm(ops.add(attended, x), weights, f"{layer}.attention.LayerNorm", epsilon=epsilon)
        inner = activation(
            linear(x, weights, f"{layer}.intermediate.dense"), settings.get("hidden_act", "gelu")
        )
        x = _residual(x, inner, weights, f"{layer}.output", epsilon=epsilon)
    return x


def modernbert(settings: Settings, weights: Weights, tokens: Tokens) -> Node:
    """ModernBERT: rotary positions, gated layers, and attention to near tokens in most layers."""
    epsilon = settings.get("norm_eps", 1e-5)
    heads, width = settings["num_attention_heads"], settings["hidden_size"]
    x = lookup(weight(weights, "embeddings.tok_embeddings.weight"), tokens.ids)
    x = layer_norm(x, weights, "embeddings.norm", epsilon=epsilon)
    near, kinds = settings["local_attention"] // 2, _layer_kinds(settings)
    global_theta, local_theta = _rotary_thetas(settings)
    rotations = {
        True: _rotation(tokens.places, settings, global_theta),
        False: _rotation(tokens.places, settings, local_theta),
    }
    biases = {True: tokens.bias, False: ops.add(tokens.bias, _distant_bias(tokens.places, near))}
    for number in range(settings["num_hidden_layers"]):
        layer = f"layers.{number}"
        is_global = kinds[number] == "full_attention"
        before = layer_norm(x, weights, f"{layer}.attn_norm", epsilon=epsilon) if number else x
        joined = ops.reshape(
            linear(before, weights, f"{layer}.attn.Wqkv"), integers(0, 0, 3, heads, width // heads), True
        )
        split = [
            ops.transpose(ops.gather(joined, constant(part, np.int64), integers(2)), integers(0, 2, 1, 3))
            for part in range(3)
        ]
        query, key = (_rotated(each, *rotations[is_global]) for each in split[:2])
        attended = join_heads(attention([query, key, split[2]], biases[is_global]), width)
        x = ops.add(x, linear(attended, weights, f"{layer}.attn.Wo"))
        inner = linear(
            layer_norm(x, weights, f"{layer}.mlp_norm", epsilon=epsilon), weights, f"{layer}.mlp.Wi"
        )
        shown, gate = ops.split(inner, constant(-1, np.int64), 2).outputs()
        gated = ops.multiply(activation(shown, settings.get("hidden_activation", "gelu")), gate)
        x = ops.add(x, linear(gated, weights, f"{layer}.mlp.Wo"))
    return layer_norm(x, weights, "final_norm", epsilon=epsilon)


def _layer_kinds(settings: Settings) -> list[str]:
    """Whether each layer attends to all tokens or to near ones, in the spelling of any version."""
    stated = settings.get("layer_types")
    if stated:
        return list(stated)
    every = settings["global_attn_every_n_layers"]
    return [
        "sliding_attention" if number % every else "full_attention"
        for number in range(settings["num_hidden_layers"])
    ]


def first_position(settings: Settings) -> int:
    """RoBERTa and its relatives count positions from the padding token's id + 1."""
    return int(settings["pad_token_id"]) + 1 if settings["model_type"] in COUNT_FROM_PADDING else 0


def _roberta(settings: Settings, weights: Weights, tokens: Tokens) -> Node:
    return bert(settings, weights, tokens, first_position=first_position(settings))


Architecture: TypeAlias = Callable[[Settings, Weights, Tokens], Node]

ARCHITECTURES: dict[str, Architecture] = {
    "bert": partial(bert),
    "camembert": _roberta,
    "distilbert": distilbert,
    "electra": partial(bert),
    "modernbert": modernbert,
    "mpnet": mpnet,
    "roberta": _roberta,
    "xlm-roberta": _roberta,
}

COUNT_FROM_PADDING = frozenset({"camembert", "mpnet", "roberta", "xlm-roberta"})


def encoder_states(settings: Settings, weights: Weights, tokens: Tokens) -> Node:
    """``[B, T, D]``: the states of the tokens."""
    name = settings.get("model_type")
    if name not in list(ARCHITECTURES):
        raise UnsupportedModelError(
            f"the OpenVINO runtime runs {', '.join(ARCHITECTURES)}, and this model is a {name}: "
            'use runtime="torch"'
        )
    return ARCHITECTURES[name](settings, weights, tokens)


def _residual(x: Node, inner: Node, weights: Weights, name: str, *, epsilon: float) -> Node:
    changed = linear(inner, weights, f"{name}.dense")
    return layer_norm(ops.add(changed, x), weights, f"{name}.LayerNorm", epsilon=epsilon)


def _absolute_positions(weights: Weights, places: Node, first: int) -> Node:
    """``[B, T, D]``"""
    return lookup(weight(weights, "embeddings.position_embeddings.weight")[first:], places)


def _distances(places: Node) -> Node:
    """``[B, T, T]``: positions of keys minus positions of queries."""
    return ops.subtract(ops.unsqueeze(places, integers(1)), ops.unsqueeze(places, integers(2)))


def _distance_buckets(places: Node, settings: Settings, most: int = 128) -> Node:
    """``[B, T, T]``: the bucket of each distance, exact up to 8 and logarithmic beyond, as in T5."""
    half = settings.get("relative_attention_num_buckets", 32) // 2
    reach = np.arange(-most, most + 1)
    ahead, far = (reach > 0) * half, np.abs(reach)
    exact = half // 2
    with np.errstate(divide="ignore"):
        large = exact + np.log(far / exact) / np.log(most / exact) * (half - exact)
    bucket = ahead + np.where(far < exact, far, np.minimum(np.nan_to_num(large, neginf=0), half - 1)).astype(
        int
    )
    distances = ops.clamp(ops.convert(_distances(places), "f32"), float(-most), float(most))
    shifted = ops.add(ops.convert(distances, "i32"), constant(most, np.int32))
    return ops.gather(constant(bucket, np.int32), shifted, integers(0))


def _distant_bias(places: Node, near: int) -> Node:
    """``[B, 1, T, T]``: hides tokens that are farther away than ``near``."""
    far = ops.greater(ops.absolute(_distances(places)), constant(near, np.int32))
    return ops.unsqueeze(where(far, MASKED, 0.0), integers(1))


def _rotary_thetas(settings: Settings) -> tuple[float, float]:
    """The bases of the rotations of global and of local layers, in the spelling of any version."""
    nested = settings.get("rope_parameters") or {}
    scaled = [
        kind for kind in nested.values() if isinstance(kind, dict) and kind.get("rope_type") != "default"
    ]
    if scaled or settings.get("rope_scaling"):
        raise UnsupportedModelError('the rotary positions of this model are scaled: use runtime="torch"')
    found = [
        (nested.get(kind) or {}).get("rope_theta", settings.get(old))
        for kind, old in (
            ("full_attention", "global_rope_theta"),
            ("sliding_attention", "local_rope_theta"),
        )
    ]
    whole = float(found[0] or 160_000.0)
    return whole, float(found[1] or settings.get("global_rope_theta") or 10_000.0)


def _rotation(places: Node, settings: Settings, theta: float) -> tuple[Node, Node]:
    """``[B, 1, T, width]`` twice: cosine and sine of the angle of each position and dimension.

    They are looked up: a product of positions in bf16 would round those beyond 256.
    """
    width = settings["hidden_size"] // settings["num_attention_heads"]
    slow = theta ** -(np.arange(0, width, 2, dtype=np.float64) / width)
    angles = np.arange(settings["max_position_embeddings"])[:, None] * slow.astype(np.float32)
    whole = np.concatenate([angles, angles], axis=-1)  # [positions, width]
    cosine, sine = (lookup(table.astype(np.float32), places) for table in (np.cos(whole), np.sin(whole)))
    return ops.unsqueeze(cosine, integers(1)), ops.unsqueeze(sine, integers(1))


def _rotated(x: Node, cosine: Node, sine: Node) -> Node:
    first, second = ops.split(x, constant(-1, np.int64), 2).outputs()
    turned = ops.concat([ops.negative(second), first], -1)
    return ops.add(ops.multiply(x, cosine), ops.multiply(turned, sine))
