"""A WordPiece vocabulary made from text, for a model that begins with nothing."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from tercet.errors import DataError
from tercet.models.tokenizer import SEGMENTS

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PADDING, UNKNOWN, FIRST, END, MASK = SPECIAL
INSIDE = "##"
"""Before a piece that does not begin a word."""


def make_tokenizer(
    texts: Iterable[str], *, size: int, lowercase: bool, max_tokens: int
) -> PreTrainedTokenizerBase:
    """A tokenizer of at most ``size`` pieces, learnt from the texts.

    Accents and the syllables of Hangul stay whole, unlike in BERT's uncased vocabulary.
    """
    rust = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    rust.normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=False)
    rust.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    rust.decoder = decoders.WordPiece()
    rust.model = models.WordPiece(_pieces(rust, list(texts), size=size), unk_token=UNKNOWN)
    rust.add_special_tokens(list(SPECIAL))
    rust.post_processor = TemplateProcessing(
        single=f"{FIRST} $A {END}",
        pair=f"{FIRST} $A {END} $B:1 {END}:1",
        special_tokens=[(token, rust.token_to_id(token)) for token in (FIRST, END)],
    )
    names: dict[str, Any] = {
        "pad_token": PADDING,
        "unk_token": UNKNOWN,
        "cls_token": FIRST,
        "sep_token": END,
        "mask_token": MASK,
        "model_input_names": ["input_ids", SEGMENTS, "attention_mask"],
    }
    return PreTrainedTokenizerFast(tokenizer_object=rust, model_max_length=max_tokens, **names)


def _pieces(rust: Tokenizer, texts: Sequence[str], *, size: int) -> dict[str, int]:
    """Word pieces and their numbers, the same for the same texts.

    Left alone, the trainer numbers the letters inside words in the order of a hash map, and that decides
    between pieces that come equally often. As special tokens they have their numbers beforehand.
    """
    letters = Counter(letter for text in texts for letter in rust.normalizer.normalize_str(text))
    common = [letter for letter, _ in letters.most_common(size // 4) if not letter.isspace()]
    if not common:
        raise DataError("there is no text to make a vocabulary from")
    inside = [f"{INSIDE}{letter}" for letter in sorted(common)]
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        special_tokens=[*SPECIAL, *inside],
        initial_alphabet=common,
        limit_alphabet=len(common),
        show_progress=False,
    )
    rust.train_from_iterator(texts, trainer)
    found: dict[str, int] = rust.get_vocab()
    return found
