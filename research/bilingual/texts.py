"""Rows of the data sets, and files of their tokens."""

import gzip
import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

Spans = NDArray[np.int32]
"""``[N, 2]``: first and last position (exclusive) of each text in the array of tokens."""

CLS, SEP = 101, 102
FULL_STOP = 1012
"""Stands for a text that has no tokens."""

HELD_OUT = {
    "medquad": 40,
    "docs_en_faq": 100,
    "docs_ko_faq": 200,
    "ko_chatbot": 40,
    "stylekqc": 100,
    "parakqc": 100,
    "tatoeba": 120,
    "square": 25,
    "news": 120,
    "dstc9": 30,
    "trivia": 10,
    "headings_ko": 15,
    "qpair_ko": 150,
}
"""Thousandths of each set that are held out for dev, for sets without a dev file."""


def clean(text: str) -> str:
    """The text with single spaces."""
    return " ".join(text.split())


def bucket(key: object, buckets: int = 1000) -> int:
    """A number below ``buckets`` that depends on the key alone."""
    digest = hashlib.md5(str(key).encode(), usedforsecurity=False).hexdigest()
    return int(digest[:8], 16) % buckets


def held_out(name: str, key: object) -> bool:
    """Whether the group of rows with this key is held out for dev."""
    return bucket(f"{name}{key}") < HELD_OUT[name]


def sample(rng: random.Random, rows: Sequence[Any], size: int) -> list[Any]:
    """At most ``size`` of the rows, at random."""
    return rng.sample(rows, min(size, len(rows)))


class DataFolder:
    """The data sets in a folder; ``small`` reads every 25th block of 20 rows, for a dry run."""

    def __init__(self, folder: Path, *, small: bool = False) -> None:
        self.folder = folder
        self.small = small

    def rows(self, name: str, *, whole: bool = False) -> Iterator[dict[str, Any]]:
        with gzip.open(self.folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
            for number, line in enumerate(file):
                if whole or not self.small or number // 20 % 25 == 0:
                    yield json.loads(line)

    def answers(self, name: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Question, answer and row; questions of several turns keep their lines."""
        for row in self.rows(name):
            question = row.get("question")
            yield clean(question) if question else "\n".join(row["context"]), clean(row["response"]), row

    def dialogues(self, name: str) -> list[list[str]]:
        return [[clean(turn) for turn in row["turns"]] for row in self.rows(name)]

    def style_groups(self) -> dict[str, list[str]]:
        """Sentences of StyleKQC by group; the sentences of a group have the same meaning."""
        groups = defaultdict(list)
        for row in self.rows("ko_stylekqc/utterances"):
            groups[row["group"]].append(row["text"])
        return groups

    def paraphrase_groups(self) -> dict[int, list[str]]:
        """Sentences of paraKQC by group: ten consecutive rows are paraphrases."""
        texts = [row["text"] for row in self.rows("ko_parakqc/all")]
        return {start // 10: texts[start : start + 10] for start in range(0, len(texts), 10)}

    def translations(self) -> Iterator[tuple[str, str, str]]:
        """English, Korean and kind (``korsts``, ``tatoeba``, ``square`` or ``news``) of en_ko/general."""
        for row in self.rows("en_ko/general_train"):
            kind = row["source"] if row["source"] in ("korsts", "tatoeba", "square") else "news"
            yield clean(row["en"]), clean(row["ko"]), kind


class TokenWriter:
    """Collects texts as token ids without special tokens, and columns of spans in them."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        if tokenizer.get_vocab_size() > 2**16:
            raise ValueError(f"tokens are stored in 16 bits, got {tokenizer.get_vocab_size()} pieces")
        self.tokenizer = tokenizer
        self.columns: dict[str, NDArray[Any]] = {}
        self.chunks: list[NDArray[np.uint16]] = []
        self.length = 0
        self.known: dict[tuple[str, int, bool], tuple[int, int]] = {}

    def tokenize(self, texts: Sequence[str]) -> Iterator[list[int]]:
        for start in range(0, len(texts), 20_000):
            batch = texts[start : start + 20_000]
            for encoding in self.tokenizer.encode_batch_fast(batch, add_special_tokens=False):
                yield encoding.ids

    def append(self, ids: Sequence[int]) -> tuple[int, int]:
        start = self.length
        self.chunks.append(np.asarray(ids, dtype=np.uint16))
        self.length += len(ids)
        return start, self.length

    def spans(self, texts: Sequence[str], max_tokens: int, *, keep_end: bool = False) -> Spans:
        """``[N, 2]``; equal texts are stored once."""
        new = [text for text in dict.fromkeys(texts) if (text, max_tokens, keep_end) not in self.known]
        for text, ids in zip(new, self.tokenize(new), strict=True):
            kept = (ids[-max_tokens:] if keep_end else ids[:max_tokens]) or [FULL_STOP]
            self.known[text, max_tokens, keep_end] = self.append(kept)
        found = [self.known[text, max_tokens, keep_end] for text in texts]
        return np.array(found, dtype=np.int32).reshape(-1, 2)

    def save(self, path: Path) -> None:
        tokens = np.concatenate(self.chunks)
        np.savez_compressed(path, allow_pickle=False, tokens=tokens, **self.columns)
        print(f"{path.name}: {len(tokens):,} tokens, {path.stat().st_size / 1e6:.1f} MB", flush=True)


class TokenFile:
    """A file of ``TokenWriter``."""

    def __init__(self, path: Path) -> None:
        with np.load(path, allow_pickle=False) as file:
            self.columns = {name: file[name] for name in file.files}
        self.path = path
        self.tokens = self.columns.pop("tokens").astype(np.int32)

    def names(self, kind: str) -> list[str]:
        """Names of the sets of a kind: the middle part of columns such as ``pair/medquad/left``."""
        return sorted({column.split("/")[1] for column in self.columns if column.startswith(f"{kind}/")})

    def check_rows(self, rows: int, model: str) -> None:
        """Raise an error if the texts have a token for which the word table has no row."""
        highest = int(self.tokens.max())
        if highest >= rows:
            raise ValueError(
                f"the word table of the {model} has {rows} rows, but {self.path.name} has token {highest}: "
                "extend the table to the vocabulary first (distil.starting_weights)"
            )

    def sequences(
        self, spans: Spans, max_tokens: int, keep_end: "bool | NDArray[np.bool_]" = False
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Token ids of all spans side by side, each with [CLS] and [SEP], and the lengths ``[N]``.

        Args:
            keep_end: whether truncation keeps the end of a text; one value, or ``[N]``.
        """
        starts, ends = spans[:, 0].astype(np.int64), spans[:, 1].astype(np.int64)
        kept = np.minimum(ends - starts, max_tokens)
        starts = np.where(keep_end, ends - kept, starts)
        inner = np.arange(kept.sum()) + np.repeat(starts - (np.cumsum(kept) - kept), kept)
        places = np.arange(kept.sum()) + 1 + 2 * np.repeat(np.arange(len(kept)), kept)
        lengths = kept + 2
        last = np.cumsum(lengths)
        ids = np.empty(last[-1] if len(last) else 0, np.int32)
        ids[last - lengths], ids[last - 1], ids[places] = CLS, SEP, self.tokens[inner]
        return ids, lengths


def drop_tokens(
    ids: NDArray[np.int32], lengths: NDArray[np.int64], share: float, rng: np.random.Generator
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The sequences without a share of the tokens of every second text of 5 tokens or more."""
    text = np.repeat(np.arange(len(lengths)), lengths)
    chosen = (rng.random(len(lengths)) < 0.5) & (lengths >= 7)
    dropped = (rng.random(len(ids)) < share) & chosen[text] & (ids != CLS) & (ids != SEP)
    return ids[~dropped], np.bincount(text[~dropped], minlength=len(lengths))
