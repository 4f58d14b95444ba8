"""The training data of models for general use, from public sets whose licences let such models be passed on.

python recipes/default/data.py --data FOLDER

FOLDER holds self_dialogue, ubuntu_irc, stsb, argkp and nli/cf_snli as docs/training.md describes them.
Written to FOLDER/default (or --out) are

alike.jsonl.gz      pairs of texts from alike to unlike, short and long, for a bi-encoder to score
replies.jsonl.gz    contexts with answers, texts with the nearest one, and 15 others of the same set each

and 2,000 more of each to look at, alike_dev and replies_dev.
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

FEWEST_WORDS = 3
NEIGHBOURS = 10
MOST_TURNS = 10
HELD_OUT = 2000
OTHERS = 15
FEW = 4
SAME = 4
"""From this score of STSb on, two texts say the same."""


class Reply(NamedTuple):
    """A context, its answer, and texts that are known to be none."""

    context: str | list[str]
    answer: str
    wrong: Sequence[str] = ()


class Sets:
    """The public sets, and the chance by which parts of them are drawn."""

    def __init__(self, folder: Path, *, model: str, share: float) -> None:
        self.folder = folder
        self.share = share
        self.chance = random.Random(0)
        self.scorer = tercet.load(model)
        self.dialogues = [row["turns"] for row in self.rows("self_dialogue/train_dialogs")]
        self.ubuntu = [(row["context"], row["response"]) for row in self.rows("ubuntu_irc/train")]

    def rows(self, name: str) -> Iterator[dict[str, Any]]:
        """The rows of a file."""
        with gzip.open(self.folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
            yield from map(json.loads, file)

    def some(self, items: Iterable[Any], count: int | None = None) -> list[Any]:
        """At most so many of them, and of these the share that is wanted, in their order."""
        every = list(items)
        most = len(every) if count is None else min(count, len(every))
        places = sorted(self.chance.sample(range(len(every)), math.ceil(most * self.share)))
        return [every[place] for place in places]


def alike(sets: Sets) -> Iterator[dict[str, Any]]:
    """Neighbours of many ranks, pairs that people made, stretches of text with a sentence, replies."""
    said = (turn for turns in sets.dialogues for turn in turns)
    yield from _neighbours(sets, sets.some(said, 50_000), 2)
    yield from _neighbours(sets, sets.some((answer for _, answer in sets.ubuntu), 20_000), 2)
    for name, count in (("stsb/train", 4), ("nli/cf_snli_train", 3), ("argkp/all", 3)):
        pairs = [(row["text_a"], row["text_b"]) for row in sets.some(sets.rows(name))]
        texts = [text for pair in pairs for text in pair]
        yield from (_either_way(sets, *pair) for pair in pairs)
        yield from _neighbours(sets, texts, count)
        yield from _stretches(sets, texts)
    yield from _talks(sets)
    talks = _turns(sets, 15_000) + sets.some(sets.ubuntu, 15_000)
    for context, answer in talks:
        yield {"context": context, "answer": answer}
        yield {"context": context, "answer": sets.chance.choice(talks)[1]}


def replies(sets: Sets) -> Iterator[list[Reply]]:
    """Answers to dialogues, paraphrases, and what follows from arguments and premises, set by set."""
    yield [Reply(*talk) for talk in _turns(sets, 120_000)]
    yield [Reply(*talk) for talk in sets.some(sets.ubuntu)]
    same = [row for row in sets.rows("stsb/train") if row["score"] >= SAME]
    pairs = [_either_way(sets, row["text_a"], row["text_b"]) for row in sets.some(same)]
    yield [Reply(pair["context"], pair["answer"]) for pair in pairs]
    said = sets.some((turn for turns in sets.dialogues for turn in turns), 40_000)
    written = [row[text] for row in sets.rows("nli/cf_snli_train") for text in ("text_a", "text_b")]
    yield [Reply(*pair) for texts in (said, sets.some(written)) for pair in _nearest(sets, texts)]
    for name, right_label in (("argkp/all", 1), ("nli/cf_snli_train", "entailment")):
        follows: dict[str, tuple[list[str], list[str]]] = {}
        for row in sets.some(sets.rows(name)):
            follows.setdefault(row["text_a"], ([], []))[row["label"] != right_label].append(row["text_b"])
        yield [Reply(text, answer, wrong) for text, (right, wrong) in follows.items() for answer in right]


def among_others(sets: Sets, rows: list[Reply]) -> Iterator[dict[str, Any]]:
    """Each answer with a few of the texts that are known to be none, and answers of others."""
    right: dict[str, set[str]] = {}
    for row in rows:
        right.setdefault(str(row.context), {str(row.context)}).add(row.answer)
    answers = sorted({row.answer for row in rows})
    for row in rows:
        few = sets.chance.sample(row.wrong, min(FEW, len(row.wrong)))
        others = sets.chance.sample(answers, min(2 * OTHERS, len(answers)))
        found = [text for text in dict.fromkeys((*few, *others)) if text not in right[str(row.context)]]
        yield {"context": row.context, "answer": row.answer, "negatives": found[:OTHERS]}


def _turns(sets: Sets, count: int) -> list[tuple[list[str], str]]:
    """Answers with one to ten turns before them."""
    found = [
        (turns[max(0, place - sets.chance.randint(1, MOST_TURNS)) : place], turns[place])
        for turns in sets.dialogues
        for place in range(1, len(turns))
        if len(turns[place].split()) > 1
    ]
    return sets.some(found, count)


def _neighbours(sets: Sets, texts: Iterable[str], count: int) -> Iterator[dict[str, Any]]:
    """Each text with some of its nearest ten, and with one by chance."""
    different = list(dict.fromkeys(text for text in texts if len(text.split()) >= FEWEST_WORDS))
    near = nearest(text_vectors(sets.scorer, different), min(NEIGHBOURS + 1, len(different)))
    for place, text in enumerate(different):
        others = [other for other in near[place].tolist() if other != place]
        for other in sets.chance.sample(others, min(count, len(others))):
            yield _either_way(sets, text, different[other])
        yield _either_way(sets, text, sets.chance.choice(different))


def _nearest(sets: Sets, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each text with the one that is nearest to it."""
    different = list(dict.fromkeys(text for text in texts if len(text.split()) >= FEWEST_WORDS))
    near = nearest(text_vectors(sets.scorer, different), 2)
    for place, text in enumerate(different):
        yield text, different[next(other for other in near[place].tolist() if other != place)]


def _stretches(sets: Sets, texts: list[str]) -> Iterator[dict[str, Any]]:
    """A sentence with a text of several: its neighbours in the file, or others by chance."""
    for place in range(0, len(texts) - 12, 4):
        length = sets.chance.randint(4, 10)
        text = " ".join(texts[place + 1 : place + 1 + length])
        yield {"context": texts[place], "answer": text}
        yield {"context": sets.chance.choice(texts), "answer": text}


def _talks(sets: Sets) -> Iterator[dict[str, Any]]:
    """A stretch of a dialogue with turns of the same one, and of another."""
    for turns in sets.some((turns for turns in sets.dialogues if len(turns) >= 10), 25_000):
        length = sets.chance.randint(4, 8)
        start = sets.chance.randint(0, len(turns) - length)
        text = " ".join(turns[start : start + length])
        for turn in sets.chance.sample(turns[:start] + turns[start + length :], 2):
            yield _either_way(sets, turn, text)
        yield _either_way(sets, sets.chance.choice(sets.chance.choice(sets.dialogues)), text)


def _either_way(sets: Sets, left: str, right: str) -> dict[str, Any]:
    first, second = (left, right) if sets.chance.random() < 0.5 else (right, left)
    return {"context": first, "answer": second}


def held_out(rows: list[Any], count: int) -> tuple[list[Any], list[Any]]:
    """The rows in a random order, some of them apart."""
    random.Random(1).shuffle(rows)
    return rows[:count], rows[count:]


def choices(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows with the answer anywhere among the texts that are none."""
    chance = random.Random(2)
    for row in rows:
        wrong = row["negatives"]
        label = chance.randint(0, len(wrong))
        yield {
            "context": row["context"],
            "candidates": [*wrong[:label], row["answer"], *wrong[label:]],
            "label": label,
        }


def write(files: dict[str, list[dict[str, Any]]], folder: Path) -> None:
    """Rows by the names of their files."""
    for file, part in files.items():
        with gzip.open(folder / f"{file}.jsonl.gz", "wt", encoding="utf-8", compresslevel=3) as opened:
            opened.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in part)
        print(f"{folder / file}.jsonl.gz: {len(part):,} rows")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--model", default="bi", help="who says which texts are near")
    parser.add_argument("--share", type=float, default=1.0, help="of everything, for a trial")
    given = parser.parse_args()
    out = given.out or given.data / "default"
    out.mkdir(parents=True, exist_ok=True)
    sets = Sets(given.data, model=given.model, share=given.share)
    pairs = list(alike(sets))
    looked_at, learnt = held_out(pairs, min(HELD_OUT, len(pairs) // 10))
    write({"alike_dev": looked_at, "alike": learnt}, out)
    groups = list(replies(sets))
    share = min(HELD_OUT / sum(map(len, groups)), 0.1)
    parts = [held_out(group, round(share * len(group))) for group in groups]
    looked_at, learnt = (
        [row for each in kind for row in among_others(sets, each)] for kind in zip(*parts, strict=True)
    )
    random.Random(1).shuffle(learnt)
    write({"replies_dev": list(choices(looked_at)), "replies": learnt}, out)


if __name__ == "__main__":
    main()
