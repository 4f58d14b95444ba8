"""The pictures made from models and tables: attention on a dialogue, clusters, quality against latency."""

import math
import re
from pathlib import Path

from svg import BI, CROSS, INK, POLY, Drawing

DOCS = Path(__file__).parents[1]
COLOURS = (BI, POLY, CROSS)


def attention() -> Drawing:
    """The words of a chat, darker where the reply attends more."""
    import tercet
    from tercet.data.sample import chats

    turns = chats("en")[0].turns
    explanation = tercet.load("poly").explain(turns[:-1], turns[-1])
    words = _words(
        explanation.context, [(each.start, each.end, each.weight or 0.0) for each in explanation.tokens]
    )
    most = max(weight for _, weight in words)
    drawing = Drawing(720, 60 + 44 * len(turns))
    y, x = 40.0, 20.0
    for word, weight in words:
        if word == "\n":
            x, y = 20.0, y + 44
            continue
        width = 8.1 * len(word) + 8
        if x + width > 710:
            x, y = 40.0, y + 26
        drawing.bar(x, y - 17, width - 4, 24, fill=POLY, opacity=round(0.75 * weight / most, 2))
        drawing.text(x + (width - 4) / 2, y, word, size=15)
        x += width
    drawing.text(20, y + 44, f"→ {turns[-1]}", size=15, anchor="start", weight="bold", colour=POLY)
    drawing.height = int(y + 64)
    return drawing


def _words(context: str, tokens: list[tuple[int, int, float]]) -> list[tuple[str, float]]:
    """The words of a text with the attention of their tokens, and a line break between turns."""
    found = []
    for word in re.finditer(r"\S+|\n", context):
        weight = sum(weight for start, end, weight in tokens if start < word.end() and end > word.start())
        found.append((word[0], weight))
    return found


def clusters() -> Drawing:
    """The questions of the sample FAQ as points."""
    import tercet
    from tercet.cli.map_layout import layout_points
    from tercet.data.sample import questions
    from tercet.similar import text_vectors
    from tercet.text.keywords import group_names

    scorer = tercet.load("bi")
    texts = [entry.question for entry in questions("en")]
    points = layout_points(text_vectors(scorer, texts), "umap")
    groups = tercet.clusters(scorer, texts, threshold=0.4, min_size=5)
    names = group_names(texts, groups)
    cluster_of = {position: number for number, members in enumerate(groups) for position in members}
    drawing = Drawing(720, 480)
    for position, (x, y) in enumerate(points):
        number = cluster_of.get(position)
        colour = INK if number is None else COLOURS[number % 3]
        drawing.dot(
            30 + 660 * float(x),
            450 - 420 * float(y),
            5,
            fill=colour,
            opacity=0.25 if number is None else 0.85,
        )
    for number, (members, name) in enumerate(zip(groups, names, strict=True)):
        x, y = (sorted(points[members][:, axis])[len(members) // 2] for axis in (0, 1))
        drawing.text(
            min(max(30 + 660 * float(x), 100), 620),
            438 - 420 * float(y),
            name,
            size=14,
            weight="bold",
            colour=COLOURS[number % 3],
        )
    return drawing


def quality() -> Drawing:
    """R@1 of the trained scorers against the time of one context."""
    recalls, times = _recalls(), _times()
    drawing = Drawing(720, 400)
    low, high = math.floor(min(recalls.values())) - 0.5, math.ceil(max(recalls.values())) + 0.5

    def place(milliseconds: float, recall: float) -> tuple[float, float]:
        return 90 + 580 * math.log10(milliseconds / 10) / math.log10(1e5), 330 - 290 * (recall - low) / (
            high - low
        )

    for power in range(1, 7):
        x, _ = place(10.0**power, low)
        drawing.line(x, 40, x, 330, opacity=0.15)
        drawing.text(x, 350, ("10 ms", "100 ms", "1 s", "10 s", "100 s", "17 min")[power - 1], size=13)
    for recall in range(math.ceil(low), math.floor(high) + 1):
        _, y = place(10, recall)
        drawing.line(90, y, 670, y, opacity=0.15)
        drawing.text(80, y + 5, str(recall), size=13, anchor="end")
    for name, recall in recalls.items():
        x, y = place(times[name], recall)
        colour = {"b": BI, "p": POLY, "c": CROSS}[name[0]]
        drawing.dot(x, y, 8, fill=colour)
        drawing.text(x + 14, y + 5, name, anchor="start", weight="bold", colour=colour)
    drawing.text(380, 380, "time for one context and 100,000 candidates, 2 CPU cores")
    drawing.text(90, 26, "R@1 of 10 candidates, Ubuntu IRC", anchor="start")
    return drawing


def _recalls() -> dict[str, float]:
    """R@1 on Ubuntu IRC from the tables of the results."""
    text = (DOCS / "results.md").read_text(encoding="utf-8")
    found = {}
    for name, row in (("bi", "bi-encoder"), ("cross", "cross-encoder")):
        cells = re.findall(rf"^\| {row} \|(.*)\|$", text, re.MULTILINE)[0].split("|")
        found[name] = float(cells[1].split()[0])
    for codes in (16, 64, 360):
        found[f"poly {codes}"] = float(re.findall(rf"^\| {codes} \| ([\d.]+)", text, re.MULTILINE)[0])
    return found


def _times() -> dict[str, float]:
    """Milliseconds for 100,000 candidates from the table of the benchmarks."""
    text = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (bi|poly \d+|cross) \| [^|]+ \| ([\d.]+) (ms|s|min) \|", text, re.MULTILINE)
    return {name: float(value) * {"ms": 1, "s": 1e3, "min": 6e4}[unit] for name, value, unit in rows}


MEASURED = {"attention.svg": attention, "clusters.svg": clusters, "quality.svg": quality}
