"""Write the tables into docs/results.md and research/notes.md.

TERCET_DATA=FOLDER make results            # measure the packaged models, then write all tables
python research/results.py --stored        # write only the tables that come from stored results

The text of both pages is written by hand. A table stands between the lines ``<!-- table: NAME -->`` and
``<!-- end -->``; only what is between them is replaced.
"""

import argparse
import os
import re
from collections.abc import Mapping
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from packaged_tables import LAYOUTS, packaged_tables
from sbert_tables import STORE as SENTENCE_BERT
from study_runs import stored_runs
from study_tables import FOR_GPU, sentence_bert_table, study_tables

from tercet.files.structured import read_json

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "docs" / "results.md", ROOT / "research" / "notes.md")
TRAINED = Path(__file__).with_name("trained.json")
SHORT = ("pooling, sbert-stsb", "objective")
"""The tables of Sentence-BERT that docs/results.md shows."""
MEASURED = (*LAYOUTS, "machine")
"""Tables that need the data sets."""
TABLE = re.compile(r"<!-- table: (?P<name>.+?) -->\n(?P<table>.*?)<!-- end -->", re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stored", action="store_true", help="leave the measured tables unchanged")
    options = parser.parse_args()
    if not options.stored and "TERCET_DATA" not in os.environ:
        parser.error("TERCET_DATA must name the folder of the data sets: set it, or use --stored")
    tables = stored_tables()
    if not options.stored:
        tables |= packaged_tables(Path(os.environ["TERCET_DATA"]))
    for page in PAGES:
        page.write_text(with_tables(page.read_text(encoding="utf-8"), tables), encoding="utf-8")
        print(f"wrote {page.relative_to(ROOT)}")


def stored_tables() -> dict[str, str]:
    """All tables that need no measurement, by name."""
    return study_tables(stored_runs()) | similarity_tables()


def similarity_tables() -> dict[str, str]:
    """The tables of models that were trained for sentence similarity, by name."""
    sentence_bert, trained = read_json(SENTENCE_BERT), read_json(TRAINED)
    return {
        "sentence-bert": sentence_bert_table(sentence_bert),
        "sentence-bert short": sentence_bert_table({name: sentence_bert[name] for name in SHORT}),
        **{f"trained {name}": trained_table(rows) for name, rows in trained.items()},
    }


def with_tables(page: str, tables: Mapping[str, str]) -> str:
    """The page with new tables; measured tables that are not given stay unchanged.

    Raises:
        SystemExit: the page names a table that does not exist.
    """

    def replacement(match: re.Match[str]) -> str:
        name = match["name"]
        if name in tables:
            return f"<!-- table: {name} -->\n{tables[name]}\n<!-- end -->"
        if name not in MEASURED:
            raise SystemExit(f"there is no table {name!r}: choose from {', '.join((*MEASURED, *tables))}")
        return match[0]

    return TABLE.sub(replacement, page)


def trained_table(rows: list[dict[str, Any]]) -> str:
    """The results of recipes over their seeds; these runs need a GPU and are entered by hand."""
    lines = ["| | untrained | seeds | mean | paper | command |", "|---|---:|---|---:|---:|---|"]
    for row in rows:
        untrained = f"{row['untrained']:.1f}" if "untrained" in row else ""
        seeds = ", ".join(f"{value:.1f}" for value in row["seeds"])
        average = f"{mean(row['seeds']):.1f}"
        if len(row["seeds"]) > 1:
            average += f" ± {stdev(row['seeds']):.1f}"
        published = f"*{row['paper']}*" if "paper" in row else ""
        command = f"`tercet train {row['recipe']} {FOR_GPU} --seed S`"
        if "note" in row:
            command += f", {row['note']}"
        lines.append(f"| {row['name']} | {untrained} | {seeds} | {average} | {published} | {command} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
