"""Writes training pairs, dialogues, parallel text and STS pairs, without the texts of the dev sets."""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from exclusion import DevTexts
from texts import DataFolder, TokenWriter, clean, held_out, sample

WITH_WRONG_ANSWERS = {"qa_piqa", "qa_swag", "open_trivia"}
HELD_OUT_BY = {"medquad": "focus", "docs_en_faq": "title", "docs_ko_faq": "title"}
"""The column that groups the rows of a set; a group is held out as a whole."""


class Pair(NamedTuple):
    """A positive pair, perhaps with a wrong candidate; rows of one group are positives of each other."""

    left: str
    right: str
    wrong: str | None = None
    group: int | None = None


class TrainingSets:
    """Writes training sets without the texts of the dev sets."""

    def __init__(self, data: DataFolder, writer: TokenWriter, dev: DevTexts, rng: random.Random) -> None:
        self.data, self.writer, self.dev, self.rng = data, writer, dev, rng

    def pairs(
        self, name: str, pairs: Iterable[Pair], *, size: int | None = None, right: int = 112, left: int = 96
    ) -> None:
        """Write at most ``size`` pairs; ``left`` and ``right`` are the largest numbers of tokens."""
        kept = [pair for pair in pairs if self.dev.allows(name, *filter(None, pair[:3]))]
        kept = sample(self.rng, kept, size) if size else kept
        lefts = [pair.left for pair in kept]
        columns, prefix = self.writer.columns, f"pair/{name}"
        columns[f"{prefix}/left"] = self.writer.spans(lefts, left, keep_end=name == "ubuntu")
        columns[f"{prefix}/right"] = self.writer.spans([pair.right for pair in kept], right)
        numbers: dict[str, int] = {}
        own = [numbers.setdefault(text, len(numbers)) for text in lefts]
        groups = [
            number if pair.group is None else pair.group for pair, number in zip(kept, own, strict=True)
        ]
        columns[f"{prefix}/group"] = np.array(groups, np.int32)
        if any(pair.wrong for pair in kept):
            wrong = self.writer.spans([pair.wrong or "." for pair in kept], right)
            wrong[[not pair.wrong for pair in kept]] = -1
            columns[f"{prefix}/wrong"] = wrong

    def dialogues(self, name: str, dialogues: Sequence[Sequence[str]], *, replies: int) -> None:
        """Write up to ``replies`` replies per dialogue, each with 1 to 10 turns before it.

        The turns of a dialogue lie side by side, so a context is one span.
        """
        left, right = [], []
        ids = self.writer.tokenize([turn for turns in dialogues for turn in turns])
        for turns in dialogues:
            ends = [self.writer.length]
            ends += [self.writer.append(next(ids)[:80])[1] for _ in turns]
            places = [place for place in range(1, len(turns)) if ends[place + 1] - ends[place] >= 2]
            for place in sorted(sample(self.rng, places, replies)):
                first = max(0, place - self.rng.randint(1, 10))
                context = "\n".join(turns[first:place])
                if ends[place] > ends[first] and self.dev.allows(name, context, turns[place]):
                    left.append((ends[first], ends[place]))
                    right.append((ends[place], ends[place + 1]))
        self.writer.columns[f"pair/{name}/left"] = np.array(left, np.int32).reshape(-1, 2)
        self.writer.columns[f"pair/{name}/right"] = np.array(right, np.int32).reshape(-1, 2)
        self.writer.columns[f"pair/{name}/group"] = np.full(len(left), -1, np.int32)

    def parallel(self, name: str, pairs: Sequence[tuple[str, str]], max_tokens: int) -> None:
        """Write pairs of English and Korean."""
        columns = self.writer.columns
        columns[f"parallel/{name}/en"] = self.writer.spans([en for en, _ in pairs], max_tokens)
        columns[f"parallel/{name}/ko"] = self.writer.spans([ko for _, ko in pairs], max_tokens)

    def sts(self) -> None:
        """Write STSb and KorSTS, whose rows are translations of each other."""
        rows = list(zip(self.data.rows("stsb/train"), self.data.rows("kor_sts/train"), strict=True))
        if any(english["score"] != korean["score"] for english, korean in rows):
            raise ValueError("stsb/train and kor_sts/train must have the same scores row by row")
        texts = [[clean(row[side]) for row in pair for side in ("text_a", "text_b")] for pair in rows]
        kept = [number for number, four in enumerate(texts) if self.dev.allows("sts", *four)]
        for column, name in enumerate(("en/left", "en/right", "ko/left", "ko/right")):
            spans = self.writer.spans([texts[number][column] for number in kept], 96)
            self.writer.columns[f"sts/{name}"] = spans
        scores = [rows[number][0]["score"] for number in kept]
        self.writer.columns["sts/score"] = np.array(scores, np.float32)

    def korean_pairs(self, headings: int) -> None:
        """Write Korean paraphrases, entailments, questions with answers, and chats."""
        self.pairs("stylekqc", self._paraphrases("stylekqc", self.data.style_groups()), right=128)
        self.pairs("parakqc", self._paraphrases("parakqc", self.data.paraphrase_groups()), right=128)
        self.pairs("kluenli", entailments(self.data.rows("klue_nli/train")), right=128)
        self.pairs("docs_ko_faq", self.answers("docs_ko_faq"), right=96)
        found = [
            Pair(q, a)
            for q, a, _ in self.data.answers("docs_ko_headings/train")
            if not held_out("headings_ko", q)
        ]
        self.pairs("docs_ko_headings", found, size=headings, right=80)
        chats = [(row["context"][0], row["response"]) for row in self.data.rows("ko_chatbot/all")]
        chats = [chat for chat in chats if not held_out("ko_chatbot", chat[0])]
        chats += [tuple(row["turns"][:2]) for row in self.data.rows("chatterbot_ko/train")]
        self.pairs("ko_chatbot", [Pair(*chat) for chat in chats], right=128)
        same = [
            Pair(row["text_a"], row["text_b"])
            for row in self.data.rows("ko_question_pair/train")
            if row["label"] == 1 and not held_out("qpair_ko", row["text_a"])
        ]
        self.pairs("qpair_ko", same, right=128)

    def answers(self, name: str) -> Iterator[Pair]:
        """Questions and answers that are not held out."""
        for question, answer, row in self.data.answers(f"{name}/train"):
            if name in HELD_OUT_BY and held_out(name, row[HELD_OUT_BY[name]]):
                continue
            if name == "open_trivia" and held_out("trivia", question):
                continue
            wrong = (row.get("wrong") or [None])[0] if name in WITH_WRONG_ANSWERS else None
            yield Pair(question, answer, wrong)

    def _paraphrases(self, name: str, groups: dict[Any, list[str]]) -> Iterator[Pair]:
        """Two random pairings of the sentences of each group."""
        for number, (key, group) in enumerate(groups.items()):
            texts = [] if held_out(name, key) else list(dict.fromkeys(group))
            for _ in range(2):
                self.rng.shuffle(texts)
                for left, right in zip(texts[::2], texts[1::2], strict=False):
                    yield Pair(left, right, group=number)


def entailments(rows: Iterable[dict[str, Any]]) -> Iterator[Pair]:
    """Premise and entailed hypothesis, with a contradiction of the premise where there is one."""
    premises: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        premises[row["text_a"]][row["label"]].append(row["text_b"])
    for premise, found in premises.items():
        for hypothesis in found["entailment"]:
            yield Pair(premise, hypothesis, next(iter(found["contradiction"]), None))
