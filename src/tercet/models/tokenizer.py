"""Text to token ids, cut to what the model reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from tokenizers import Tokenizer as RustTokenizer
from tokenizers.normalizers import Lowercase
from tokenizers.normalizers import Sequence as Normalizers
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from tercet.errors import InputError, ModelError
from tercet.inputs import check_count
from tercet.models.encoder import Encoder

Token = TypeVar("Token")

SEGMENTS = "token_type_ids"
"""What transformers calls them."""

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


@dataclass(frozen=True, slots=True)
class Piece:
    """A token as people see it; one that the tokenizer added has no characters, ``start == end``."""

    text: str
    start: int
    end: int


class PairTemplate(NamedTuple):
    """The special tokens before, between and behind the texts of a pair, and everyone's segment.

    ``owners`` are the segments of the two texts; ``has_segments`` says whether the model expects any;
    ``tail`` is how many of the tokens between the texts belong to the first.
    """

    ids: tuple[list[int], ...]
    segments: tuple[list[int], ...]
    owners: tuple[int, int]
    has_segments: bool
    tail: int


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
        whole = self.bare_ids([prompt + passage.text for passage in passages])
        return [
            self._fit(ids, protected=protected, keep_end=passage.keep_end or self._keeps_end)
            for ids, passage in zip(whole, passages, strict=True)
        ]

    def pieces(self, passage: Passage) -> list[Piece]:
        """The tokens of a passage without a prompt, each where ``encode`` puts its id."""
        encoding = self._rust.encode(passage.text, add_special_tokens=False)
        whole = [
            Piece(passage.text[start:end] or token, start, end)
            for token, (start, end) in zip(encoding.tokens, encoding.offsets, strict=True)
        ]
        kept = self._cut(whole, protected=0, keep_end=passage.keep_end or self._keeps_end)
        before, after = ([self._added(token) for token in ids] for ids in (self._prefix, self._suffix))
        return [*before, *kept, *after]

    def bare_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """All tokens of each text, without special tokens."""
        encodings = self._rust.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def pair_template(self) -> "PairTemplate":
        """What the model's template puts around and between two texts."""
        return _pair_template(self._rust, has_segments=SEGMENTS in self.pretrained.model_input_names)

    def aside_template(self) -> "PairTemplate":
        """The same for two texts that are each written as if alone."""
        if not self._prefix + self._suffix:
            raise ModelError(
                "the tokenizer puts no special tokens around a text: give its tokenizer.json a template"
            )
        ids = self._prefix, [*self._suffix, *self._prefix], self._suffix
        segments = tuple([0] * len(part) for part in ids)
        return PairTemplate(ids, segments, owners=(0, 0), has_segments=False, tail=len(self._suffix))

    def use_segments(self) -> None:
        """Have the texts of a pair told apart, here and wherever the tokenizer is loaded again."""
        names = [name for name in self.pretrained.model_input_names if name != SEGMENTS]
        self.pretrained.model_input_names = [*names, SEGMENTS]
        self.pretrained.init_kwargs["model_input_names"] = self.pretrained.model_input_names  # what is saved

    def prompt_length(self, prompt: str) -> int:
        """How many of a text's first tokens are its prompt's, special tokens included; 0 without a prompt."""
        return len(self._prefix) + self._prompt_ids(prompt) if prompt else 0

    @property
    def identity(self) -> tuple[int, bool, str]:
        """What decides how a text is read; equal tokenizers read every text alike."""
        return self.max_tokens, self._keeps_end, self._rust.to_str()

    def _prompt_ids(self, prompt: str) -> int:
        """How many tokens a prompt takes, if it leaves room for a text."""
        taken = len(self.bare_ids([prompt])[0]) if prompt else 0
        if taken >= self._room:
            raise InputError(
                f"a prompt of {taken} tokens leaves no room for text among {self._room}: shorten it"
            )
        return taken

    def _fit(self, ids: list[int], *, protected: int, keep_end: bool) -> TokenIds:
        kept = self._cut(ids, protected=protected, keep_end=keep_end)
        whole = self._prefix + kept + self._suffix
        if not whole:
            raise InputError("a text has no tokens in this model's vocabulary: leave it out")
        return TokenIds(whole, len(ids) - len(kept))

    def _cut(self, tokens: list[Token], *, protected: int, keep_end: bool) -> list[Token]:
        """As many of the tokens as there is room for."""
        cut = max(len(tokens) - self._room, 0)
        if cut and keep_end:
            return tokens[:protected] + tokens[protected + cut :]
        return tokens[: self._room]

    def _added(self, token: int) -> Piece:
        return Piece(self._rust.id_to_token(token) or "", 0, 0)


def fitting_tokenizer(
    folder: Path, encoder: Encoder, *, max_tokens: int | None = None, lowercase: bool = False
) -> Tokenizer:
    """The folder's tokenizer for its encoder, cutting at ``max_tokens``, or else at what it says itself."""
    pretrained = read_tokenizer(folder)
    if len(pretrained) > encoder.vocabulary:
        raise ModelError(
            f"the tokenizer in {folder} has {len(pretrained)} tokens, its model knows {encoder.vocabulary}: "
            "they do not belong together"
        )
    limit = check_count("max_tokens", pretrained.model_max_length if max_tokens is None else max_tokens)
    if encoder.max_tokens is not None:
        limit = min(limit, encoder.max_tokens)
    return Tokenizer(pretrained, max_tokens=limit, lowercase=lowercase)


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


def _pair_template(rust: RustTokenizer, *, has_segments: bool) -> PairTemplate:
    encoding = rust.encode("a", "b")
    owners = encoding.sequence_ids
    if set(owners) != {None, 0, 1}:
        raise ModelError(
            "the tokenizer puts no special tokens around a pair: give its tokenizer.json a pair template"
        )
    first, second = owners.index(0), owners.index(1)
    ends = [len(owners) - owners[::-1].index(owner) for owner in (0, 1)]
    if second < ends[0]:
        raise ModelError("the tokenizer's template mixes the two texts of a pair, which tercet cannot read")
    parts = [slice(0, first), slice(ends[0], second), slice(ends[1], None)]
    return PairTemplate(
        ids=tuple(encoding.ids[part] for part in parts),
        segments=tuple(encoding.type_ids[part] for part in parts),
        owners=(encoding.type_ids[first], encoding.type_ids[second]),
        has_segments=has_segments,
        tail=second - ends[0],
    )


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
