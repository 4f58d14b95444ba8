"""Tokenizers in model folders, loaded by the Rust library alone."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from tokenizers import Tokenizer as RustTokenizer
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import BertProcessing, RobertaProcessing

from tercet.encoders.openvino.graphs import Transformer
from tercet.errors import ModelError, UnsupportedModelError
from tercet.files.structured import read_json_if_exists
from tercet.inputs import check_count
from tercet.text.tokenizer import SEGMENTS, Tokenizer, tokenizer_errors
from tercet.text.tokenizer_limits import check_tokenizer

FILE = "tokenizer.json"

BERT_CLASSES = ("Bert", "Electra", "DistilBert", "MPNet")
"""The first words of classes whose settings in ``tokenizer_config.json`` replace those of the normalizer."""

PLAIN_CLASSES = ("TokenizersBackend", "PreTrainedTokenizerFast")
"""Classes that use ``tokenizer.json`` as it is. transformers rebuilds parts of the others."""


@dataclass(kw_only=True)
class TokenizerFile:
    """What ``Tokenizer`` needs of a tokenizer of transformers."""

    backend_tokenizer: RustTokenizer
    name_or_path: str
    unk_token: str | None
    truncation_side: str
    model_input_names: list[str]
    model_max_length: int
    init_kwargs: dict[str, Any] = field(default_factory=dict)


def array_tokenizer(
    folder: Path, transformer: Transformer, *, max_tokens: int | None, lowercase: bool = False
) -> Tokenizer:
    """The folder's tokenizer for its transformer; ``max_tokens`` by default is what the folder says."""
    source = read_tokenizer_file(folder)
    limit = check_count("max_tokens", source.model_max_length if max_tokens is None else max_tokens)
    if transformer.max_tokens is not None:
        limit = min(limit, transformer.max_tokens)
    tokenizer = Tokenizer(cast("Any", source), max_tokens=limit, lowercase=lowercase, shared=False)
    if tokenizer.highest_id() >= transformer.vocabulary:
        raise ModelError(
            f"the tokenizer in {folder} has a token with the id {tokenizer.highest_id()}, and its model has "
            f"{transformer.vocabulary} tokens: they do not belong together"
        )
    return tokenizer


def read_tokenizer_file(folder: Path) -> TokenizerFile:
    """The tokenizer in ``tokenizer.json``, with the settings of ``tokenizer_config.json`` applied."""
    file = folder / FILE
    if not file.is_file():
        raise UnsupportedModelError(
            f'{folder} has no {FILE}, which is needed without torch: use runtime="torch", or save the model '
            "again with tercet"
        )
    check_tokenizer(file)
    settings = read_json_if_exists(folder / "tokenizer_config.json")
    name = str(settings.get("tokenizer_class"))
    is_bert = name.removesuffix("Fast").removesuffix("Tokenizer") in BERT_CLASSES
    if not is_bert and name not in PLAIN_CLASSES:
        raise UnsupportedModelError(
            f'the tokenizer in {folder} has the class {name}, which needs runtime="torch"'
        )
    with tokenizer_errors(str(file)):
        rust = RustTokenizer.from_file(str(file))
        if is_bert:
            _set_steps(rust, settings, file)
    unknown = settings.get("unk_token") or getattr(rust.model, "unk_token", None)
    return TokenizerFile(
        backend_tokenizer=rust,
        name_or_path=str(folder),
        unk_token=_content(unknown),
        truncation_side=settings.get("truncation_side", "right"),
        model_input_names=settings.get("model_input_names") or _input_names(settings),
        model_max_length=_maximum(settings),
    )


def _set_steps(rust: RustTokenizer, settings: dict[str, Any], file: Path) -> None:
    """Replace the steps of a tokenizer by those that its class has in transformers."""
    rust.normalizer = BertNormalizer(
        clean_text=True,
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
        strip_accents=settings.get("strip_accents"),
        lowercase=settings.get("do_lower_case", True),
    )
    rust.pre_tokenizer = BertPreTokenizer()
    is_mpnet = str(settings["tokenizer_class"]).startswith("MPNet")
    defaults = ("<s>", "</s>") if is_mpnet else ("[CLS]", "[SEP]")
    tokens = [_content(settings.get(name)) for name in ("cls_token", "sep_token")]
    ends = [(token or default) for token, default in zip(tokens, defaults, strict=True)]
    ids = [rust.token_to_id(token) for token in ends]
    if None in ids:
        raise UnsupportedModelError(
            f'{file} must have the tokens {ends[0]} and {ends[1]} of its class: use runtime="torch"'
        )
    first, last = zip(ends, cast("list[int]", ids), strict=True)
    rust.post_processor = RobertaProcessing(last, first) if is_mpnet else BertProcessing(last, first)


def _content(token: Any) -> str | None:
    """The text of a special token, which files write as a string or as an object."""
    return token.get("content") if isinstance(token, dict) else token


def _input_names(settings: dict[str, Any]) -> list[str]:
    """What models of the tokenizer's class read, where the folder does not say."""
    has_segments = str(settings.get("tokenizer_class")).startswith(("Bert", "Electra"))
    return ["input_ids", *[SEGMENTS] * has_segments, "attention_mask"]


def _maximum(settings: dict[str, Any]) -> int:
    """The maximum length; transformers writes 1e30 where there is none."""
    return int(min(float(settings.get("model_max_length", 1e30)), 1e30))
