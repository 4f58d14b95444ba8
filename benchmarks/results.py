"""Every table of the papers that the data allows, ours beside theirs: writes docs/results.md.

TERCET_DATA=FOLDER make results
python benchmarks/results.py --kept      # only what comes from files here; measured tables stay as they are

The table of each task is kept in build/results as soon as it is done, so that a second call goes on; rows of
models that were trained (runs/NAME/model) appear when they are there. What the tables say is written by hand,
in findings.md.
"""

import argparse
import json
import os
import re
from hashlib import sha256
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from machine import machine
from sbert_tables import KEPT as SBERT
from study_report import sbert_section
from study_report import sections as study_sections

from tercet.errors import DataError
from tercet.evaluate.named import parse_name
from tercet.evaluate.report import as_json
from tercet.evaluate.run import Evaluation
from tercet.evaluate.tasks.config import read_task
from tercet.evaluate.tasks.load import load_task
from tercet.files import write_json

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "build" / "results"
OUT = ROOT / "docs" / "results.md"
TRAINED = Path(__file__).with_name("trained.json")
FINDINGS = Path(__file__).with_name("findings.md")

NAMES = {
    "bi": "MiniLM, mean (packaged)",
    "first:bi": "MiniLM, first state",
    "mean:bi": "MiniLM, mean",
    "bm25": "BM25",
    "tfidf": "tf-idf",
    "wordllama": "word vectors (WordLlama)",
    "bi + bm25": "MiniLM and BM25 fused",
}


class Chapter(NamedTuple):
    """One table: what is measured, our rows, the paper's."""

    title: str
    text: str
    measure: str
    tasks: dict[str, str]
    """The task's file to the head of its column."""
    models: tuple[str, ...]
    theirs: dict[str, tuple[float | None, ...]]
    source: str
    hybrid: bool = False


CHAPTERS = (
    Chapter(
        "Sentence similarity",
        "Spearman's ρ x 100, all pairs of a year together. SICK-R is its train and dev file. STSb's training "
        "pairs were taken from STS12 to STS17, so what was trained on them has seen pairs of the years "
        "here: of that row only STSb and SICK-R count.",
        "spearman",
        {**{f"sts{year}": f"STS{year}" for year in range(12, 17)}, "stsb": "STSb", "sick": "SICK-R"},
        ("bi", "first:bi", "wordllama", "tfidf", "bm25", "trained on STSb=runs/sbert-stsb/model"),
        {
            "GloVe, mean": (55.14, 70.66, 59.73, 68.25, 63.66, 58.02, 53.76),
            "BERT, mean": (38.78, 57.98, 57.98, 63.15, 61.06, 46.35, 58.40),
            "BERT, CLS": (20.16, 30.01, 20.09, 36.88, 38.08, 16.50, 42.63),
            "SBERT-NLI, base": (70.97, 76.53, 73.19, 79.09, 74.30, 77.03, 72.91),
        },
        "Reimers & Gurevych (2019), table 1",
    ),
    Chapter(
        "Probes",
        "Accuracy x 100 of a logistic regression over the vectors, as in SentEval: 10 folds, or the given "
        "split for SST, TREC and MRPC (whose dev file stands for its test file).",
        "accuracy",
        {f"probe-{name}": name.upper() for name in ("mr", "cr", "subj", "mpqa", "sst", "trec", "mrpc")},
        ("bi", "first:bi", "wordllama"),
        {
            "GloVe, mean": (77.25, 78.30, 91.17, 87.85, 80.18, 83.0, 72.87),
            "BERT, mean": (78.66, 86.25, 94.37, 88.66, 84.40, 92.8, 69.45),
            "USE": (80.09, 85.19, 93.98, 86.70, 86.38, 93.2, 70.14),
            "SBERT-NLI, base": (83.64, 89.43, 94.39, 89.86, 88.96, 89.6, 76.00),
        },
        "Reimers & Gurevych (2019), table 5",
    ),
    Chapter(
        "Response selection",
        "R@1 x 100 among the candidates of each context. Nothing of ours here was trained on these sets (for "
        "the packaged poly- and cross-encoder see their cards in `src/tercet/weights`); the paper's models "
        "were, and ConvAI2's wrong candidates are not the official ones.",
        "R@1",
        {
            "convai2": "ConvAI2, 20",
            "ubuntu": "Ubuntu IRC, 10",
            "self_dialogue": "Self-Dialogue, 20",
            "dailydialog": "DailyDialog, 20",
            "mutual": "MuTual, 4",
        },
        ("bi", "first:bi", "wordllama", "tfidf", "bm25"),
        {
            "BERT, bi, trained": (81.7, None, None, None, None),
            "BERT, poly 64, trained": (83.7, None, None, None, None),
            "BERT, cross, trained": (84.8, None, None, None, None),
        },
        "Humeau et al. (2020), table 4",
    ),
    Chapter(
        "Retrieval",
        "nDCG@10 x 100 on SciFact (300 queries, 5,183 abstracts).",
        "nDCG@10",
        {"scifact": "SciFact"},
        ("bi", "bm25"),
        {},
        "",
        hybrid=True,
    ),
    Chapter(
        "Pairs that match",
        "F1 x 100 at the best threshold of the file itself. The paper's figures are of its own splits.",
        "F1",
        {"qqp": "QQP test", "mrpc-dev": "MRPC dev"},
        ("bi", "first:bi", "wordllama", "tfidf", "bm25"),
        {
            "SBERT, trained": (74.66, 84.39),
            "AugSBERT, BM25, trained": (79.01, 85.46),
            "cross-encoder, trained": (80.40, 88.95),
        },
        "Thakur et al. (2021), table 2",
    ),
    Chapter(
        "Arguments",
        "Average precision x 100 on ArgKP, which stands in for AFS: the mean over 10 folds, and over topics.",
        "average precision",
        {"arguments-folds": "10 folds", "arguments-topics": "by topic"},
        ("bi", "wordllama", "tfidf"),
        {},
        "",
    ),
    Chapter(
        "Korean",
        "Spearman's ρ x 100 on KorSTS dev. The packaged models know no Korean beyond its letters.",
        "spearman",
        {"korsts-dev": "KorSTS dev"},
        ("bi", "wordllama", "tfidf", "bm25"),
        {},
        "",
    ),
)

MISSING = {
    "AFS (Reimers & Gurevych, table 3)": "ArgKP stands in for it above",
    "Wikipedia sections (table 4)": "the recipe is there (`recipes/sbert-triplet.toml`), the data is not",
    "DSTC7 and Ubuntu v2 (Humeau et al., table 4)": "no data",
    "Wikipedia article search (table 4)": "no data",
    "Spanish STS and BWS (Thakur et al., table 2)": "no data",
}


def main() -> None:
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    parser.add_argument("--kept", action="store_true", help="leave the measured tables as they stand")
    head, *chapters = standing_tables() if parser.parse_args().kept else measured_tables()
    parts = [head, FINDINGS.read_text(encoding="utf-8"), *chapters]
    parts += map(trained_section, json.loads(TRAINED.read_text(encoding="utf-8")))
    parts += study_sections()
    if SBERT.is_file():
        parts.append(sbert_section(json.loads(SBERT.read_text(encoding="utf-8"))))
    parts.append("## Missing\n\n" + "\n".join(f"- {name}: {why}." for name, why in MISSING.items()) + "\n")
    OUT.write_text("\n".join(parts), encoding="utf-8")
    print(f"{OUT.relative_to(ROOT)} is written")


def standing_tables() -> list[str]:
    """The head and the measured tables, as they stand in the file."""
    head, *found = re.split(r"^(?=## )", OUT.read_text(encoding="utf-8"), flags=re.MULTILINE)
    titles = {each.splitlines()[0].removeprefix("## "): each for each in found}
    missing = [chapter.title for chapter in CHAPTERS if chapter.title not in titles]
    if missing:
        raise SystemExit(f"{OUT} has no {', '.join(missing)}: measure it, without --kept")
    return [each.rstrip() + "\n" for each in (head, *(titles[chapter.title] for chapter in CHAPTERS))]


def measured_tables() -> list[str]:
    """The head and the measured tables, anew."""
    if "TERCET_DATA" not in os.environ:
        raise SystemExit("say where the data sets lie: TERCET_DATA=FOLDER make results")
    root = Path(os.environ["TERCET_DATA"])
    parts = [HEAD.format(machine=machine())]
    for chapter in CHAPTERS:
        found = {task: measured(chapter, task, root) for task in chapter.tasks}
        parts.append(section(chapter, found))
    return parts


HEAD = """# Results

Made by `TERCET_DATA=FOLDER make results` ({machine}). In brackets the interval that holds
95% of what other cases of the same kind would give (bootstrap over the cases). A star marks a difference from
the first row that a paired test finds (p < .05). Rows in italics are the paper's, of other models and
often of other splits: for orientation.
"""


def measured(chapter: Chapter, task: str, root: Path) -> dict[str, Any] | None:
    """All rows of a task, from what is kept or anew; nothing where the data is missing."""
    models = [each for each in chapter.models if _is_there(each)]
    file = KEPT / f"{task}.{sha256(' '.join(models).encode()).hexdigest()[:8]}.json"
    if file.is_file():
        kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return kept
    try:
        loaded = load_task(read_task(str(ROOT / "tasks" / f"{task}.toml")), root=root)
    except DataError as error:
        print(f"{task}: {error}")
        return None
    evaluation = Evaluation([parse_name(each) for each in models], hybrid=chapter.hybrid, tell=print)
    found: dict[str, Any] = as_json([evaluation.table(loaded)])["tasks"][0]
    KEPT.mkdir(parents=True, exist_ok=True)
    write_json(file, found)
    return found


def _is_there(model: str) -> bool:
    _, separator, path = model.partition("=")
    return not separator or (ROOT / path).is_dir()


def section(chapter: Chapter, found: dict[str, dict[str, Any] | None]) -> str:
    """A chapter as Markdown."""
    rows = next((each["rows"] for each in found.values() if each is not None), [])
    labels = [row["model"] for row in rows]
    lines = [
        f"## {chapter.title}\n\n{chapter.text}\n",
        f"| | {' | '.join(chapter.tasks.values())} |",
        f"|---|{'---:|' * len(chapter.tasks)}",
    ]
    for label in labels:
        cells = [cell(each, label, chapter.measure) for each in found.values()]
        lines.append(f"| {NAMES.get(label, label)} | {' | '.join(cells)} |")
    for name, values in chapter.theirs.items():
        shown = ["" if value is None else f"*{value:.1f}*" for value in values]
        lines.append(f"| *{name}* | {' | '.join(shown)} |")
    if chapter.source:
        lines.append(f"\nIn italics: {chapter.source}.")
    tasks = " ".join(f"tasks/{task}.toml" for task in chapter.tasks)
    models = " ".join(f'"{each}"' if " " in each else each for each in chapter.models if _is_there(each))
    hybrid = " --hybrid" if chapter.hybrid else ""
    lines.append(f"\n`tercet evaluate {models} {tasks}{hybrid}`\n")
    return "\n".join(lines)


def trained_section(table: dict[str, Any]) -> str:
    """What recipes reach, over their seeds; these runs want a GPU, and are made by hand."""
    lines = [
        f"## Trained: {table['measure']}\n",
        f"{table['text']} One H200, bf16, seeds from 0: mean ± deviation over the seeds.\n",
        "| | untrained | seeds | mean | | command |",
        "|---|---:|---|---:|---:|---|",
    ]
    for row in table["rows"]:
        seeds = ", ".join(f"{value:.1f}" for value in row["seeds"])
        before = f"{row['untrained']:.1f}" if "untrained" in row else ""
        reached = f"{mean(row['seeds']):.1f}"
        reached += f" ± {stdev(row['seeds']):.1f}" if len(row["seeds"]) > 1 else ""
        theirs = f"*{row['paper']}*" if "paper" in row else ""
        command = f"`tercet train {row['recipe']} --set training.bf16=true --seed S`"
        command += f" ({row['note']})" if "note" in row else ""
        lines.append(f"| {row['name']} | {before} | {seeds} | {reached} | {theirs} | {command} |")
    return "\n".join([*lines, ""])


def cell(table: dict[str, Any] | None, label: str, measure: str) -> str:
    """One figure with its interval."""
    if table is None:
        return "no data"
    row = next(each for each in table["rows"] if each["model"] == label)
    found = next(value for name, value in row["measures"].items() if name.startswith(measure))
    gap = row["against_first"]
    star = "\\*" if gap is not None and gap["verdict"] != "no difference shown" else ""
    return f"{100 * found['value']:.2f}{star} ({100 * found['low']:.1f}-{100 * found['high']:.1f})"


if __name__ == "__main__":
    main()
