"""Mixed-length English to measure with: real sets where a data folder is given, the sample data otherwise."""

import gzip
import json
import os
import random
from pathlib import Path

from tercet.data.sample import dialogues, pairs, questions

SETS = (
    ("stsb/train", "text_a", 800),
    ("qqp/dev", "text_a", 600),
    ("self_dialogue/train_dialogs", "turns", 800),
)
DOCUMENTS = ("beir_scifact/corpus", "text", 100)


def mixed_texts(seed: int = 0) -> tuple[str, list[str]]:
    """Where they come from, and distinct texts of a few to a few hundred tokens, shuffled."""
    folder = os.environ.get("TERCET_DATA")
    texts = list(dict.fromkeys(_from_sets(Path(folder)) if folder else _from_samples(seed)))
    random.Random(seed).shuffle(texts)
    return ("STSb, QQP, Self-Dialogue and SciFact" if folder else "tercet's sample data"), texts


def _from_sets(folder: Path) -> list[str]:
    texts: list[str] = []
    for name, column, count in (*SETS, DOCUMENTS):
        with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
            values = [json.loads(line)[column] for line, _ in zip(file, range(count), strict=False)]
        texts += [text for value in values for text in ([value] if isinstance(value, str) else value[:1])]
    return [text for text in texts if text.strip()]


def _from_samples(seed: int) -> list[str]:
    """The sample sentences, and as documents some long runs of them; one text in twenty is a document."""
    single = [text for q in questions("en") for text in (q.context, q.answer)]
    single += [text for p in pairs("en") for text in (p.context, p.candidate)]
    single += [turn for talk in dialogues("en") for turn in talk.turns]
    chance = random.Random(seed)
    return single + [" ".join(chance.sample(single, chance.randint(8, 20))) for _ in range(len(single) // 19)]


def mixed_pairs(seed: int = 0, count: int = 600) -> tuple[str, list[tuple[str, str]]]:
    """Where they come from, and contexts with candidates of all lengths, as a reranker meets them."""
    source, texts = mixed_texts(seed)
    chance = random.Random(seed)
    contexts = sorted(texts, key=len)[: len(texts) // 2]  # questions and turns are short, candidates are not
    return source, [(chance.choice(contexts), chance.choice(texts)) for _ in range(count)]
