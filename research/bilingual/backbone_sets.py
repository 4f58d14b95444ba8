"""What the backbone is trained on: parallel text, English text, Korean pairs and STS."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from texts import clean, held_out, sample
from training_sets import TrainingSets

DOCS_SIZES = {
    "visualstudio": 45_000,
    "powershell": 20_000,
    "tensorflow_nb": 6000,
    "tensorflow_md": 6000,
    "px4": 4000,
    "mdn": 20_000,
    "k8s": 9000,
}
"""Largest number of sentences per source of en_ko/docs; 20,000 of any other."""
DOCS_SIZE = 170_000

NO_LICENCE = "python"
"""The source of en_ko/docs whose repository states no licence: never trained on."""

QUESTIONS = {  # name: largest numbers of questions and of answers
    "medquad": (5000, 5000),
    "docs_en_faq": (3000, 3000),
    "docs_en_headings": (6000, 6000),
    "dstc9_faq": (4000, 4000),
    "qa_boolq": (4000, 4000),
    "qa_iirc": (3000, 3000),
    "qa_pubmedqa": (3000, 3000),
    "qa_qasc": (3000, 3000),
    "qa_peerread": (2500, 2500),
    "qa_qasper": (1000, 1500),
    "stackexchange_small": (3000, 3000),
    "qa_tweetqa": (2000, 2000),
    "qa_piqa": (2000, 2000),
    "open_trivia": (8000, 2000),
    "qa_circa": (2500, 2500),
    "qa_amazonfood": (1500, 2500),
}


def write_backbone_sets(sets: TrainingSets) -> None:
    """What the backbone is trained on."""
    data, dev, rng = sets.data, sets.dev, sets.rng
    general = defaultdict(list)
    for english, korean, kind in data.translations():
        held = kind != "korsts" and held_out(kind, english)
        if not held and dev.allows(f"en_ko/{kind}", english, korean):
            general["korsts" if kind == "korsts" else "general"].append((english, korean))
    docs = documentation(sets)
    sets.parallel("korsts", general["korsts"], 96)
    sets.parallel("general", general["general"], 96)
    sets.parallel("docs", docs, 72)
    pool = [pair for pair in general["general"] + general["korsts"] if len(pair[0]) > 15]
    pool += [pair for pair in docs[:30_000] if len(pair[0]) > 25]
    joined = [rng.sample(pool, rng.choice((2, 2, 3, 4))) for _ in range(500 if data.small else 20_000)]
    texts = [(" ".join(en for en, _ in some), " ".join(ko for _, ko in some)) for some in joined]
    sets.parallel("joined", texts, 120)
    sets.writer.columns["english/texts"] = sets.writer.spans(english_texts(sets), 96)
    sets.korean_pairs(headings=12_000)
    sets.sts()


def documentation(sets: TrainingSets) -> list[tuple[str, str]]:
    """Sentences of en_ko/docs that are mostly Hangul, without the source that has no licence."""
    found: dict[str, tuple[str, str]] = {}
    for row in sets.data.rows("en_ko/docs_train"):
        english, korean = clean(row["en"]), clean(row["ko"])
        usable = row["source"] != NO_LICENCE and 8 <= len(english) <= 300 and 4 <= len(korean) <= 200
        if not usable or english in found:
            continue
        hangul = sum("가" <= letter <= "힣" for letter in korean)
        mostly_hangul = hangul >= 0.35 * len(korean.replace(" ", ""))
        if mostly_hangul and sets.dev.allows("en_ko/docs", english, korean):
            found[english] = (korean, row["source"])
    by_source = defaultdict(list)
    for english, (korean, source) in found.items():
        by_source[source].append((english, korean))
    pairs = [
        pair
        for source, rows in by_source.items()
        for pair in sample(sets.rng, rows, DOCS_SIZES.get(source, 20_000))
    ]
    sets.rng.shuffle(pairs)
    return pairs[:DOCS_SIZE]


def english_texts(sets: TrainingSets) -> list[str]:
    """Varied English, on which the student must keep the teacher's vectors."""
    texts: list[str] = []
    for name, found, size in english_sources(sets):
        distinct = [text for text in dict.fromkeys(map(clean, found)) if len(text) > 8]
        allowed = [text for text in distinct if sets.dev.allows(f"english/{name}", text)]
        texts += sample(sets.rng, allowed, size)
    return texts


def english_sources(sets: TrainingSets) -> Iterator[tuple[str, Iterable[str], int]]:
    """Name, texts and largest number of texts."""
    data = sets.data
    yield "self_dialogue", turns(sets, "self_dialogue/train_dialogs"), 12_000
    yield "ubuntu", [row["response"] for row in data.rows("ubuntu_irc/train")], 6000
    yield "ubuntu", ["\n".join(row["context"]) for row in data.rows("ubuntu_irc/train")], 3000
    yield "sgd", turns(sets, "sgd/train"), 5000
    for name in ("topical_chat", "star", "synthetic_persona_chat", "casino", "craigslist_part"):
        yield name, turns(sets, f"{name}/train"), 2500
    for name, (questions, answers) in QUESTIONS.items():
        pairs = list(sets.answers(name))
        yield name, [pair.left for pair in pairs], questions
        yield name, [pair.right for pair in pairs], answers
    for name, size in (("banking77", 3000), ("clinc150", 4000), ("bitext_support", 2500)):
        yield name, [row["text"] for row in data.rows(f"{name}/train")], size
    for name, size in (("snli_part/pairs", 8000), ("stsb/train", 10_500), ("argkp/all", 4000)):
        yield name, [row[side] for row in data.rows(name) for side in ("text_a", "text_b")], size
    yield "wikisplit", [row["text_a"] for row in data.rows("wikisplit/pairs")], 5000


def turns(sets: TrainingSets, name: str) -> list[str]:
    return [turn for dialogue in sets.data.dialogues(name) for turn in dialogue]
