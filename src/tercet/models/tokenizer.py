"""Text to token ids, cut to what the model reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer as RustTokenizer
from tokenizers.normalizers import Lowercase
from tokenizers.normalizers import Sequence as Normalizers
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from tercet.errors import InputError, ModelError

VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model", "*.tiktoken")


@dataclass(frozen=True, slots=True)
class Passage:
    """A text to read; ``keep_end`` says which end survives if it is too long."""

    text: str
    keep_end: bool = False


@dataclass(frozen=True, slots=True)
class TokenIds:
    """A text as the model reads it; ``cut`` tokens had no room."""

    ids: list[int]
    cut: int


class Tokenizer:
    """The Rust tokenizer of a model folder, with tercet's own rules of what gives way.

    A passage that is too long loses its end, or its beginning where it asks to keep its end (or the folder
    says so for all). A prompt in front is not cut before the text is.
    """

    def __init__(
        self, pretrained: PreTrainedTokenizerBase, *, max_tokens: int, lowercase: bool = False
    ) -> None:
        self.pretrained = pretrained
        self.max_tokens = max_tokens
        self.lowercase = lowercase
        self._rust = RustTokenizer.from_str(pretrained.backend_tokenizer.to_str())
        self._rust.no_padding()  # folders may carry a padding and a truncation of their own
        self._rust.no_truncation()
        if lowercase:
            self._rust.normalizer = _lowercased(self._rust)
        self._prefix, self._suffix = _special_ids(self._rust)
        self._keeps_end = pretrained.truncation_side == "left"
        self._room = max_tokens - len(self._prefix) - len(self._suffix)
        if self._room < 1:
            raise InputError(
                f"max_tokens must leave room for text beside {len(self._prefix) + len(self._suffix)} "
                f"special tokens, got {max_tokens}"
            )

    def encode(self, passages: Sequence[Passage], *, prompt: str = "") -> list[TokenIds]:
        """Each passage with its prompt in front."""
        protected = self._prompt_ids(prompt)
        whole = self._ids([prompt + passage.text for passage in passages])
        return [
            self._fit(ids, protected=protected, keep_end=passage.keep_end or self._keeps_end)
            for ids, passage in zip(whole, passages, strict=True)
        ]

    def prompt_length(self, prompt: str) -> int:
        """How many of a text's first tokens are its prompt's, special tokens included; 0 without a prompt."""
        return len(self._prefix) + self._prompt_ids(prompt) if prompt else 0

    def equals(self, other: "Tokenizer") -> bool:
        """Whether both read every text alike."""
        return self.max_tokens == other.max_tokens and self._rust.to_str() == other._rust.to_str()

    def _prompt_ids(self, prompt: str) -> int:
        """How many tokens a prompt takes, if it leaves room for a text."""
        taken = len(self._ids([prompt])[0]) if prompt else 0
        if taken >= self._room:
            raise InputError(
                f"a prompt of {taken} tokens leaves no room for text among {self._room}: shorten it"
            )
        return taken

    def _fit(self, ids: list[int], *, protected: int, keep_end: bool) -> TokenIds:
        cut = max(len(ids) - self._room, 0)
        if cut and keep_end:
            ids = ids[:protected] + ids[protected + cut :]
        elif cut:
            ids = ids[: self._room]
        whole = self._prefix + ids + self._suffix
        if not whole:
            raise InputError("a text has no tokens in this model's vocabulary: leave it out")
        return TokenIds(whole, cut)

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        encodings = self._rust.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]


def read_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """The folder's tokenizer; transformers applies what ``tokenizer_config.json`` says about it."""
    if not any(file for pattern in VOCABULARIES for file in folder.glob(pattern)):
        # transformers would make up a tokenizer of five words
        raise ModelError(f"{folder} has no tokenizer ({', '.join(VOCABULARIES)}): copy its files too")
    try:
        pretrained = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # a broken folder fails here in many ways
        raise ModelError(f"the tokenizer in {folder} cannot be read: {error}") from error
    if not isinstance(pretrained, PreTrainedTokenizerBase) or not pretrained.is_fast:
        raise ModelError(f"the tokenizer in {folder} has no fast (Rust) form: save it with a tokenizer.json")
    return pretrained


def _special_ids(rust: RustTokenizer) -> tuple[list[int], list[int]]:
    """The special tokens that the model's template puts before and after a text."""
    with_template = rust.encode("a")
    bare = rust.encode("a", add_special_tokens=False).ids
    marks = with_template.special_tokens_mask
    before = next((place for place, special in enumerate(marks) if not special), len(marks))
    return with_template.ids[:before], with_template.ids[before + len(bare) :]


def _lowercased(rust: RustTokenizer) -> Normalizers:
    present = [] if rust.normalizer is None else [rust.normalizer]
    return Normalizers([Lowercase(), *present])
