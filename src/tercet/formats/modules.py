"""The modules of a sentence-transformers folder after the transformer: Pooling, Dense and Normalize."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from torch import nn

from tercet.encoders.encoder import Encoder
from tercet.errors import ModelError
from tercet.files.structured import read_json, write_json
from tercet.formats.module_list import NAMESPACE, POOLING_FLAGS, POOLING_NAMES, Module, read_pooling
from tercet.formats.sizes import check_size
from tercet.formats.weights import read_weights, write_weights
from tercet.scorers.tower import Dense, Normalize, Tower, TruncateDimensions
from tercet.settings.models import PoolingConfig

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    name: getattr(nn, name)
    for name in (
        "ELU",
        "GELU",
        "Identity",
        "LeakyReLU",
        "Mish",
        "ReLU",
        "SELU",
        "SiLU",
        "Sigmoid",
        "Softplus",
        "Tanh",
    )
}


def read_tower(encoder: Encoder, modules: Iterable[Module]) -> Tower:
    """The encoder with the pooling and the layers of ``modules``."""
    pooling: PoolingConfig | None = None
    layers: list[nn.Module] = []
    for kind, folder in modules:
        if kind == "Pooling" and pooling is None:
            pooling = read_pooling(folder)
        elif kind == "Dense" and pooling is not None:
            layers.append(read_dense(folder))
        elif kind == "Normalize" and pooling is not None:
            layers.append(Normalize())
        else:
            raise ModelError(
                f"{folder} is a {kind}, which is not supported there: a bi-encoder is a Transformer, one "
                "Pooling, then any number of Dense and Normalize"
            )
    if pooling is None:
        raise ModelError("modules.json has no Pooling, so the folder is not a bi-encoder")
    return Tower(encoder, pooling, layers)


def write_tower(tower: Tower, folder: Path) -> Iterator[tuple[str, str]]:
    """Write the modules after the encoder into subfolders; yield the type and name of each."""
    kind = "Pooling"
    yield write_pooling(tower.pooling, tower.encoder.width, folder / f"1_{kind}"), f"1_{kind}"
    position = 2
    for layer in tower.layers:
        if isinstance(layer, TruncateDimensions):
            continue  # stored in config_sentence_transformers.json
        kind = "Dense" if isinstance(layer, Dense) else "Normalize"
        name = f"{position}_{kind}"
        (folder / name).mkdir()
        if isinstance(layer, Dense):
            write_dense(layer, folder / name)
        else:
            write_json(folder / name / "config.json", {"module_input_name": "sentence_embedding"})
        yield NAMESPACE + kind, name
        position += 1


def write_pooling(pooling: PoolingConfig, width: int, folder: Path) -> str:
    """Write the pooling and return its type, one that sentence-transformers refuses if it lacks the
    pooling."""
    theirs = {ours: name for name, ours in POOLING_NAMES.items()}
    names = [theirs.get(kind, kind) for kind in pooling.kinds]
    config: dict[str, Any] = {"word_embedding_dimension": width, "include_prompt": pooling.include_prompt}
    if "mean_first" in names:
        config |= {"pooling_mode": names, "first_tokens": pooling.first_tokens}
    elif [theirs[kind] for kind in POOLING_NAMES.values() if kind in pooling.kinds] == names:
        # flags, which every version reads, if they can express the order
        config |= {flag: name in names for flag, name in POOLING_FLAGS.items()}
    else:
        config |= {"pooling_mode": names}
    folder.mkdir()
    write_json(folder / "config.json", config)
    return ("tercet.scorers." if "mean_first" in names else NAMESPACE) + "Pooling"


def read_dense(folder: Path) -> Dense:
    """The layer in a module's folder."""
    config = read_json(folder / "config.json")
    if config.get("module_input_name", "sentence_embedding") != "sentence_embedding":
        raise ModelError(f"{folder} is a Dense over token embeddings, which is not supported")
    check_size(folder, lambda: _new_dense(config, folder))
    dense = _new_dense(config, folder)
    read_weights(dense, folder / "model.safetensors")
    return dense


def _new_dense(config: dict[str, Any], folder: Path) -> Dense:
    """The layer that a module's config describes, with random weights."""
    incoming, outgoing = int(config["in_features"]), int(config["out_features"])
    linear = nn.Linear(incoming, outgoing, bias=bool(config.get("bias", True)))
    residual: nn.Module | None = None
    if config.get("use_residual"):
        residual = nn.Identity() if incoming == outgoing else nn.Linear(incoming, outgoing, bias=False)
    return Dense(linear, _activation(config, folder), residual=residual)


def write_dense(dense: Dense, folder: Path, *, output: str | None = None) -> None:
    """Fill a folder; ``output`` names the result if it is not a text embedding."""
    activation = type(dense.activation)
    config: dict[str, Any] = {
        "in_features": dense.linear.in_features,
        "out_features": dense.linear.out_features,
        "bias": dense.linear.bias is not None,
        "activation_function": f"{activation.__module__}.{activation.__name__}",
    }
    if dense.residual is not None:
        config["use_residual"] = True
    if output is not None:
        config |= {"module_input_name": "sentence_embedding", "module_output_name": output}
    write_json(folder / "config.json", config)
    write_weights(dense, folder / "model.safetensors")


def _activation(config: dict[str, Any], folder: Path) -> nn.Module:
    path = str(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    name = path.rsplit(".", maxsplit=1)[-1]
    if not path.startswith("torch.nn.") or name not in ACTIVATIONS:
        raise ModelError(f"{folder} has the activation {path}; tercet supports {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]()
