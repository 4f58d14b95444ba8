"""Sample pairs of Korean sentences, similar and random ones, to pre-train a cross-encoder.

python recipes/korean/near.py --data FOLDER

FOLDER contains kor_sts, klue_nli, ko_parakqc, ko_chatbot and ko_question_pair. The script writes
near.jsonl.gz to FOLDER/korean (or --out): each text with 4 of its 20 nearest neighbours by TF-IDF of
character bigrams, and with a random text. It keeps 250,000 of these pairs.
"""

import argparse
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

FILES = ("kor_sts/train", "klue_nli/train", "ko_parakqc/all", "ko_chatbot/all", "ko_question_pair/train")
COLUMNS = ("text_a", "text_b", "text", "response")
NEIGHBOURS = 20
SAMPLED = 4
PAIRS = 250_000
TEXTS_AT_ONCE = 250


def read_texts(folder: Path) -> list[str]:
    """All distinct sentences that contain Hangul."""
    texts = []
    for name in FILES:
        with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
            for row in map(json.loads, file):
                texts += [row[column] for column in COLUMNS if column in row]
    return [text for text in dict.fromkeys(texts) if any("가" <= letter <= "힣" for letter in text)]


def near_pairs(texts: list[str]) -> Iterator[tuple[int, int]]:
    """Pairs of positions in ``texts``."""
    rng = np.random.default_rng(0)
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 2), sublinear_tf=True, min_df=2)
    vectors = vectorizer.fit_transform(texts)
    for start in range(0, len(texts), TEXTS_AT_ONCE):
        products = (vectors[start : start + TEXTS_AT_ONCE] @ vectors.T).toarray()
        neighbours = np.argpartition(-products, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]
        for position, near in enumerate(neighbours, start):
            others = [other for other in near if other != position]
            yield from ((position, int(other)) for other in rng.choice(others, SAMPLED, replace=False))
            yield position, int(rng.integers(len(texts)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--out", type=Path, help="output folder. Default: DATA/korean")
    options = parser.parse_args()
    out = options.out or options.data / "korean"
    out.mkdir(parents=True, exist_ok=True)
    texts = read_texts(options.data)
    pairs = np.array(list(near_pairs(texts)))
    chosen = pairs[np.random.default_rng(1).permutation(len(pairs))[:PAIRS]].tolist()
    with gzip.open(out / "near.jsonl.gz", "wt", encoding="utf-8") as file:
        for left, right in chosen:
            if left != right:
                row = {"text_a": texts[left], "text_b": texts[right]}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(f"{out / 'near.jsonl.gz'}: pairs of {len(texts):,} texts")


if __name__ == "__main__":
    main()
