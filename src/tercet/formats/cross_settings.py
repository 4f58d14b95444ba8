"""The settings in the folder of a cross-encoder; no weights are read."""

from pathlib import Path

from tercet.errors import ModelError
from tercet.files.structured import read_json, read_json_if_exists, read_json_list
from tercet.formats.module_list import Module
from tercet.settings.models import Activation, CrossConfig, HeadKind

ACTIVATION_CLASSES: dict[str, Activation] = {
    "torch.nn.modules.linear.Identity": "identity",
    "torch.nn.modules.activation.Sigmoid": "sigmoid",
    "torch.nn.modules.activation.Softmax": "softmax",
    "torch.nn.modules.activation.Tanh": "tanh",
}
"""The activations by their names in sentence-transformers."""

LAYOUTS = {
    (),
    ("PairModule",),
    ("Transformer",),
    ("Transformer", "Pooling", "Dense"),
    ("Transformer", "Pooling", "Dense", "Dense"),
}
"""The modules of a cross-encoder: none or ours with a comparison head, one if the transformer classifies."""


def cross_modules(folder: Path) -> list[Module]:
    file = folder / "modules.json"
    if not file.is_file():
        return []
    modules = [Module.of(entry["type"], folder, entry["path"]) for entry in read_json_list(file)]
    kinds = [module.kind for module in modules]
    if tuple(kinds) not in LAYOUTS:
        raise ModelError(
            f"{folder} consists of {', '.join(kinds)}: a cross-encoder is a Transformer that classifies, "
            "or a Transformer, a Pooling, and one or two Dense modules"
        )
    return modules


def foreign_config(folder: Path, kind: HeadKind, outputs: int) -> CrossConfig:
    """The config of a folder that another library wrote.

    Args:
        outputs: how many the head has.
    """
    labels = tuple((read_json(folder / "config.json").get("id2label") or {}).values())
    named = len(labels) == outputs > 1 and not all(label.startswith("LABEL_") for label in labels)
    return CrossConfig(
        head=kind,
        num_labels=outputs,
        activation=_activation(folder, outputs),
        labels=labels if named else (),
    )


def _activation(folder: Path, outputs: int) -> Activation:
    """The activation as sentence-transformers finds it, in the files of its several versions."""
    theirs = read_json_if_exists(folder / "config_sentence_transformers.json")
    if theirs.get("default_prompt_name"):
        raise ModelError(f"{folder} adds a prompt to every pair: not supported")
    config = read_json(folder / "config.json")
    name = (
        theirs.get("activation_fn")
        or (config.get("sentence_transformers") or {}).get("activation_fn")
        or config.get("sbert_ce_default_activation_function")
    )
    if name is None:
        return "sigmoid" if outputs == 1 else "identity"
    known = {path.rsplit(".", maxsplit=1)[-1]: ours for path, ours in ACTIVATION_CLASSES.items()}
    short = str(name).rsplit(".", maxsplit=1)[-1]
    if not str(name).startswith("torch.nn.") or short not in known:
        raise ModelError(f"{folder} has the activation {name}; tercet supports {', '.join(known)}")
    return known[short]
