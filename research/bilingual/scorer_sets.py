"""What the scorers are trained on: dialogues, answers, paraphrases, translations and STS."""

from collections import defaultdict

from texts import bucket, held_out, sample
from training_sets import Pair, TrainingSets, entailments

LONG_DIALOGUES = {  # name: largest number of dialogues, replies per dialogue
    "sgd": (4000, 6),
    "topical_chat": (2063, 14),
    "synthetic_persona_chat": (1868, 14),
    "star": (2500, 5),
}

SHORT_DIALOGUES = {
    "casino": 981,
    "craigslist_part": 1142,
    "multiwoz_part": 500,
    "ccpe": 468,
    "taskmaster4": 1500,
    "airdialogue_part": 500,
    "woz": 300,
    "camrest": 300,
    "mts_dialog": 800,
    "chatterbot_en": 866,
}

ANSWERS = {  # name: largest number of pairs, largest number of tokens of an answer
    "medquad": (None, 112),
    "docs_en_faq": (None, 112),
    "docs_en_headings": (22_000, 80),
    "qa_boolq": (None, 96),
    "qa_iirc": (None, 96),
    "qa_qasc": (None, 96),
    "qa_pubmedqa": (None, 96),
    "qa_circa": (None, 96),
    "qa_doqa": (None, 96),
    "qa_peerread": (None, 96),
    "qa_qasper": (None, 96),
    "qa_tweetqa": (None, 96),
    "qa_amazonfood": (3000, 96),
    "stackexchange_small": (None, 96),
    "qa_smcalflow": (None, 96),
    "qa_quartz": (2000, 96),
    "qa_piqa": (None, 112),
    "qa_swag": (None, 112),
    "open_trivia": (20_000, 112),
}


def write_scorer_sets(sets: TrainingSets) -> None:
    write_dialogues(sets)
    for name, (size, max_tokens) in ANSWERS.items():
        written = "trivia" if name == "open_trivia" else name
        sets.pairs(written, sets.answers(name), size=size, right=max_tokens)
    places = [
        Pair(f"{row['entity'].title()}: {question}", answer)
        for question, answer, row in sets.data.answers("dstc9_faq/train")
        if not held_out("dstc9", row["entity"])
    ]
    sets.pairs("dstc9", places)
    write_intents(sets)
    write_similar(sets)
    sets.korean_pairs(headings=9000)
    sets.sts()
    translations = [
        Pair(korean, english)
        for english, korean, kind in sets.data.translations()
        if kind == "korsts" or not held_out(kind, english)
    ]
    sets.pairs("enko", translations, size=25_000)


def write_dialogues(sets: TrainingSets) -> None:
    data = sets.data
    sets.dialogues("selfdialogue", data.dialogues("self_dialogue/train_dialogs"), replies=9)
    replies = [Pair("\n".join(row["context"]), row["response"]) for row in data.rows("ubuntu_irc/train")]
    sets.pairs("ubuntu", replies, left=112)
    for name, (size, count) in LONG_DIALOGUES.items():
        sets.dialogues(name, sample(sets.rng, data.dialogues(f"{name}/train"), size), replies=count)
    short = [
        dialogue
        for name, size in SHORT_DIALOGUES.items()
        for dialogue in sample(sets.rng, data.dialogues(f"{name}/train"), size)
    ]
    sets.dialogues("short_dialogues", short, replies=5)


def write_intents(sets: TrainingSets) -> None:
    """Pairs of questions with the same intent."""
    for name in ("banking77", "clinc150", "bitext_support"):
        intents = defaultdict(list)
        for row in sets.data.rows(f"{name}/train"):
            if row["label"] != "oos":  # questions out of scope have no intent in common
                intents[row["label"]].append(row["text"])
        pairs = []
        for number, texts in enumerate(intents.values()):
            sets.rng.shuffle(texts)
            both = zip(texts[::2], texts[1::2], strict=False)
            pairs += [Pair(left, right, group=number) for left, right in both]
        sets.pairs(name, pairs)


def write_similar(sets: TrainingSets) -> None:
    """Entailments, sentences of the same content, and arguments with their key points."""
    data = sets.data
    triplets = [
        Pair(row["anchor"], row["positive"], row["negative"]) for row in data.rows("snli_part/triplets")
    ]
    sets.pairs("snli", triplets, size=15_000)
    sets.pairs("cf_snli", entailments(data.rows("nli/cf_snli_train")))
    split = [Pair(row["text_a"], row["text_b"]) for row in data.rows("wikisplit/pairs")]
    sets.pairs("wikisplit", split, size=6000, right=72)
    arguments = [
        Pair(row["text_a"], row["text_b"], group=bucket(row["text_b"], 10**6))
        for row in data.rows("argkp/all")
        if row["label"] == 1
    ]
    sets.pairs("argkp", arguments)
