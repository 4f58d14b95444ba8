"""A WordPiece vocabulary learnt from text, for new models."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from tercet.errors import DataError
from tercet.text.tokenizer import SEGMENTS

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PADDING, UNKNOWN, CLS, SEP, MASK = SPECIAL
CONTINUES = "##"
"""Prefix of a piece that continues a word."""


def make_tokenizer(
    texts: Iterable[str], *, size: int, lowercase: bool, max_tokens: int
) -> PreTrainedTokenizerBase:
    """A tokenizer with at most ``size`` pieces, learnt from the texts.

    Accents and Hangul syllables are preserved, unlike in BERT's uncased vocabulary.
    """
    rust = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    rust.normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=False)
    rust.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    rust.decoder = decoders.WordPiece()
    found = learn_pieces(rust, list(texts), size=size, special=SPECIAL)
    rust.model = models.WordPiece(found, unk_token=UNKNOWN)
    rust.add_special_tokens(list(SPECIAL))
    rust.post_processor = TemplateProcessing(
        single=f"{CLS} $A {SEP}",
        pair=f"{CLS} $A {SEP} $B:1 {SEP}:1",
        special_tokens=[(token, rust.token_to_id(token)) for token in (CLS, SEP)],
    )
    names: dict[str, Any] = {
        "pad_token": PADDING,
        "unk_token": UNKNOWN,
        "cls_token": CLS,
        "sep_token": SEP,
        "mask_token": MASK,
        "model_input_names": ["input_ids", SEGMENTS, "attention_mask"],
    }
    return PreTrainedTokenizerFast(tokenizer_object=rust, model_max_length=max_tokens, **names)


def learn_pieces(
    rust: Tokenizer, texts: Sequence[str], *, size: int, special: Sequence[str] = (), min_frequency: int = 0
) -> dict[str, int]:
    """Word pieces and their ids, reproducible for the same texts.

    By default, the trainer numbers characters in the order of a hash map, which decides between equally
    frequent pieces. Passing them as special tokens fixes their ids.

    Args:
        rust: its normalizer and its pre-tokenizer make words of the texts.
        special: tokens that come first.
        min_frequency: how often a piece of several letters must occur.
    """
    normalize = str if rust.normalizer is None else rust.normalizer.normalize_str
    characters = Counter(character for text in texts for character in normalize(text))
    common = [character for character, _ in characters.most_common(size // 4) if not character.isspace()]
    if not common:
        raise DataError("there is no text to learn a vocabulary from")
    inside = [f"{CONTINUES}{character}" for character in sorted(common)]
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=min_frequency,
        special_tokens=[*special, *inside],
        initial_alphabet=common,
        limit_alphabet=len(common),
        show_progress=False,
    )
    rust.train_from_iterator(texts, trainer)
    found: dict[str, int] = rust.get_vocab()
    return found
