"""The tables of models that are not trained on the data, measured by ``tercet evaluate``.

Results of a task are cached in build/results as soon as they exist, so an interrupted measurement continues
where it stopped. Rows of trained models appear if runs/NAME/model exists.
"""

from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from tercet.errors import DataError
from tercet.evaluate.environment import environment
from tercet.evaluate.model_names import parse_model_name
from tercet.evaluate.report import table_json
from tercet.evaluate.run import Evaluation
from tercet.evaluate.tasks.load import load_task
from tercet.files.structured import read_json, write_json
from tercet.settings.tasks import read_task

ROOT = Path(__file__).parents[1]
CACHE = ROOT / "build" / "results"
LABELS = {
    "bi": "MiniLM, mean (packaged)",
    "first:bi": "MiniLM, first state",
    "mean:bi": "MiniLM, mean",
    "bm25": "BM25",
    "tfidf": "tf-idf",
    "wordllama": "word vectors (WordLlama)",
    "bi + bm25": "MiniLM and BM25 fused",
}
SENTENCE_MODELS = ("bi", "first:bi", "wordllama", "tfidf", "bm25")


class Layout(NamedTuple):
    """The rows and columns of one table."""

    metric: str
    tasks: dict[str, str]
    """Task files to column heads."""
    models: tuple[str, ...]
    paper: dict[str, tuple[float | None, ...]]
    """Published rows."""
    source: str
    hybrid: bool = False


LAYOUTS = {
    "similarity": Layout(
        "spearman",
        {**{f"sts{year}": f"STS{year}" for year in range(12, 17)}, "stsb": "STSb", "sick": "SICK-R"},
        (*SENTENCE_MODELS, "trained on STSb=runs/sbert-stsb/model"),
        {
            "GloVe, mean": (55.14, 70.66, 59.73, 68.25, 63.66, 58.02, 53.76),
            "BERT, mean": (38.78, 57.98, 57.98, 63.15, 61.06, 46.35, 58.40),
            "BERT, CLS": (20.16, 30.01, 20.09, 36.88, 38.08, 16.50, 42.63),
            "SBERT-NLI, base": (70.97, 76.53, 73.19, 79.09, 74.30, 77.03, 72.91),
        },
        "Reimers & Gurevych (2019), table 1",
    ),
    "probes": Layout(
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
    "responses": Layout(
        "R@1",
        {
            "convai2": "ConvAI2, 20",
            "ubuntu": "Ubuntu IRC, 10",
            "self_dialogue": "Self-Dialogue, 20",
            "dailydialog": "DailyDialog, 20",
            "mutual": "MuTual, 4",
        },
        SENTENCE_MODELS,
        {
            "BERT, bi, trained": (81.7, None, None, None, None),
            "BERT, poly 64, trained": (83.7, None, None, None, None),
            "BERT, cross, trained": (84.8, None, None, None, None),
        },
        "Humeau et al. (2020), table 4",
    ),
    "retrieval": Layout("nDCG@10", {"scifact": "SciFact"}, ("bi", "bm25"), {}, "", hybrid=True),
    "duplicates": Layout(
        "F1",
        {"qqp": "QQP test", "mrpc-dev": "MRPC dev"},
        SENTENCE_MODELS,
        {
            "SBERT, trained": (74.66, 84.39),
            "AugSBERT, BM25, trained": (79.01, 85.46),
            "cross-encoder, trained": (80.40, 88.95),
        },
        "Thakur et al. (2021), table 2",
    ),
    "arguments": Layout(
        "average precision",
        {"arguments-folds": "10 folds", "arguments-topics": "by topic"},
        ("bi", "wordllama", "tfidf"),
        {},
        "",
    ),
    "korean": Layout("spearman", {"korsts-dev": "KorSTS dev"}, ("bi", "wordllama", "tfidf", "bm25"), {}, ""),
}


def packaged_tables(root: Path) -> dict[str, str]:
    """All tables by name, and the machine.

    Args:
        root: the folder of the data sets.
    """
    tables = {
        name: markdown(layout, {task: measure(layout, task, root) for task in layout.tasks})
        for name, layout in LAYOUTS.items()
    }
    return tables | {"machine": _machine()}


def measure(layout: Layout, task: str, root: Path) -> dict[str, Any] | None:
    """All rows of a task, from the cache or measured; None if the data is missing."""
    models = _models(layout)
    cached = CACHE / f"{task}.{sha256(' '.join(models).encode()).hexdigest()[:8]}.json"
    if cached.is_file():
        return read_json(cached)
    try:
        loaded = load_task(read_task(str(ROOT / "tasks" / f"{task}.toml")), root=root)
    except DataError as error:
        print(f"{task}: {error}")
        return None
    evaluation = Evaluation([parse_model_name(model) for model in models], hybrid=layout.hybrid, report=print)
    table = table_json(evaluation.table(loaded))
    CACHE.mkdir(parents=True, exist_ok=True)
    write_json(cached, table)
    return table


def markdown(layout: Layout, tables: dict[str, dict[str, Any] | None]) -> str:
    """The table as Markdown, with its command."""
    rows: list[dict[str, Any]] = next((table["rows"] for table in tables.values() if table is not None), [])
    lines = [f"| | {' | '.join(layout.tasks.values())} |", f"|---|{'---:|' * len(layout.tasks)}"]
    for model in [row["model"] for row in rows]:
        cells = [cell(table, model, layout.metric) for table in tables.values()]
        lines.append(f"| {LABELS.get(model, model)} | {' | '.join(cells)} |")
    for name, values in layout.paper.items():
        shown = ["" if value is None else f"*{value:.1f}*" for value in values]
        lines.append(f"| *{name}* | {' | '.join(shown)} |")
    source = f" In italics: {layout.source}." if layout.source else ""
    return "\n".join([*lines, "", f"`{_command(layout)}`.{source}"])


def cell(table: dict[str, Any] | None, model: str, metric: str) -> str:
    """A metric with its interval, and a star if a test finds a difference from the first model."""
    if table is None:
        return "no data"
    row = next(row for row in table["rows"] if row["model"] == model)
    found = next(value for name, value in row["metrics"].items() if name.startswith(metric))
    gap = row["against_first"]
    star = "\\*" if gap is not None and gap["verdict"] != "no difference shown" else ""
    return f"{100 * found['value']:.2f}{star} ({100 * found['low']:.1f}-{100 * found['high']:.1f})"


def _command(layout: Layout) -> str:
    models = " ".join(f'"{model}"' if " " in model else model for model in _models(layout))
    tasks = " ".join(f"tasks/{task}.toml" for task in layout.tasks)
    return f"tercet evaluate {models} {tasks}{' --hybrid' if layout.hybrid else ''}"


def _models(layout: Layout) -> list[str]:
    """The models of a table, without trained ones that do not exist here."""
    return [model for model in layout.models if _exists(model)]


def _exists(model: str) -> bool:
    _, separator, path = model.partition("=")
    return not separator or (ROOT / path).is_dir()


def _machine() -> str:
    found = environment()
    versions = (f"{name} {found['packages'][name]}" for name in ("torch", "transformers"))
    return f"Machine: {found['threads']} CPU threads; Python {found['python']}, {', '.join(versions)}."
