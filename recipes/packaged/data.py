"""Create the training data of the packaged models from public data sets with permissive licences.

python recipes/packaged/data.py --data FOLDER

FOLDER contains self_dialogue, ubuntu_irc, stsb, argkp and nli/cf_snli, as docs/training.md describes them.
The script writes two files to FOLDER/packaged (or --out):

replies.jsonl.gz        contexts with an answer and 15 negatives from the same data set: replies to dialogues,
                        texts with their nearest neighbours, and words with the dialogue they come from
replies_dev.jsonl.gz    2,000 more contexts as dev data
"""

import argparse
import gzip
import json
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tercet
from tercet.index.all_pairs import nearest
from tercet.similar import text_vectors

MIN_WORDS = 3
MAX_TURNS = 10
DEV_ROWS = 2000
NEGATIVES = 15
MAX_KNOWN_NEGATIVES = 4
DOCUMENT_TURNS = 12
MIN_QUERY_WORDS = 6
KEPT_WORDS = 0.7
PARAPHRASE_SCORE = 4
"""STSb pairs with at least this score count as paraphrases."""


class Reply(NamedTuple):
    """A context, its answer, and texts that are known to be wrong."""

    context: str | list[str]
    answer: str
    wrong: Sequence[str] = ()


class DataSets:
    """The public data sets, and the random generator that samples them."""

    def __init__(self, folder: Path, *, model: str, share: float) -> None:
        self.folder = folder
        self.share = share
        self.rng = random.Random(0)
        self.scorer = tercet.load(model)
        self.dialogues = [row["turns"] for row in self.rows("self_dialogue/train_dialogs")]
        self.ubuntu = [(row["context"], row["response"]) for row in self.rows("ubuntu_irc/train")]

    def rows(self, name: str) -> Iterator[dict[str, Any]]:
        """The rows of a file."""
        with gzip.open(self.folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
            yield from map(json.loads, file)

    def sample(self, items: Iterable[Any], count: int | None = None) -> list[Any]:
        """A random share of at most ``count`` items, in their order."""
        every = list(items)
        limit = len(every) if count is None else min(count, len(every))
        positions = sorted(self.rng.sample(range(len(every)), math.ceil(limit * self.share)))
        return [every[position] for position in positions]

    def in_random_order(self, left: str, right: str) -> tuple[str, str]:
        """The two texts in random order."""
        return (left, right) if self.rng.random() < 0.5 else (right, left)


def replies(sets: DataSets) -> Iterator[list[Reply]]:
    """One list per data set: replies to dialogues, paraphrases, documents of queries, and entailments."""
    yield [Reply(*example) for example in _turns(sets, 120_000)]
    yield [Reply(*example) for example in sets.sample(sets.ubuntu)]
    paraphrases = [row for row in sets.rows("stsb/train") if row["score"] >= PARAPHRASE_SCORE]
    yield [Reply(*sets.in_random_order(row["text_a"], row["text_b"])) for row in sets.sample(paraphrases)]
    spoken = sets.sample((turn for turns in sets.dialogues for turn in turns), 40_000)
    written = [row[text] for row in sets.rows("nli/cf_snli_train") for text in ("text_a", "text_b")]
    yield [Reply(*pair) for texts in (spoken, sets.sample(written)) for pair in _nearest(sets, texts)]
    yield _documents(sets, 12_000)
    for name, right_label in (("argkp/all", 1), ("nli/cf_snli_train", "entailment")):
        partners: dict[str, tuple[list[str], list[str]]] = {}
        for row in sets.sample(sets.rows(name)):
            partners.setdefault(row["text_a"], ([], []))[row["label"] != right_label].append(row["text_b"])
        yield [Reply(text, answer, wrong) for text, (right, wrong) in partners.items() for answer in right]


def with_negatives(sets: DataSets, rows: list[Reply]) -> Iterator[dict[str, Any]]:
    """Each context with 15 negatives: a few known wrong texts, then answers of other contexts."""
    right: dict[str, set[str]] = {}
    for row in rows:
        right.setdefault(str(row.context), {str(row.context)}).add(row.answer)
    answers = sorted({row.answer for row in rows})
    for row in rows:
        wrong = sets.rng.sample(row.wrong, min(MAX_KNOWN_NEGATIVES, len(row.wrong)))
        others = sets.rng.sample(answers, min(2 * NEGATIVES, len(answers)))
        negatives = [text for text in dict.fromkeys((*wrong, *others)) if text not in right[str(row.context)]]
        if len(negatives) >= NEGATIVES:
            yield {"context": row.context, "answer": row.answer, "negatives": negatives[:NEGATIVES]}


def _turns(sets: DataSets, count: int) -> list[tuple[list[str], str]]:
    """Turns as answers, each with the one to ten turns before it."""
    examples = [
        (turns[max(0, position - sets.rng.randint(1, MAX_TURNS)) : position], turns[position])
        for turns in sets.dialogues
        for position in range(1, len(turns))
        if len(turns[position].split()) > 1
    ]
    return sets.sample(examples, count)


def _nearest(sets: DataSets, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each text with its nearest neighbour."""
    distinct = list(dict.fromkeys(text for text in texts if len(text.split()) >= MIN_WORDS))
    neighbours = nearest(text_vectors(sets.scorer, distinct), 2)
    for position, text in enumerate(distinct):
        yield text, distinct[next(other for other in neighbours[position].tolist() if other != position)]


def _documents(sets: DataSets, count: int) -> list[Reply]:
    """Words of a turn as the query, the dialogue around it as the document, similar dialogues as negatives.

    Half of the documents do not contain the turn itself, so that the model must match the topic instead of
    the words.
    """
    found: list[tuple[str, str]] = []
    for turns in sets.sample(sets.dialogues, count):
        position = sets.rng.randrange(len(turns))
        words = [word for word in turns[position].split() if sets.rng.random() < KEPT_WORDS]
        first = max(0, position - sets.rng.randrange(DOCUMENT_TURNS))
        around = list(turns[first : first + DOCUMENT_TURNS])
        if sets.rng.random() < 0.5:
            del around[position - first]
        if len(words) >= MIN_QUERY_WORDS and around:
            found.append((" ".join(words), " ".join(around)))
    texts = [text for _, text in found]
    neighbours = nearest(text_vectors(sets.scorer, texts), min(NEGATIVES + 1, len(texts)))
    return [
        Reply(words, text, [texts[other] for other in neighbours[position].tolist() if other != position])
        for position, (words, text) in enumerate(found)
    ]


def split(rows: list[Any], count: int) -> tuple[list[Any], list[Any]]:
    """``count`` random rows as dev data, and the others as training data."""
    random.Random(1).shuffle(rows)
    return rows[:count], rows[count:]


def choices(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows for the reader ``choices``, with the answer at a random position among the negatives."""
    rng = random.Random(2)
    for row in rows:
        wrong = row["negatives"]
        label = rng.randint(0, len(wrong))
        yield {
            "context": row["context"],
            "candidates": [*wrong[:label], row["answer"], *wrong[label:]],
            "label": label,
        }


def write(files: dict[str, list[dict[str, Any]]], folder: Path) -> None:
    """Write the rows of each file."""
    for name, rows in files.items():
        with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8", compresslevel=3) as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        print(f"{folder / name}.jsonl.gz: {len(rows):,} rows")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--out", type=Path, help="output folder. Default: DATA/packaged")
    parser.add_argument("--model", default="bi", help="bi-encoder that finds nearest neighbours")
    parser.add_argument("--share", type=float, default=1.0, help="share of the data to use")
    options = parser.parse_args()
    out = options.out or options.data / "packaged"
    out.mkdir(parents=True, exist_ok=True)
    sets = DataSets(options.data, model=options.model, share=options.share)
    groups = list(replies(sets))
    share = min(DEV_ROWS / sum(map(len, groups)), 0.1)
    parts = [split(group, round(share * len(group))) for group in groups]
    dev, train = (
        [row for group in kind for row in with_negatives(sets, group)] for kind in zip(*parts, strict=True)
    )
    random.Random(1).shuffle(train)
    write({"replies_dev": list(choices(dev)), "replies": train}, out)


if __name__ == "__main__":
    main()
