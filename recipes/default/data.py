"""The training data of the models that come with tercet, from public sets whose licences allow that.

python recipes/default/data.py --data FOLDER --out build/default

FOLDER holds self_dialogue, ubuntu_irc, stsb, argkp and nli/cf_snli as docs/training.md describes them. Written are

alike.jsonl.gz      pairs of texts from alike to unlike, with a score from 0 to 1: half the packaged
                    bi-encoder's cosine, half the share of the first text's words that the second has
replies.jsonl.gz    contexts with their answers, and for some also texts that look like answers and are none
"""

import gzip
import json
import math
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Turns = str | list[str]

FEWEST_WORDS = 3
NEIGHBOURS = 10
MOST_TURNS = 10
WORD = re.compile(r"\w+")


class Source:
    """The sets, and the chance by which parts of them are drawn."""

    def __init__(self, folder: Path, share: float, seed: int = 0) -> None:
        self.folder = folder
        self.share = share
        self.chance = random.Random(seed)

    def rows(self, name: str) -> Iterator[dict[str, Any]]:
        """The rows of a file."""
        with gzip.open(self.folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
            yield from map(json.loads, file)

    def some(self, items: Iterable[Any], count: int) -> list[Any]:
        """At most so many of them, fewer if only a share is wanted."""
        every = list(items)
        count = math.ceil(min(count, len(every)) * self.share)
        return self.chance.sample(every, count)
