"""Training pairs of the scorers, drawn from groups of sets."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from texts import Spans, TokenFile

GROUPS = {
    "dialogue": {
        "selfdialogue": 6,
        "ubuntu": 3,
        "sgd": 1,
        "topical_chat": 2,
        "synthetic_persona_chat": 2,
        "star": 0.7,
        "short_dialogues": 1.5,
        "qa_circa": 0.8,
    },
    "answers": {
        "medquad": 3,
        "docs_en_faq": 3,
        "dstc9": 2,
        "docs_en_headings": 4,
        "qa_boolq": 2,
        "qa_iirc": 1.5,
        "qa_qasc": 1.5,
        "qa_pubmedqa": 2,
        "qa_doqa": 1,
        "qa_peerread": 2.5,
        "qa_qasper": 1,
        "qa_tweetqa": 1,
        "qa_amazonfood": 0.5,
        "stackexchange_small": 1.5,
        "qa_smcalflow": 0.5,
        "qa_quartz": 0.5,
        "qa_piqa": 1,
        "qa_swag": 0.5,
        "trivia": 3,
    },
    "similar": {
        "banking77": 1,
        "clinc150": 1,
        "bitext_support": 1,
        "snli": 4,
        "cf_snli": 1,
        "wikisplit": 1,
        "argkp": 1,
    },
    "korean": {
        "stylekqc": 2,
        "parakqc": 1,
        "kluenli": 2,
        "docs_ko_faq": 1.5,
        "docs_ko_headings": 2,
        "ko_chatbot": 3,
        "qpair_ko": 1,
        "enko": 3,
    },
}
"""Sets by group, and how often each is drawn within its group."""

STEP = ("dialogue", "answers", "answers", "similar", "korean")
"""The groups of one training step; one set of each is drawn."""

SYMMETRIC = {
    "banking77",
    "clinc150",
    "bitext_support",
    "wikisplit",
    "stylekqc",
    "parakqc",
    "qpair_ko",
    "enko",
}
DIALOGUES = {
    "selfdialogue",
    "ubuntu",
    "sgd",
    "topical_chat",
    "synthetic_persona_chat",
    "star",
    "short_dialogues",
    "qa_doqa",
}
"""Sets whose left texts are truncated at the start."""


class Draw(NamedTuple):
    """Examples of one set."""

    group: str
    name: str
    chosen: NDArray[np.int64]
    swap: bool
    """Whether left and right change places."""


class StsDraw(NamedTuple):
    left: Spans
    right: Spans
    scores: NDArray[np.float32]


class PairSets:
    """The training pairs; rows with the same ``group``, or the same text in ``answer``, share right texts."""

    def __init__(self, path: Path, *, small: bool = False) -> None:
        self.file = TokenFile(path)
        columns = self.file.columns
        self.names = self.file.names("pair")
        few = slice(60 if small else None)
        self.left = {name: columns[f"pair/{name}/left"][few] for name in self.names}
        self.right = {name: columns[f"pair/{name}/right"][few] for name in self.names}
        self.group = {name: columns[f"pair/{name}/group"][few] for name in self.names}
        wrong = [name for name in self.names if f"pair/{name}/wrong" in columns]
        self.wrong = {name: columns[f"pair/{name}/wrong"][few] for name in wrong}
        self.answer = {name: self._text_numbers(self.right[name]) for name in self.names}

    def _text_numbers(self, spans: Spans) -> NDArray[np.int64]:
        """``[N]``: the same number for equal texts."""
        numbers: dict[bytes, int] = {}
        texts = (self.file.tokens[start:end].tobytes() for start, end in spans)
        return np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64)

    def draw(self, rng: np.random.Generator, group: str, size: int) -> Draw:
        """Up to ``size`` examples of a set of the group."""
        shares = np.array(list(GROUPS[group].values()), float)
        name = list(GROUPS[group])[rng.choice(len(shares), p=shares / shares.sum())]
        count = len(self.left[name])
        chosen = rng.choice(count, min(size, count), replace=False)
        return Draw(group, name, chosen, swap=name in SYMMETRIC and rng.random() < 0.5)

    def draw_sts(self, rng: np.random.Generator, size: int) -> StsDraw:
        """Pairs of STSb and KorSTS, a fifth of them across languages, sides swapped half of the time."""
        columns = self.file.columns
        chosen = rng.integers(0, len(columns["sts/score"]), size)
        language = rng.integers(0, 2, size)
        other = np.where(rng.random(size) < 0.8, language, 1 - language)
        left, right = (
            np.stack([columns[f"sts/en/{side}"], columns[f"sts/ko/{side}"]])[languages, chosen]
            for side, languages in (("left", language), ("right", other))
        )
        if rng.random() < 0.5:
            left, right = right, left
        return StsDraw(left, right, columns["sts/score"][chosen])

    def same(self, name: str, rows: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the right texts of ``others`` are right for ``rows`` too; both have the same shape."""
        group, answer = self.group[name], self.answer[name]
        same_group = (group[rows] == group[others]) & (group[rows] >= 0)
        return (answer[rows] == answer[others]) | same_group
