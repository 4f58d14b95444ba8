"""Tokenizers in model folders, loaded by transformers and run by the Rust library."""

from pathlib import Path

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from tercet.encoders.encoder import Encoder
from tercet.errors import ModelError
from tercet.inputs import check_count
from tercet.text.tokenizer import Tokenizer, tokenizer_errors
from tercet.text.tokenizer_limits import check_tokenizer

VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model", "*.tiktoken")


def tokenizer_for(
    folder: Path, encoder: Encoder, *, max_tokens: int | None = None, lowercase: bool = False
) -> Tokenizer:
    """The folder's tokenizer for its encoder.

    Args:
        max_tokens: the maximum length. Default: what the folder says.
    """
    pretrained = read_tokenizer(folder)
    if len(pretrained) > encoder.vocabulary:
        raise ModelError(
            f"the tokenizer in {folder} has {len(pretrained)} tokens, and its model has "
            f"{encoder.vocabulary}: they do not belong together"
        )
    limit = check_count("max_tokens", pretrained.model_max_length if max_tokens is None else max_tokens)
    if encoder.max_tokens is not None:
        limit = min(limit, encoder.max_tokens)
    tokenizer = Tokenizer(pretrained, max_tokens=limit, lowercase=lowercase)
    if tokenizer.highest_id() >= encoder.vocabulary:  # ids may have gaps, and templates ids of their own
        raise ModelError(
            f"the tokenizer in {folder} has a token with the id {tokenizer.highest_id()}, and its model has "
            f"{encoder.vocabulary} tokens: they do not belong together"
        )
    return tokenizer


def read_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """The folder's tokenizer, with the settings of ``tokenizer_config.json`` applied."""
    if not any(file for pattern in VOCABULARIES for file in folder.glob(pattern)):
        # transformers would create a tokenizer of five words
        raise ModelError(f"{folder} has no tokenizer ({', '.join(VOCABULARIES)}): copy its files too")
    file = folder / "tokenizer.json"
    if file.is_file():
        check_tokenizer(file)
    with tokenizer_errors(str(file if file.is_file() else folder)):
        pretrained = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    if not isinstance(pretrained, PreTrainedTokenizerBase) or not pretrained.is_fast:
        raise ModelError(f"the tokenizer in {folder} has no fast (Rust) version: save it as tokenizer.json")
    return pretrained
