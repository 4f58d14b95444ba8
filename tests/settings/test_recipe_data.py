"""The data scripts of the recipes, run as users run them, on small data sets of the same shape."""

import gzip
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conftest import WORDS

ROOT = Path(__file__).parents[2]

FolderOf = Callable[[str], Path]
Rows = list[dict[str, Any]]


def write(folder: Path, sets: dict[str, Rows]) -> Path:
    for name, rows in sets.items():
        file = folder / f"{name}.jsonl.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(file, "wt", encoding="utf-8") as opened:
            opened.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return folder


def read(file: Path) -> Rows:
    with gzip.open(file, "rt", encoding="utf-8") as opened:
        return [json.loads(line) for line in opened]


def texts(count: int, *, words: int) -> list[str]:
    """Distinct random texts."""
    rng, found = random.Random(count * words), dict[str, None]()
    while len(found) < count:
        found[" ".join(rng.choices(WORDS, k=words))] = None
    return list(found)


def pairs(*, words: int) -> Rows:
    """60 pairs of distinct texts with ``words`` words each."""
    both = texts(120, words=words)
    return [{"text_a": a, "text_b": b} for a, b in zip(both[:60], both[60:], strict=True)]


def run(script: str, *words: str) -> str:
    command = [sys.executable, str(ROOT / "recipes" / script), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_data_of_the_packaged_models_has_15_negatives_per_answer(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    turns = texts(400, words=9)
    folder = write(
        tmp_path,
        {
            "self_dialogue/train_dialogs": [{"turns": turns[at : at + 8]} for at in range(0, 400, 8)],
            "ubuntu_irc/train": [
                {"context": [pair["text_a"]], "response": pair["text_b"]} for pair in pairs(words=5)
            ],
            "stsb/train": [pair | {"score": 4.5} for pair in pairs(words=6)],
            "argkp/all": [pair | {"label": position % 2} for position, pair in enumerate(pairs(words=7))],
            "nli/cf_snli_train": [pair | {"label": "entailment"} for pair in pairs(words=8)],
        },
    )
    out = tmp_path / "out"
    run("packaged/data.py", "--data", str(folder), "--model", str(tiny_folder("bert")), "--out", str(out))
    train, dev = (read(out / f"{name}.jsonl.gz") for name in ("replies", "replies_dev"))
    assert len(train) > 400
    assert 10 < len(dev) < len(train) / 5
    for row in train:
        assert len(set(row["negatives"])) == 15
        assert row["answer"] not in row["negatives"]
        assert str(row["context"]) not in row["negatives"]
    pairs_in_train = {(str(row["context"]), row["answer"]) for row in train}
    for row in dev:
        assert len(row["candidates"]) == 16
        assert (str(row["context"]), row["candidates"][row["label"]]) not in pairs_in_train


def test_the_korean_data_consists_of_short_dialogues_from_all_data_sets(tmp_path: Path) -> None:
    pair = {"text_a": "비가 온다", "text_b": "날씨가 흐리다"}
    folder = write(
        tmp_path,
        {
            "ko_chatbot/all": [{"context": ["안녕"], "response": "반가워"}],
            "xpersona_ko/valid": [
                {"context": ["your persona: 나는 의사다", "어디 살아?"], "response": "서울"}
            ],
            "ko_parakqc/all": [{"text": f"질문 {number}"} for number in range(11)],
            "klue_nli/train": [pair],
            "kor_sts/train": [pair],
            "ko_question_pair/train": [pair],
        },
    )
    output = run("korean/data.py", "--data", str(folder))
    turns = [row["turns"] for row in read(folder / "korean" / "turns.jsonl.gz")]
    assert "14 rows" in output
    assert ["안녕", "반가워"] in turns
    assert ["나는 의사다", "어디 살아?", "서울"] in turns
    assert ["질문 8", "질문 9"] in turns
    assert ["질문 9", "질문 10"] not in turns  # every ten questions are paraphrases of one another
    assert turns.count(["비가 온다", "날씨가 흐리다"]) == 3
