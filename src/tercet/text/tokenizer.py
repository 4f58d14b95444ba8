"""Text to token ids, truncated to the model's maximum length."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tokenizers import Encoding
from tokenizers import Tokenizer as RustTokenizer
from tokenizers.normalizers import Lowercase
from tokenizers.normalizers import Sequence as Normalizers

from tercet.errors import InputError, ModelError
from tercet.settings.limits import current_limits, raise_it
from tercet.text.readable import TokenSpan
from tercet.text.words import Span

if TYPE_CHECKING:  # which imports torch
    from transformers import PreTrainedTokenizerBase

Token = TypeVar("Token")

PANIC = "PanicException"
"""The class of Rust's panics in Python, which cannot be imported."""

SEGMENTS = "token_type_ids"
"""What transformers calls the segment ids of a pair."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A text to tokenize; ``keep_end`` says which end is kept if it is too long."""

    text: str
    keep_end: bool = False


class TokenIds(NamedTuple):
    """A tokenized text with its special tokens; ``truncated`` counts the tokens that were dropped."""

    ids: list[int]
    truncated: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A token and its characters in the text; a special token has none, ``start == end``."""

    text: str
    start: int
    end: int


class WordPieces(NamedTuple):
    """The tokens of a text: the characters of each, and the number of the word that it belongs to."""

    spans: list[tuple[int, int]]
    words: list[int | None]


class PairTemplate(NamedTuple):
    """The special tokens before, between and after the texts of a pair, with their segment ids.

    ``owners`` are the segment ids of the two texts. ``has_segments`` says whether the model expects segment
    ids. ``tail`` counts the tokens between the texts that belong to the first text.
    """

    ids: tuple[list[int], ...]
    segments: tuple[list[int], ...]
    owners: tuple[int, int]
    has_segments: bool
    tail: int


class Tokenizer:
    """The Rust tokenizer of a model folder, with tercet's own truncation.

    A passage that is too long loses its end, or its beginning if ``keep_end`` is set or the folder
    truncates on the left. A prompt is kept.

    Args:
        shared: whether other code uses the Rust tokenizer too, which is then copied before it is changed.
    """

    def __init__(
        self,
        pretrained: "PreTrainedTokenizerBase",
        *,
        max_tokens: int,
        lowercase: bool = False,
        shared: bool = True,
    ) -> None:
        self.pretrained = pretrained
        self.max_tokens = max_tokens
        self.lowercase = lowercase
        self._file = _file_of(pretrained)
        self._most_characters = current_limits().max_text_characters
        with tokenizer_errors(self._file):
            rust = pretrained.backend_tokenizer
            self._rust = RustTokenizer.from_str(rust.to_str()) if shared else rust
            self._rust.no_padding()  # folders may bring their own padding and truncation
            self._rust.no_truncation()
            if lowercase:
                self._rust.normalizer = _lowercased(self._rust)
            self._prefix, self._suffix = _special_ids(self._rust)
            # transformers looks a missing unknown token up for ever
            unknown = pretrained.unk_token
            self._unknown = None if unknown is None else self._rust.token_to_id(str(unknown))
        self._keeps_end = pretrained.truncation_side == "left"
        self._room = max_tokens - len(self._prefix) - len(self._suffix)
        if self._room < 1:
            raise InputError(
                f"max_tokens must leave room for text beside {len(self._prefix) + len(self._suffix)} "
                f"special tokens, got {max_tokens}"
            )

    def encode(self, passages: Sequence[Passage], *, prompt: str = "") -> list[TokenIds]:
        """The tokens of each passage, with the prompt in front."""
        protected = self._prompt_ids(prompt)
        texts = (
            [prompt + passage.text for passage in passages] if prompt else [each.text for each in passages]
        )
        whole = self._ids(texts, special=True)
        around, most = len(self._prefix) + len(self._suffix), self.max_tokens
        return [
            TokenIds(ids, 0)
            if around < len(ids) <= most
            else self._fit(
                ids[len(self._prefix) : len(ids) - len(self._suffix)],
                protected=protected,
                keep_end=passage.keep_end or self._keeps_end,
            )
            for ids, passage in zip(whole, passages, strict=True)
        ]

    def from_ids(self, ids: Sequence[int], *, prompt: str = "") -> TokenIds:
        """Tokens of a text without special tokens, which get them here; the prompt comes in front."""
        size = self._rust.get_vocab_size()
        wrong = next((token for token in ids if not 0 <= token < size), None)
        if wrong is not None or not ids:
            raise InputError(
                f"a token array must have at least one token, each from 0 to {size - 1}, got "
                f"{'none' if wrong is None else wrong}"
            )
        before = self.bare_ids([prompt])[0] if prompt else []
        return self._fit([*before, *ids], protected=len(before), keep_end=self._keeps_end)

    def pieces(self, passage: Passage, *, prompt: str = "") -> list[Piece]:
        """The tokens of a passage, in the order of the ids that ``encode`` returns.

        Tokens of the prompt have no characters in the text, like special tokens.
        """
        whole = self.bare_pieces(passage.text, prompt=prompt)
        kept = self._truncate(
            whole, protected=self._prompt_ids(prompt), keep_end=passage.keep_end or self._keeps_end
        )
        before, after = ([self._special(token) for token in ids] for ids in (self._prefix, self._suffix))
        return [*before, *kept, *after]

    def bare_pieces(self, text: str, *, prompt: str = "") -> list[Piece]:
        """All tokens of a text, without special tokens, in the order of ``bare_ids``."""
        encoding = self._encoding(prompt + text)
        return [
            _piece(token, prompt + text, start, end, shift=len(prompt))
            for token, (start, end) in zip(encoding.tokens, encoding.offsets, strict=True)
        ]

    def spans(self, text: str) -> list[TokenSpan]:
        """The characters that each token of a text covers, and whether the token is unknown."""
        encoding = self._encoding(text)
        return [
            TokenSpan(start, end, token == self._unknown)
            for token, (start, end) in zip(encoding.ids, encoding.offsets, strict=True)
        ]

    def bare_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """All tokens of each text, without special tokens."""
        return self._ids(texts, special=False)

    def word_pieces(self, texts: Sequence[str]) -> list[WordPieces]:
        """All tokens of each text with their characters and words, without special tokens."""
        self._check_lengths(texts)
        with tokenizer_errors(self._file):
            encodings = self._rust.encode_batch(list(texts), add_special_tokens=False)
        return [WordPieces(encoding.offsets, encoding.word_ids) for encoding in encodings]

    def room(self, prompt: str = "") -> int:
        """How many tokens of a text fit beside the special tokens and the prompt."""
        return self._room - self._prompt_ids(prompt)

    def pair_template(self) -> PairTemplate:
        """The special tokens around the two texts of a pair, as the model was trained with them."""
        with tokenizer_errors(self._file):
            return _pair_template(self._rust, has_segments=SEGMENTS in self.pretrained.model_input_names)

    def separate_template(self, *, segments: bool = False) -> PairTemplate:
        """The special tokens of a pair in which each text is tokenized as if it were alone.

        Args:
            segments: whether the tokens of the second text have segment 1, its special tokens included.
        """
        if not self._prefix + self._suffix:
            raise ModelError(
                "the tokenizer adds no special tokens to a text: add a template to its tokenizer.json"
            )
        ids = self._prefix, [*self._suffix, *self._prefix], self._suffix
        second = int(segments)
        numbers = (
            [0] * len(self._prefix),
            [*[0] * len(self._suffix), *[second] * len(self._prefix)],
            [second] * len(self._suffix),
        )
        return PairTemplate(ids, numbers, owners=(0, second), has_segments=segments, tail=len(self._suffix))

    def use_segments(self) -> None:
        """Distinguish the texts of a pair by segment ids, here and after saving."""
        names = [name for name in self.pretrained.model_input_names if name != SEGMENTS]
        self.pretrained.model_input_names = [*names, SEGMENTS]
        self.pretrained.init_kwargs["model_input_names"] = self.pretrained.model_input_names  # is saved

    def prompt_length(self, prompt: str) -> int:
        """How many tokens at the start of a text belong to the prompt, special tokens included."""
        return len(self._prefix) + self._prompt_ids(prompt) if prompt else 0

    def highest_id(self) -> int:
        """The highest id of a token, those that the templates of a text and of a pair add included."""
        with tokenizer_errors(self._file):
            templates = self._rust.encode("a").ids + self._rust.encode("a", "b").ids
            return max([*self._rust.get_vocab(with_added_tokens=True).values(), *templates], default=0)

    @property
    def identity(self) -> tuple[int, bool, str]:
        """Everything that determines the tokens of a text; equal for equal tokenizers."""
        return self.max_tokens, self._keeps_end, self._rust.to_str()

    def _encoding(self, text: str) -> Encoding:
        """The tokens of a text with their characters, without special tokens."""
        self._check_lengths([text])
        with tokenizer_errors(self._file):
            return self._rust.encode(text, add_special_tokens=False)

    def _ids(self, texts: Sequence[str], *, special: bool) -> list[list[int]]:
        """All tokens of each text; ``special`` adds those that the template puts before and after it."""
        self._check_lengths(texts)
        with tokenizer_errors(self._file):
            encodings = self._rust.encode_batch_fast(list(texts), add_special_tokens=special)
        return [encoding.ids for encoding in encodings]

    def _check_lengths(self, texts: Sequence[str]) -> None:
        longest = max(map(len, texts), default=0)
        if longest > self._most_characters:
            raise InputError(
                f"a text must have at most {self._most_characters:,} characters, got {longest:,}: split it; "
                f"{raise_it('max_text_characters')}"
            )

    def _prompt_ids(self, prompt: str) -> int:
        taken = len(self.bare_ids([prompt])[0]) if prompt else 0
        if taken >= self._room:
            raise InputError(
                f"the prompt has {taken} tokens and leaves no room for text within {self._room}: shorten it"
            )
        return taken

    def _fit(self, ids: list[int], *, protected: int, keep_end: bool) -> TokenIds:
        kept = self._truncate(ids, protected=protected, keep_end=keep_end)
        whole = self._prefix + kept + self._suffix
        if not whole:
            raise InputError("a text has no tokens in this model's vocabulary: remove it")
        return TokenIds(whole, len(ids) - len(kept))

    def _truncate(self, tokens: list[Token], *, protected: int, keep_end: bool) -> list[Token]:
        excess = max(len(tokens) - self._room, 0)
        if excess and keep_end:
            return tokens[:protected] + tokens[protected + excess :]
        return tokens[: self._room]

    def _special(self, token: int) -> Piece:
        return Piece(self._rust.id_to_token(token) or "", 0, 0)


@contextmanager
def tokenizer_errors(file: str) -> Iterator[None]:
    """Turn failures of the Rust library into errors that name the tokenizer's file.

    A panic of Rust, such as that of a pattern that backtracks for ever, is not even an ``Exception``.
    """
    try:
        yield
    except (ModelError, MemoryError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != PANIC:
            raise
        reason = str(error).encode(errors="backslashreplace").decode()
        raise ModelError(
            f"the tokenizer of {file} fails: {reason}; copy its files again, or use another model"
        ) from None


def _file_of(pretrained: "PreTrainedTokenizerBase") -> str:
    """The tokenizer's file, for messages; its folder if there is none of that name."""
    folder = Path(pretrained.name_or_path or "this model")
    file = folder / "tokenizer.json"
    return str(file if file.is_file() else folder)


def span_of(pieces: Sequence[Piece]) -> Span:
    """The characters from the first to the last of the pieces."""
    real = [piece for piece in pieces if piece.start < piece.end]
    return (real[0].start, real[-1].end) if real else (0, 0)


def _piece(token: str, text: str, start: int, end: int, *, shift: int) -> Piece:
    """A token of a text, with positions that count from character ``shift``."""
    if end <= shift and shift:
        return Piece(text[start:end] or token, 0, 0)
    start = max(start, shift)
    return Piece(text[start:end] or token, start - shift, end - shift)


def _pair_template(rust: RustTokenizer, *, has_segments: bool) -> PairTemplate:
    encoding = rust.encode("a", "b")
    owners = encoding.sequence_ids
    if set(owners) != {None, 0, 1}:
        raise ModelError(
            "the tokenizer adds no special tokens to a pair: add a pair template to its tokenizer.json"
        )
    first, second = owners.index(0), owners.index(1)
    ends = [len(owners) - owners[::-1].index(owner) for owner in (0, 1)]
    if second < ends[0]:
        raise ModelError("the tokenizer's template interleaves the two texts of a pair: not supported")
    parts = [slice(0, first), slice(ends[0], second), slice(ends[1], None)]
    return PairTemplate(
        ids=tuple(encoding.ids[part] for part in parts),
        segments=tuple(encoding.type_ids[part] for part in parts),
        owners=(encoding.type_ids[first], encoding.type_ids[second]),
        has_segments=has_segments,
        tail=second - ends[0],
    )


def _special_ids(rust: RustTokenizer) -> tuple[list[int], list[int]]:
    """The special tokens that the template adds before and after a text."""
    with_template = rust.encode("a")
    bare = rust.encode("a", add_special_tokens=False).ids
    marks = with_template.special_tokens_mask
    before = next((position for position, special in enumerate(marks) if not special), len(marks))
    return with_template.ids[:before], with_template.ids[before + len(bare) :]


def _lowercased(rust: RustTokenizer) -> Normalizers:
    present = [] if rust.normalizer is None else [rust.normalizer]
    return Normalizers([Lowercase(), *present])
