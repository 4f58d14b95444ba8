"""Pairs of Korean sentences that share letters, and pairs by chance, for a cross-encoder to begin with.

python recipes/korean/near.py --data FOLDER

FOLDER holds kor_sts, klue_nli, ko_parakqc, ko_chatbot and ko_question_pair. Written to FOLDER/korean (or
--out) is near.jsonl.gz: each text with four of the twenty that share the rarest pairs of letters with it, and
with one by chance; 250,000 of these pairs.
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
NEAREST = 20
TAKEN = 4
PAIRS = 250_000
AT_ONCE = 250


def texts(folder: Path) -> list[str]:
    """All different sentences that have Korean letters."""
    found = []
    for name in FILES:
        with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
            for row in map(json.loads, file):
                found += [row[column] for column in COLUMNS if column in row]
    return [text for text in dict.fromkeys(found) if any("가" <= letter <= "힣" for letter in text)]


def near_pairs(found: list[str]) -> Iterator[tuple[int, int]]:
    """Places of two texts each."""
    chance = np.random.default_rng(0)
    words = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 2), sublinear_tf=True, min_df=2)
    vectors = words.fit_transform(found)
    for start in range(0, len(found), AT_ONCE):
        products = (vectors[start : start + AT_ONCE] @ vectors.T).toarray()
        for place, near in enumerate(np.argpartition(-products, NEAREST, axis=1)[:, :NEAREST], start):
            others = [other for other in near if other != place]
            yield from ((place, int(other)) for other in chance.choice(others, TAKEN, replace=False))
            yield place, int(chance.integers(len(found)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    out = given.out or given.data / "korean"
    out.mkdir(parents=True, exist_ok=True)
    found = texts(given.data)
    pairs = np.array(list(near_pairs(found)))
    taken = pairs[np.random.default_rng(1).permutation(len(pairs))[:PAIRS]].tolist()
    with gzip.open(out / "near.jsonl.gz", "wt", encoding="utf-8") as file:
        for left, right in taken:
            if left != right:
                row = {"text_a": found[left], "text_b": found[right]}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(f"{out / 'near.jsonl.gz'}: pairs of {len(found):,} texts")


if __name__ == "__main__":
    main()
