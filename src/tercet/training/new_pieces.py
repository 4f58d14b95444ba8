"""A tokenizer with word pieces for scripts that it could not read; other texts keep their tokens.

The tokenizers of BERT's uncased models remove all marks, and take letters apart to find them: a Hangul
syllable becomes its letters, and the Japanese が becomes か. The extended tokenizer keeps the marks of
the new scripts and puts the letters together again.
"""

import json
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Any

from tokenizers import Regex, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as RustTokenizer
from transformers import PreTrainedTokenizerFast

from tercet.errors import DataError, InputError
from tercet.settings.vocabulary import VocabularyConfig
from tercet.text.readable import letters_by_script, script_of
from tercet.text.tokenizer import Tokenizer
from tercet.training.vocabulary import CONTINUES, learn_pieces

EXAMINED_TEXTS = 2000
"""Texts by which scripts are found."""
MIN_UNREADABLE = 0.1
"""The share of unreadable letters from which on a tokenizer needs new pieces."""
MIN_SCRIPT = 0.01
"""The share of all letters from which on a script gets pieces."""
BERT = "BertNormalizer"


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
    content["normalizer"] = _normalizer(content["normalizer"], texts, scripts)
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


def _normalizer(stored: dict[str, Any] | None, texts: Iterable[str], scripts: Collection[str]) -> Any:
    """The stored normalizer if it keeps the letters of the new scripts, else BERT's with their marks kept."""
    wrapped = _rust({"normalizer": stored})
    letters = {each for text in texts for each in unicodedata.normalize("NFC", text) if _is_of(each, scripts)}
    if wrapped.normalizer is None or all(
        wrapped.normalizer.normalize_str(letter).strip() in (letter, letter.lower()) for letter in letters
    ):
        return stored
    if stored is None or stored["type"] != BERT:
        raise InputError(
            f"the tokenizer's normalizer changes letters of {', '.join(sorted(scripts))}, and only a {BERT} "
            "can be replaced by one that keeps them: choose another model"
        )
    clean = normalizers.BertNormalizer(
        clean_text=stored["clean_text"],
        handle_chinese_chars=stored["handle_chinese_chars"],
        strip_accents=False,
        lowercase=False,
    )
    kept = "".join(rf"\p{{{script}}}" for script in sorted(scripts) if _is_property(script))
    marks = normalizers.Replace(Regex(rf"(?<![\p{{Mn}}{kept}])\p{{Mn}}+"), "")
    lower = [normalizers.Lowercase()] if stored["lowercase"] else []
    wrapped.normalizer = normalizers.Sequence(
        [clean, normalizers.NFD(), marks, normalizers.NFC(), *lower]  # in BERT's order
    )
    return json.loads(wrapped.to_str())["normalizer"]


def _learn(
    content: dict[str, Any], texts: Iterable[str], scripts: Collection[str], config: VocabularyConfig
) -> list[str]:
    """Pieces with a letter of the scripts, learnt from the words that have one."""
    rust = _rust(content)
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
        tokenizer_object=RustTokenizer.from_str(json.dumps(content)),
        model_max_length=theirs.model_max_length,
        model_input_names=theirs.model_input_names,
        padding_side=theirs.padding_side,
        truncation_side=theirs.truncation_side,
        **theirs.special_tokens_map,
    )
    return Tokenizer(pretrained, max_tokens=before.max_tokens, lowercase=before.lowercase)


def _rust(content: dict[str, Any]) -> RustTokenizer:
    """A tokenizer with the normalizer and the pre-tokenizer of ``content``, and no vocabulary."""
    rust = RustTokenizer(models.WordPiece())
    empty: dict[str, Any] = json.loads(rust.to_str())
    parts = {name: content.get(name) for name in ("normalizer", "pre_tokenizer")}
    return RustTokenizer.from_str(json.dumps({**empty, **parts}))


def _has(word: str, scripts: Collection[str]) -> bool:
    return any(character.isalpha() and script_of(character) in scripts for character in word)


def _is_of(character: str, scripts: Collection[str]) -> bool:
    """Whether a character is a letter of one of the scripts, or a mark, which belongs to some letter."""
    is_mark = unicodedata.category(character) == "Mn"
    return (is_mark or character.isalpha()) and script_of(character) in scripts


def _is_property(script: str) -> bool:
    """Whether patterns know the script; they do not know all that Unicode's names begin with."""
    try:
        Regex(rf"\p{{{script}}}")
    except Exception:  # the library raises nothing more particular
        return False
    return True
