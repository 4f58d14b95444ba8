"""Create the pre-training data of a Korean model: short dialogues from public data sets.

python recipes/korean/data.py --data FOLDER

FOLDER contains klue_nli, kor_sts, ko_chatbot, ko_parakqc, ko_question_pair and xpersona_ko. The script writes
turns.jsonl.gz to FOLDER/korean (or --out). It does not read the dev files of KorSTS and KLUE.
"""

import argparse
import gzip
import json
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

PARAPHRASES = 10
"""In paraKQC, each group of this many consecutive questions has one meaning."""


def rows(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """The rows of a file."""
    with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def dialogues(folder: Path) -> Iterator[list[str]]:
    """Dialogues, paraphrased questions, and pairs of sentences about the same topic, with any label."""
    for row in rows(folder, "ko_chatbot/all"):
        yield [*row["context"], row["response"]]
    for row in rows(folder, "xpersona_ko/valid"):
        yield [*(turn.removeprefix("your persona: ") for turn in row["context"][-3:]), row["response"]]
    questions = [row["text"] for row in rows(folder, "ko_parakqc/all")]
    for start in range(0, len(questions), PARAPHRASES):
        yield from map(list, pairwise(questions[start : start + PARAPHRASES]))
    for name in ("klue_nli/train", "kor_sts/train", "ko_question_pair/train"):
        for row in rows(folder, name):
            yield [row["text_a"], row["text_b"]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--out", type=Path, help="output folder. Default: DATA/korean")
    options = parser.parse_args()
    out = options.out or options.data / "korean"
    out.mkdir(parents=True, exist_ok=True)
    examples = list(dialogues(options.data))
    random.Random(0).shuffle(examples)
    with gzip.open(out / "turns.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps({"turns": turns}, ensure_ascii=False) + "\n" for turns in examples)
    print(f"{out / 'turns.jsonl.gz'}: {len(examples):,} rows")


if __name__ == "__main__":
    main()
