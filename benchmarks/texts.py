"""English texts of mixed lengths, from real data sets if TERCET_DATA is set, else from the sample data."""

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
    """The name of the source, and shuffled distinct texts of a few to a few hundred tokens."""
    folder = os.environ.get("TERCET_DATA")
    texts = list(dict.fromkeys(_from_sets(Path(folder)) if folder else _from_samples(seed)))
    random.Random(seed).shuffle(texts)
    return ("STSb, QQP, Self-Dialogue and SciFact" if folder else "tercet's sample data"), texts


def mixed_pairs(seed: int = 0, count: int = 600) -> tuple[str, list[tuple[str, str]]]:
    """The name of the source, and pairs of a short context and a candidate of any length, as in reranking."""
    source, texts = mixed_texts(seed)
    rng = random.Random(seed)
    contexts = sorted(texts, key=len)[: len(texts) // 2]  # questions and turns are short, candidates are not
    return source, [(rng.choice(contexts), rng.choice(texts)) for _ in range(count)]


def _from_sets(folder: Path) -> list[str]:
    texts: list[str] = []
    for name, column, count in (*SETS, DOCUMENTS):
        with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
            values = [json.loads(line)[column] for line, _ in zip(file, range(count), strict=False)]
        texts += [text for value in values for text in ([value] if isinstance(value, str) else value[:1])]
    return [text for text in texts if text.strip()]


def _from_samples(seed: int) -> list[str]:
    """The sample sentences, and one document in twenty texts, made of several sentences."""
    single = [text for question in questions("en") for text in (question.context, question.answer)]
    single += [text for pair in pairs("en") for text in (pair.context, pair.candidate)]
    single += [turn for dialogue in dialogues("en") for turn in dialogue.turns]
    rng = random.Random(seed)
    return single + [" ".join(rng.sample(single, rng.randint(8, 20))) for _ in range(len(single) // 19)]
