"""Extend MiniLM's WordPiece vocabulary with Korean pieces.

python research/bilingual/vocabulary.py --data DATA --work WORK

English is tokenised as before. Hangul syllables stay whole: MiniLM's normaliser decomposes them, this one
composes them again after it has stripped the accents. Every syllable of KS X 1001 has a piece.
"""

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path

from texts import DataFolder, sample
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from tercet.formats.backbone import backbone_folder

MINILM = backbone_folder()
ENGLISH_PIECES = 30_522
KOREAN_PIECES = 25_000
"""Size of the Korean vocabulary, of which only pieces with Hangul are added."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--work", type=Path, required=True, help="folder of intermediate files")
    parser.add_argument("--small", action="store_true", help="a dry run with little text")
    options = parser.parse_args()
    data = DataFolder(options.data, small=options.small)
    pieces = korean_pieces(data, 3000 if options.small else KOREAN_PIECES)
    new = write_tokenizer(pieces, options.work / "tokenizer")
    print(f"{len(pieces)} pieces with Hangul, {new} new, {ENGLISH_PIECES + new} in all")


def normalizer() -> normalizers.Normalizer:
    """Reads English as MiniLM does, and leaves Hangul syllables whole."""
    clean = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=False, lowercase=False
    )
    return normalizers.Sequence(
        [clean, normalizers.NFD(), normalizers.StripAccents(), normalizers.NFC(), normalizers.Lowercase()]
    )


def korean_texts(data: DataFolder) -> Iterator[str]:
    """Korean text of all sets; general translations count three times."""
    rng = random.Random(0)
    for row in data.rows("en_ko/general_train"):
        yield from [row["ko"]] * 3
    docs = [row["ko"] for row in data.rows("en_ko/docs_train") if row["source"] != "python"]
    yield from sample(rng, docs, 120_000)
    yield from sample(rng, [row["text"] for row in data.rows("ko_nsmc/text")], 60_000)
    yield from (row["text"] for row in data.rows("ko_3i4k/text"))
    for row in data.rows("ko_chatbot/all"):
        yield from (row["context"][0], row["response"])
    for name in ("klue_nli/train", "ko_question_pair/train"):
        for row in data.rows(name):
            yield from (row["text_a"], row["text_b"])
    for name in ("ko_stylekqc/utterances", "ko_parakqc/all", "ko_news_titles/text"):
        yield from (row["text"] for row in data.rows(name))
    headings = sample(rng, list(data.rows("docs_ko_headings/train")), 8000)
    for row in [*data.rows("docs_ko_faq/train"), *headings]:
        yield from (row["question"], row["response"])


def has_hangul(text: str) -> bool:
    return any("가" <= letter <= "힣" or "ㄱ" <= letter <= "ㅣ" for letter in text)


def common_letters() -> list[str]:
    """The 2,350 syllables of KS X 1001, and the single letters."""
    codes = (bytes([high, low]) for high in range(0xB0, 0xC9) for low in range(0xA1, 0xFF))
    syllables = [code.decode("euc-kr", errors="ignore") for code in codes]
    return [letter for letter in syllables if letter and "가" <= letter <= "힣"] + [
        chr(code) for code in range(ord("ㄱ"), ord("ㅣ") + 1)
    ]


def korean_pieces(data: DataFolder, size: int) -> list[str]:
    """Pieces with Hangul of a WordPiece vocabulary trained on Korean text, then missing single letters."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, min_frequency=3, special_tokens=["[UNK]"], limit_alphabet=4000, show_progress=False
    )
    tokenizer.train_from_iterator(korean_texts(data), trainer)
    vocabulary = tokenizer.get_vocab()
    pieces = [piece for piece in sorted(vocabulary, key=lambda piece: vocabulary[piece]) if has_hangul(piece)]
    letters = [piece for letter in common_letters() for piece in (letter, f"##{letter}")]
    return list(dict.fromkeys([*pieces, *letters]))


def write_tokenizer(pieces: list[str], folder: Path) -> int:
    """Write MiniLM's tokenizer with the pieces appended; returns how many are new."""
    tokenizer = json.loads((MINILM / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary = tokenizer["model"]["vocab"]
    if len(vocabulary) != ENGLISH_PIECES:
        raise ValueError(f"MiniLM's vocabulary must have {ENGLISH_PIECES} pieces, got {len(vocabulary)}")
    new = [piece for piece in pieces if piece not in vocabulary]
    vocabulary.update({piece: ENGLISH_PIECES + number for number, piece in enumerate(new)})
    base = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    base.normalizer = normalizer()
    tokenizer |= {"normalizer": json.loads(base.to_str())["normalizer"], "padding": None, "truncation": None}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")
    in_order = sorted(vocabulary, key=lambda piece: vocabulary[piece])
    (folder / "vocab.txt").write_text("\n".join(in_order) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config(), indent=1), encoding="utf-8")
    return len(new)


def tokenizer_config() -> dict[str, object]:
    """Settings that leave the normaliser as it is: BertTokenizer would replace it with its own."""
    names = ("unk", "sep", "pad", "cls", "mask")
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": 512,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        "do_lower_case": False,
        "strip_accents": False,
        "tokenize_chinese_chars": True,
        **{f"{name}_token": f"[{name.upper()}]" for name in names},
    }


if __name__ == "__main__":
    main()
