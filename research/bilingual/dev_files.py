"""Write the dev sets as files for ``tercet evaluate``.

python research/bilingual/dev_files.py --data DATA --out DEV

Replies are ``DEV/xpersona_ko.jsonl`` (choices), similarities ``DEV/NAME.jsonl``, and questions with answers
are retrieval folders ``DEV/NAME``. Sets that ``tercet tasks`` lists are not written again.
"""

import argparse
import json
from pathlib import Path

from dev_sets import Answers, Retrieval, answers, choice, scifact, similarities, xpersona
from texts import DataFolder

LISTED = {"stsb", "korsts"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--out", type=Path, required=True, help="folder of the files to write")
    options = parser.parse_args()
    data, out = DataFolder(options.data), options.out
    out.mkdir(parents=True, exist_ok=True)
    replies = choice("xpersona_ko", list(xpersona(data)))
    columns = zip(replies.contexts, replies.candidates, replies.labels, strict=True)
    write(
        out / "xpersona_ko.jsonl",
        [{"context": text.split("\n"), "candidates": each, "label": label} for text, each, label in columns],
    )
    for pairs in similarities(data):
        if pairs.name not in LISTED:
            rows = zip(pairs.pairs, pairs.scores, strict=True)
            write(
                out / f"{pairs.name}.jsonl",
                [{"text_a": left, "text_b": right, "score": score} for (left, right), score in rows],
            )
    for questions in answers(data):
        write_retrieval(out, as_retrieval(questions))
    write_retrieval(out, scifact(data))


def as_retrieval(questions: Answers) -> Retrieval:
    """Questions whose documents are the answers of all."""
    return Retrieval(
        name=questions.name,
        queries=[question for question, _ in questions.pairs],
        documents=[answer for _, answer in questions.pairs],
        relevant=[[position] for position in range(len(questions.pairs))],
    )


def write_retrieval(out: Path, found: Retrieval) -> None:
    folder = out / found.name
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    for name, texts in (("queries", found.queries), ("corpus", found.documents)):
        write(folder / f"{name}.jsonl", [{"_id": str(row), "text": text} for row, text in enumerate(texts)])
    lines = [f"{row}\t{each}\t1" for row, relevant in enumerate(found.relevant) for each in relevant]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(lines) + "\n")


def write(path: Path, rows: list[dict]) -> None:
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
