"""What a Korean model begins with: sentences about the same thing, from public sets, as short dialogues.

python recipes/korean/data.py --data FOLDER

FOLDER holds klue_nli, kor_sts, ko_chatbot, ko_parakqc, ko_question_pair and xpersona_ko. Written to
FOLDER/korean (or --out) is turns.jsonl.gz; no pair of KorSTS's and KLUE's dev files is in it.
"""

import argparse
import gzip
import json
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

SAME = 10
"""So many questions of paraKQC in a row mean the same."""


def rows(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """The rows of a file."""
    with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def dialogues(folder: Path) -> Iterator[list[str]]:
    """Talks, questions that mean the same, and pairs of sentences about the same thing, whatever they say."""
    for row in rows(folder, "ko_chatbot/all"):
        yield [*row["context"], row["response"]]
    for row in rows(folder, "xpersona_ko/valid"):
        yield [*(turn.removeprefix("your persona: ") for turn in row["context"][-3:]), row["response"]]
    asked = [row["text"] for row in rows(folder, "ko_parakqc/all")]
    for place in range(0, len(asked), SAME):
        yield from map(list, pairwise(asked[place : place + SAME]))
    for name in ("klue_nli/train", "kor_sts/train", "ko_question_pair/train"):
        for row in rows(folder, name):
            yield [row["text_a"], row["text_b"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    out = given.out or given.data / "korean"
    out.mkdir(parents=True, exist_ok=True)
    found = list(dialogues(given.data))
    random.Random(0).shuffle(found)
    with gzip.open(out / "turns.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps({"turns": turns}, ensure_ascii=False) + "\n" for turns in found)
    print(f"{out / 'turns.jsonl.gz'}: {len(found):,} rows")


if __name__ == "__main__":
    main()
