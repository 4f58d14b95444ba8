"""A tokenizer with word pieces for scripts that it could not read; other texts keep their tokens."""

import json
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Any

from tokenizers import Tokenizer as RustTokenizer
from tokenizers import models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from tercet.errors import DataError, InputError
from tercet.files.structured import json_text
from tercet.settings.vocabulary import VocabularyConfig
from tercet.text.readable import letters_by_script, script_of
from tercet.text.tokenizer import Tokenizer
from tercet.training.kept_marks import keeping_marks
from tercet.training.vocabulary import CONTINUES, learn_pieces

EXAMINED_TEXTS = 2000
"""Texts by which scripts are found."""
MIN_UNREADABLE = 0.1
"""The share of unreadable letters from which on a tokenizer needs new pieces."""
MIN_SCRIPT = 0.01
"""The share of all letters from which on a script gets pieces."""


def extend_tokenizer(
    tokenizer: Tokenizer, texts: Sequence[str], config: VocabularyConfig, *, first_id: int
) -> Tokenizer:
    """The tokenizer with new pieces, learnt from texts of a language that it cannot read.

    Args:
        first_id: the id of the first new piece; the others follow.
    """
    content: dict[str, Any] = json.loads(tokenizer.pretrained.backend_tokenizer.to_str())
    if content["model"]["type"] != "WordPiece" or content["model"]["continuing_subword_prefix"] != CONTINUES:
        raise InputError(
            "new pieces need a WordPiece tokenizer, such as that of BERT, DistilBERT, ELECTRA or MPNet, and "
            f"this is {content['model']['type']}: choose another model, or a multilingual one without "
            "[vocabulary]"
        )
    scripts = _new_scripts(tokenizer, texts)
    content["normalizer"] = keeping_marks(content["normalizer"], texts, scripts)
    known = content["model"]["vocab"]
    read = [text.lower() for text in texts] if tokenizer.lowercase else texts
    found = _learn(content, read, scripts, config)
    new = [piece for piece in found if piece not in known]
    if not new:
        raise DataError("the translations have no letters that need new pieces: remove [vocabulary]")
    known.update({piece: first_id + position for position, piece in enumerate(new)})
    return _tokenizer(tokenizer, content)


def _new_scripts(tokenizer: Tokenizer, texts: Iterable[str]) -> set[str]:
    """The scripts of the texts apart from the Latin one, if the tokenizer cannot read many letters."""
    letters: Counter[str] = Counter()
    unreadable: Counter[str] = Counter()
    for text in islice(texts, EXAMINED_TEXTS):
        some = letters_by_script(text, tokenizer.spans(text))
        letters += some[0]
        unreadable += some[1]
    share = unreadable.total() / max(letters.total(), 1)
    if share < MIN_UNREADABLE:
        raise InputError(
            f"the tokenizer reads the translations already ({share:.1%} of their letters are unknown or "
            "taken apart): train without new pieces (remove [vocabulary], --pieces 0)"
        )
    return {
        script
        for script, count in letters.items()
        if script != "Latin" and count >= MIN_SCRIPT * letters.total()
    }


def _learn(
    content: dict[str, Any], texts: Iterable[str], scripts: Collection[str], config: VocabularyConfig
) -> list[str]:
    """Pieces with a letter of the scripts, learnt from the words that have one."""
    rust = RustTokenizer.from_str(json_text(content))
    normalize = str if rust.normalizer is None else rust.normalizer.normalize_str
    words = (
        [word for word, _ in rust.pre_tokenizer.pre_tokenize_str(normalize(text)) if _has(word, scripts)]
        for text in texts
    )
    learner = RustTokenizer(models.WordPiece(unk_token=content["model"]["unk_token"]))
    learner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    found = learn_pieces(
        learner, list(map(" ".join, words)), size=config.pieces, min_frequency=config.min_frequency
    )
    return [piece for piece in sorted(found, key=lambda piece: found[piece]) if _has(piece, scripts)]


def _tokenizer(before: Tokenizer, content: dict[str, Any]) -> Tokenizer:
    """The tokenizer of ``content`` with the other settings of another one.

    A class such as BertTokenizer would replace the normalizer by its own.
    """
    theirs = before.pretrained
    pretrained = PreTrainedTokenizerFast(
        tokenizer_object=RustTokenizer.from_str(json_text(content)),
        model_max_length=theirs.model_max_length,
        model_input_names=theirs.model_input_names,
        padding_side=theirs.padding_side,
        truncation_side=theirs.truncation_side,
        **theirs.special_tokens_map,
    )
    return Tokenizer(pretrained, max_tokens=before.max_tokens, lowercase=before.lowercase)


def _has(word: str, scripts: Collection[str]) -> bool:
    """Whether a word has a letter of one of the scripts, or a mark, such as a vowel sign."""
    return any(
        script_of(character) in scripts and unicodedata.category(character)[0] in "LM" for character in word
    )
