"""A WordPiece vocabulary made from text, for a model that begins with nothing."""

from collections.abc import Iterable
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from tercet.errors import DataError

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PADDING, UNKNOWN, FIRST, END, MASK = SPECIAL


def make_tokenizer(
    texts: Iterable[str], *, size: int, lowercase: bool, max_tokens: int
) -> PreTrainedTokenizerBase:
    """A tokenizer of at most ``size`` pieces, learnt from the texts, which are read once.

    Accents and the syllables of Hangul stay whole, unlike in BERT's uncased vocabulary.
    """
    rust = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    rust.normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=False)
    rust.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    rust.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=list(SPECIAL), show_progress=False, limit_alphabet=size // 2
    )
    rust.train_from_iterator(texts, trainer)
    if rust.get_vocab_size() <= len(SPECIAL):
        raise DataError("there is no text to make a vocabulary from")
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
    }
    return PreTrainedTokenizerFast(tokenizer_object=rust, model_max_length=max_tokens, **names)
