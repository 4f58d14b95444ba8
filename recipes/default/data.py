"""The training data of models for general use, from public sets whose licences let such models be passed on.

python recipes/default/data.py --data FOLDER

FOLDER holds self_dialogue, ubuntu_irc, stsb, argkp and nli/cf_snli as docs/training.md describes them.
Written to FOLDER/default (or --out) are

replies.jsonl.gz        contexts with answers, texts with the nearest one, words with the dialogue they are
                        from; and 15 others of the same set each
replies_dev.jsonl.gz    2,000 more, to look at
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
MOST_TURNS = 10
HELD_OUT = 2000
OTHERS = 15
FEW = 4
TURNS_OF_A_DOCUMENT = 12
FEWEST_WORDS_ASKED = 6
WORDS_KEPT = 0.7
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

    def either_way(self, left: str, right: str) -> tuple[str, str]:
        """Two texts in one order or the other."""
        return (left, right) if self.chance.random() < 0.5 else (right, left)


def replies(sets: Sets) -> Iterator[list[Reply]]:
    """Answers to dialogues, paraphrases, dialogues that words are from, and what follows, set by set."""
    yield [Reply(*talk) for talk in _turns(sets, 120_000)]
    yield [Reply(*talk) for talk in sets.some(sets.ubuntu)]
    same = [row for row in sets.rows("stsb/train") if row["score"] >= SAME]
    yield [Reply(*sets.either_way(row["text_a"], row["text_b"])) for row in sets.some(same)]
    said = sets.some((turn for turns in sets.dialogues for turn in turns), 40_000)
    written = [row[text] for row in sets.rows("nli/cf_snli_train") for text in ("text_a", "text_b")]
    yield [Reply(*pair) for texts in (said, sets.some(written)) for pair in _nearest(sets, texts)]
    yield _documents(sets, 12_000)
    for name, right_label in (("argkp/all", 1), ("nli/cf_snli_train", "entailment")):
        follows: dict[str, tuple[list[str], list[str]]] = {}
        for row in sets.some(sets.rows(name)):
            follows.setdefault(row["text_a"], ([], []))[row["label"] != right_label].append(row["text_b"])
        yield [Reply(text, answer, wrong) for text, (right, wrong) in follows.items() for answer in right]


def among_others(sets: Sets, rows: list[Reply]) -> Iterator[dict[str, Any]]:
    """Each answer with a few of the texts that are known to be none, and answers of others, 15 in all."""
    right: dict[str, set[str]] = {}
    for row in rows:
        right.setdefault(str(row.context), {str(row.context)}).add(row.answer)
    answers = sorted({row.answer for row in rows})
    for row in rows:
        few = sets.chance.sample(row.wrong, min(FEW, len(row.wrong)))
        others = sets.chance.sample(answers, min(2 * OTHERS, len(answers)))
        found = [text for text in dict.fromkeys((*few, *others)) if text not in right[str(row.context)]]
        if len(found) >= OTHERS:
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


def _nearest(sets: Sets, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each text with the one that is nearest to it."""
    different = list(dict.fromkeys(text for text in texts if len(text.split()) >= FEWEST_WORDS))
    near = nearest(text_vectors(sets.scorer, different), 2)
    for place, text in enumerate(different):
        yield text, different[next(other for other in near[place].tolist() if other != place)]


def _documents(sets: Sets, count: int) -> list[Reply]:
    """Some words of a turn, the dialogue around it as one long text, and dialogues that are near to that.

    Of every other dialogue the turn itself is taken out: then only what it is about can lead there.
    """
    found: list[tuple[str, str]] = []
    for turns in sets.some(sets.dialogues, count):
        place = sets.chance.randrange(len(turns))
        words = [word for word in turns[place].split() if sets.chance.random() < WORDS_KEPT]
        first = max(0, place - sets.chance.randrange(TURNS_OF_A_DOCUMENT))
        around = list(turns[first : first + TURNS_OF_A_DOCUMENT])
        if sets.chance.random() < 0.5:
            del around[place - first]
        if len(words) >= FEWEST_WORDS_ASKED and around:
            found.append((" ".join(words), " ".join(around)))
    texts = [text for _, text in found]
    near = nearest(text_vectors(sets.scorer, texts), min(OTHERS + 1, len(texts)))
    return [
        Reply(words, text, [texts[other] for other in near[place].tolist() if other != place])
        for place, (words, text) in enumerate(found)
    ]


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
