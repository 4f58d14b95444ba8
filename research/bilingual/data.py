"""Make the dev sets and the training sets, as files of tokens.

python research/bilingual/data.py --data DATA --work WORK

The dev sets are made first. A training example that has a text of any dev set, or of STSb's test set, is
dropped; the number of dropped examples is printed for each set.
"""

import argparse
import random
from itertools import chain
from pathlib import Path

from backbone_sets import write_backbone_sets
from dev_sets import dev_sets
from exclusion import DevTexts
from scorer_sets import write_scorer_sets
from texts import DataFolder, TokenWriter
from tokenizers import Tokenizer
from training_sets import TrainingSets


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--work", type=Path, required=True, help="folder of intermediate files")
    parser.add_argument("--small", action="store_true", help="a dry run with few rows of each set")
    options = parser.parse_args()
    data = DataFolder(options.data, small=options.small)
    tokenizer = Tokenizer.from_file(str(options.work / "tokenizer" / "tokenizer.json"))
    sets = dev_sets(data)
    writer = TokenWriter(tokenizer)
    for dev_set in sets:
        dev_set.write(writer)
    writer.save(options.work / "dev.npz")
    excluded = [*chain.from_iterable(dev_set.texts() for dev_set in sets), *sts_texts(data)]
    for name, write, seed in (("backbone", write_backbone_sets, 11), ("scorers", write_scorer_sets, 12)):
        writer = TokenWriter(tokenizer)
        dev = DevTexts(excluded)
        write(TrainingSets(data, writer, dev, random.Random(seed)))
        writer.save(options.work / f"{name}.npz")
        print(dev.report(), flush=True)


def sts_texts(data: DataFolder) -> list[str]:
    """All dev and test texts of STSb and KorSTS, also those that a small run leaves out of the dev sets."""
    rows = (row for name in ("stsb/dev", "stsb/test", "kor_sts/dev") for row in data.rows(name, whole=True))
    return [row[side] for row in rows for side in ("text_a", "text_b")]


if __name__ == "__main__":
    main()
