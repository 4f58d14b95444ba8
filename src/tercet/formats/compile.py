"""Model folders to scorers that OpenVINO runs. Neither torch nor transformers is imported."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tercet.encoders.openvino.graphs import Transformer
from tercet.errors import ModelError, TercetError, UnsupportedModelError
from tercet.files.structured import read_json, read_json_if_exists
from tercet.formats.array_tokenizer import array_tokenizer
from tercet.formats.array_weights import add_delta, check_finite_arrays, read_array_transformer, read_arrays
from tercet.formats.bi_settings import bi_config, bi_modules, bi_routes, text_settings
from tercet.formats.calibration import read_calibration
from tercet.formats.cross_settings import cross_modules, foreign_config
from tercet.formats.head_kinds import COMPARISON_WEIGHTS, HEAD_LAYERS, head_kind
from tercet.formats.int8 import Weights, ranges_file, read_ranges, with_ranges
from tercet.formats.manifest import ADAPTER, BASE, DELTA, read_manifest
from tercet.formats.module_list import Module, read_pooling
from tercet.formats.sources import stored_model
from tercet.records import Floats
from tercet.scorers.compiled.base import Origin
from tercet.scorers.compiled.bi import BiWeights, CompiledBi
from tercet.scorers.compiled.cross import CompiledCross, CrossWeights
from tercet.scorers.compiled.poly import CompiledPoly, PolyWeights, Scales
from tercet.scorers.compiled.tower import TowerWeights
from tercet.scorers.numpy_layers import LAYER_ACTIVATIONS, DenseLayer, Layer, Narrow, normalize
from tercet.settings.models import (
    BiConfig,
    CrossConfig,
    ModelSpec,
    PolyConfig,
    PoolingConfig,
    Precision,
    ScorerKind,
)
from tercet.settings.tables import lists_to_tuples

Compiled: TypeAlias = CompiledBi | CompiledPoly | CompiledCross


def compile_model(
    folder: Path, kind: ScorerKind, origin: Origin, *, precision: Precision, ranges: Path | None = None
) -> Compiled:
    """The scorer in a folder.

    Args:
        ranges: for int8, the file with the ranges. Default: that of the folder.
    """
    calibration = read_calibration(folder)
    weights = read_weights(folder, kind)
    if precision == "int8":
        file = ranges_file(folder) if ranges is None else ranges
        weights = with_ranges(weights, read_ranges(file, folder), file)
    scorer = compiled_scorer(weights, origin, precision=precision)
    scorer.calibration = calibration
    return scorer


def read_weights(folder: Path, kind: ScorerKind) -> Weights:
    """What the scorer in a folder is compiled from."""
    manifest = read_manifest(folder) or {}
    if ADAPTER in manifest:
        raise UnsupportedModelError(f'{folder} contains LoRA adapters, which need runtime="torch"')
    with _unsupported(folder):
        return _delta_weights(folder, manifest) if DELTA in manifest else READERS[kind](folder)


def compiled_scorer(weights: Weights, origin: Origin, *, precision: Precision = "fp32") -> Compiled:
    """The scorer with these weights."""
    with _unsupported(origin.folder):
        if isinstance(weights, BiWeights):
            return CompiledBi(weights, origin, precision=precision)
        if isinstance(weights, PolyWeights):
            return CompiledPoly(weights, origin, precision=precision)
        return CompiledCross(weights, origin, precision=precision)


@contextmanager
def _unsupported(folder: Path) -> Iterator[None]:
    try:
        yield
    except TercetError:
        raise
    except Exception as error:  # a folder of another library can lack anything
        raise UnsupportedModelError(
            f"the OpenVINO runtime cannot run the model in {folder} ({type(error).__name__}: {error}): use "
            'runtime="torch"'
        ) from error


def _read_bi(folder: Path) -> BiWeights:
    manifest = read_manifest(folder, "bi")
    if (folder / "classifier.json").is_file():
        raise UnsupportedModelError(f'{folder} has a classifier of pairs, which needs runtime="torch"')
    if not (folder / "modules.json").is_file():
        transformer = read_array_transformer(folder)
        tower = TowerWeights(transformer=transformer, pooling=PoolingConfig(), width=transformer.width)
        tokenizer = array_tokenizer(folder, transformer, max_tokens=None)
        return BiWeights(tokenizer, tower, tower, BiConfig())
    modules = bi_modules(folder)
    settings = read_json_if_exists(folder / "config_sentence_transformers.json") | (manifest or {})
    narrow = int(settings["truncate_dim"]) if settings.get("truncate_dim") else None
    if modules[0].kind != "Router":
        tower = _tower(modules, narrow)
        other, tokenized = tower, modules
    else:
        routes = bi_routes(modules[0].folder)
        tower, other = (_tower([*routes[side], *modules[1:]], narrow) for side in ("context", "candidate"))
        tokenized = routes["context"]
    text = text_settings(tokenized)
    tokenizer = array_tokenizer(
        tokenized[0].folder,
        tower.transformer,
        max_tokens=text.get("max_seq_length"),
        lowercase=bool(text.get("do_lower_case", False)),
    )
    config = bi_config(settings, folder, towers=1 if other is tower else 2)
    return BiWeights(tokenizer, tower, other, config)


def _tower(modules: Sequence[Module], narrow: int | None) -> TowerWeights:
    transformer = read_array_transformer(modules[0].folder)
    pooling: PoolingConfig | None = None
    layers: list[Layer] = []
    width = transformer.width
    for kind, folder in modules[1:]:
        if kind == "Pooling" and pooling is None:
            pooling = read_pooling(folder)
            width *= len(pooling.kinds)
        elif kind == "Dense" and pooling is not None:
            dense = read_dense_layer(folder)
            layers.append(dense)
            width = len(dense.weight)
        elif kind == "Normalize" and pooling is not None:
            layers.append(normalize)
        else:
            raise ModelError(
                f"{folder} is a {kind}, which is not supported there: a bi-encoder is a Transformer, one "
                "Pooling, then any number of Dense and Normalize"
            )
    if pooling is None:
        raise ModelError("modules.json has no Pooling, so the folder is not a bi-encoder")
    if narrow is not None:
        layers.append(Narrow(narrow))
        width = min(width, narrow)
    return TowerWeights(transformer=transformer, pooling=pooling, layers=layers, width=width)


def read_dense_layer(folder: Path) -> DenseLayer:
    """The Dense module in a folder."""
    config = read_json(folder / "config.json")
    if config.get("module_input_name", "sentence_embedding") != "sentence_embedding":
        raise ModelError(f"{folder} is a Dense over token embeddings, which is not supported")
    arrays = read_arrays(folder / "model.safetensors")
    residual = None
    if config.get("use_residual"):
        residual = arrays.get("residual.weight", np.empty(0, dtype=np.float32))
    activation = str(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    if not activation.startswith("torch.nn.") or activation.rpartition(".")[2] not in LAYER_ACTIVATIONS:
        raise UnsupportedModelError(f'{folder} has the activation {activation}, which needs runtime="torch"')
    check_finite_arrays(arrays, folder)
    return DenseLayer(
        arrays["linear.weight"], arrays.get("linear.bias"), activation.rpartition(".")[2], residual
    )


def _read_poly(folder: Path) -> PolyWeights:
    manifest = read_manifest(folder, "poly")
    if manifest is None:
        raise ModelError(f"{folder} has no tercet.json, so it is not a poly-encoder")
    config = PolyConfig(**manifest["config"])
    context = read_array_transformer(folder / "context")
    candidate = context if config.towers == 1 else read_array_transformer(folder / "candidate")
    limits: dict[str, Any] = manifest["tokenizer"]
    tokenizer = array_tokenizer(
        folder / "context", context, max_tokens=limits["max_tokens"], lowercase=limits["lowercase"]
    )
    arrays = read_arrays(folder / "poly.safetensors")
    return PolyWeights(tokenizer, context, candidate, arrays.get("codes"), _scales(arrays, config), config)


def _scales(arrays: dict[str, Any], config: PolyConfig, prefix: str = "") -> Scales:
    """The scales; a learnt one is stored as its logarithm."""
    found = []
    for name in ("code_scale", "candidate_scale", "logit_scale"):
        log = arrays.get(f"{prefix}{name}.log")
        found.append(getattr(config, name) if log is None else float(np.exp(log)))
    return Scales(*found)


def _read_cross(folder: Path) -> CrossWeights:
    manifest = read_manifest(folder, "cross")
    modules = cross_modules(folder)
    kind = head_kind(folder, modules, own=manifest is not None)
    transformer = read_array_transformer(folder)
    if kind == "compare":
        arrays = read_arrays(folder / COMPARISON_WEIGHTS)
        pooling, head = None, compare(arrays["linear.weight"], arrays["linear.bias"])
        outputs = 1
    elif kind == "native":
        pooling, layers = _native_head(transformer, folder)
        head, outputs = partial(_through, layers), len(layers[-1].weight)
    else:
        pooling = read_pooling(modules[1].folder)
        layers = [read_dense_layer(module.folder) for module in modules[2:]]
        head, outputs = partial(_through, layers), len(layers[-1].weight)
    config = foreign_config(folder, kind, outputs)
    if manifest is not None:
        config = CrossConfig(**manifest["config"])
    text = read_json_if_exists(folder / "sentence_bert_config.json")
    tokenizer = array_tokenizer(
        folder,
        transformer,
        max_tokens=text.get("max_seq_length"),
        lowercase=bool(text.get("do_lower_case", False)),
    )
    return CrossWeights(tokenizer, transformer, pooling, head, config)


def _native_head(transformer: Transformer, folder: Path) -> tuple[PoolingConfig, list[DenseLayer]]:
    """The classification head of transformers, which the weights of the model contain."""
    architecture = transformer.settings.get("model_type")
    layers = HEAD_LAYERS.get(str(architecture))
    if layers is None or layers.norm is not None or layers.activation not in NATIVE_ACTIVATIONS:
        raise UnsupportedModelError(f'the head of {folder} ({architecture}) needs runtime="torch"')
    dense, linear = (
        name.split(".", maxsplit=1)[-1] if name.startswith(f"{architecture}.") else name
        for name in (layers.dense, layers.linear)
    )
    weights = transformer.weights
    return PoolingConfig(kinds=("first",)), [
        DenseLayer(
            weights[f"{dense}.weight"], weights[f"{dense}.bias"], NATIVE_ACTIVATIONS[layers.activation]
        ),
        DenseLayer(weights[f"{linear}.weight"], weights[f"{linear}.bias"], "Identity"),
    ]


NATIVE_ACTIVATIONS = {"gelu": "GELU", "relu": "ReLU", "tanh": "Tanh"}


def _through(layers: Sequence[Callable[[Floats], Floats]], vectors: Floats) -> Floats:
    for layer in layers:
        vectors = layer(vectors)
    return vectors


def compare(weight: Floats, bias: Floats) -> Callable[[Floats], Floats]:
    """A linear layer on (u, v, |u - v|, u * v) of the normalized means ``[B, 2, D]``."""

    def head(means: Floats) -> Floats:
        context, candidate = normalize(means[:, 0]), normalize(means[:, 1])
        parts = (context, candidate, np.abs(context - candidate), context * candidate)
        outputs: Floats = np.concatenate(parts, axis=-1) @ weight.T + bias
        return outputs

    return head


def _delta_weights(folder: Path, manifest: dict[str, Any]) -> Weights:
    """A base model with the delta in the folder added."""
    spec = ModelSpec(**lists_to_tuples(manifest[BASE]))
    delta, bits = read_arrays(folder / "delta.safetensors"), manifest[DELTA]
    base_folder = stored_model(spec.source, stored_in=folder)
    base = read_array_transformer(base_folder)

    def changed(prefix: str) -> Transformer:
        return Transformer(base.settings, add_delta(base.weights, delta, prefix, bits, folder))

    tokenizer = array_tokenizer(base_folder, base, max_tokens=spec.max_tokens)
    config = spec.config()
    if isinstance(config, PolyConfig):
        context = changed("context_encoder.transformer.")
        two = config.towers == 2
        candidate = changed("candidate_tower.encoder.transformer.") if two else context
        codes, scales = delta.get("code_layer.codes"), _scales(delta, config, "code_layer.")
        return PolyWeights(tokenizer, context, candidate, codes, scales, config)
    if isinstance(config, CrossConfig) and config.head == "compare":
        if base.segments > 1:
            tokenizer.use_segments()
        head = compare(delta["head.linear.weight"], delta["head.linear.bias"])
        return CrossWeights(tokenizer, changed("encoder.transformer."), None, head, config)
    raise UnsupportedModelError(
        f'{folder} contains a delta of a {spec.kind} model, which needs runtime="torch"'
    )


READERS: dict[ScorerKind, Callable[[Path], Weights]] = {
    "bi": _read_bi,
    "poly": _read_poly,
    "cross": _read_cross,
}
