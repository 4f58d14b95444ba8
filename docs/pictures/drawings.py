"""The drawings of "Which scorer?" and "How it works": plain figures without data."""

from svg import BI, CROSS, INK, POLY, SOFT, Drawing


def bi() -> Drawing:
    """Two texts, two vectors, one product."""
    drawing = Drawing(300, 330)
    drawing.text(150, 20, "bi-encoder", size=16, weight="bold", colour=BI)
    for x, name in ((20, "context"), (160, "candidate")):
        _tokens(drawing, x, 296, name)
        drawing.arrow(x + 60, 264, x + 60, 240)
        drawing.box(x, 200, 120, 38, "encoder", fill=SOFT)
        drawing.arrow(x + 60, 198, x + 60, 174)
        drawing.text(x + 66, 190, "mean", size=12, anchor="start")
        _vector(drawing, x + 20, 156, BI)
        drawing.line(x + 60, 154, x + 60, 104)
        drawing.arrow(x + 60, 104, 150 - 28 * (1 if x < 100 else -1), 104)
    drawing.text(258, 146, "cached", size=12)
    drawing.box(122, 86, 56, 36, "u · v", colour=BI)
    drawing.arrow(150, 84, 150, 58)
    drawing.text(150, 50, "score")
    return drawing


def poly() -> Drawing:
    """Several codes of the context, to which the vector of the candidate attends."""
    drawing = Drawing(300, 330)
    drawing.text(150, 20, "poly-encoder", size=16, weight="bold", colour=POLY)
    for x, name in ((20, "context"), (160, "candidate")):
        _tokens(drawing, x, 296, name)
        drawing.arrow(x + 60, 264, x + 60, 240)
        drawing.box(x, 208, 120, 30, "encoder", fill=SOFT)
        drawing.arrow(x + 60, 206, x + 60, 182)
    drawing.text(86, 198, "learnt codes", size=12, anchor="start")
    drawing.text(226, 198, "mean", size=12, anchor="start")
    for number in range(4):
        _vector(drawing, 40, 132 + 13 * number, POLY, height=10)
    drawing.text(26, 160, "m", size=13)
    _vector(drawing, 180, 164, POLY)
    drawing.text(258, 150, "cached", size=12)
    drawing.line(220, 162, 220, 104)
    drawing.arrow(220, 104, 196, 104)
    drawing.line(80, 130, 80, 104)
    drawing.arrow(80, 104, 104, 104)
    drawing.box(106, 84, 88, 40, "attention,\nproduct", colour=POLY, size=12)
    drawing.arrow(150, 82, 150, 58)
    drawing.text(150, 50, "score")
    return drawing


def cross() -> Drawing:
    """Both texts in one sequence."""
    drawing = Drawing(300, 330)
    drawing.text(150, 20, "cross-encoder", size=16, weight="bold", colour=CROSS)
    _tokens(drawing, 20, 296, "context")
    _tokens(drawing, 160, 296, "candidate")
    drawing.arrow(80, 264, 80, 230)
    drawing.arrow(220, 264, 220, 230)
    drawing.box(20, 178, 260, 50, "encoder", fill=SOFT)
    drawing.text(150, 252, "one sequence", size=12)
    drawing.arrow(150, 176, 150, 146)
    drawing.box(110, 110, 80, 34, "head", colour=CROSS)
    drawing.arrow(150, 108, 150, 58)
    drawing.text(150, 50, "score")
    drawing.text(158, 164, "nothing is cached", size=12, anchor="start")
    return drawing


def _tokens(drawing: Drawing, x: float, y: float, name: str) -> None:
    """The tokens of a text, with its name below."""
    for number in range(6):
        drawing.bar(x + 2 + 20 * number, y - 28, 16, 14, fill=INK, opacity=0.35)
    drawing.text(x + 60, y + 8, name, size=14)


def _vector(drawing: Drawing, x: float, y: float, colour: str, height: float = 16) -> None:
    for number in range(8):
        drawing.bar(x + 10 * number, y, 9, height, fill=colour, opacity=0.35 + 0.65 * ((number * 5) % 8) / 8)


def retrieve() -> Drawing:
    """Search first, read carefully then."""
    drawing = Drawing(760, 160)
    steps = (
        (10, "context", "", INK),
        (150, "bi- or poly-\nencoder", "milliseconds", BI),
        (320, "index of\n100,000 vectors", "encoded once", POLY),
        (520, "cross-\nencoder", "reads 50 pairs", CROSS),
        (670, "best 5", "", INK),
    )
    widths = (100, 120, 140, 100, 80)
    for (x, label, note, colour), width in zip(steps, widths, strict=True):
        drawing.box(x, 60, width, 60, label, colour=colour, fill=SOFT if colour == INK else "none")
        drawing.text(x + width / 2, 144, note, size=13)
    ends = [x + width for (x, *_), width in zip(steps, widths, strict=True)]
    for end, (start, *_) in zip(ends, steps[1:], strict=False):
        drawing.arrow(end + 3, 90, start - 3, 90)
    drawing.text(490, 50, "best 50", size=13)
    drawing.line(490, 56, 490, 84, opacity=0.5)
    drawing.text(295, 50, "codes", size=13)
    drawing.line(295, 56, 295, 84, opacity=0.5)
    drawing.text(380, 24, "search all candidates, then rerank the best", weight="bold")
    return drawing


def match() -> Drawing:
    """Products of a candidate with the codes, their weights, and the score."""
    products = (0.22, 0.61, 0.35, 0.74, 0.18, 0.48)
    scaled = [2.718281828 ** (10 * product) for product in products]
    weights = [each / sum(scaled) for each in scaled]
    score = sum(weight * product for weight, product in zip(weights, products, strict=True))
    drawing = Drawing(720, 300)
    drawing.text(60, 28, "code", weight="bold")
    drawing.text(230, 28, "product  d = code · candidate", weight="bold")
    drawing.text(560, 28, "weight  w = softmax(a d)", weight="bold")
    for number, (product, weight) in enumerate(zip(products, weights, strict=True)):
        y = 50 + 30 * number
        _vector(drawing, 20, y, POLY, height=14)
        drawing.bar(130, y, 240 * product, 14, fill=POLY, opacity=0.8)
        drawing.text(138 + 240 * product, y + 12, f"{product:.2f}", size=12, anchor="start")
        drawing.bar(460, y, 240 * weight, 14, fill=BI, opacity=0.8)
        drawing.text(468 + 240 * weight, y + 12, f"{weight:.2f}", size=12, anchor="start")
    drawing.line(20, 236, 480, 236, opacity=0.4)
    drawing.text(60, 262, "score", weight="bold")
    drawing.bar(130, 250, 240 * score, 14, fill=INK, opacity=0.8)
    drawing.text(
        138 + 240 * score,
        262,
        f"Σ w d = {score:.2f}, never above the largest product, {max(products):.2f}",
        size=13,
        anchor="start",
    )
    return drawing


def certificate() -> Drawing:
    """Lists of neighbours, their cut-offs, and the k-th best score."""
    drawing = Drawing(720, 270)
    found = (
        (0.93, 0.81, 0.66, 0.52),
        (0.88, 0.7, 0.61, 0.46),
        (0.84, 0.77, 0.58, 0.49),
        (0.9, 0.62, 0.55, 0.41),
    )
    unseen = ((0.45, 0.3), (0.38, 0.22), (0.43, 0.33), (0.33, 0.25))
    drawing.text(640, 26, "larger product →", size=13, anchor="end")
    for number, (near, far) in enumerate(zip(found, unseen, strict=True)):
        y = 60 + 40 * number
        drawing.text(20, y + 5, f"code {number + 1}", anchor="start")
        drawing.line(90, y, 700, y, opacity=0.3)
        for value in near:
            drawing.dot(90 + 600 * value, y, 7, fill=POLY)
        for value in far:
            drawing.dot(90 + 600 * value, y, 7, fill="none", stroke=INK)
        cut = 90 + 600 * min(near)
        drawing.line(cut, y - 14, cut, y + 14, colour=POLY, width=3)
    largest = 90 + 600 * max(min(near) for near in found)
    best = 90 + 600 * 0.6
    drawing.line(best, 40, best, 214, dashed=True, width=2)
    drawing.text(best + 8, 212, "k-th best score so far", size=13, anchor="start", weight="bold")
    drawing.line(largest, 40, largest, 232, opacity=0.5, dashed=True)
    drawing.text(largest - 6, 230, "largest cut-off", size=13, anchor="end")
    drawing.dot(110, 254, 7, fill=POLY)
    drawing.text(124, 259, "retrieved, scored exactly", size=13, anchor="start")
    drawing.dot(330, 254, 7, fill="none", stroke=INK)
    drawing.text(
        344, 259, "never looked at: all its products are below every cut-off", size=13, anchor="start"
    )
    return drawing


def packing() -> Drawing:
    """A padded batch, and the same tokens without padding."""
    lengths = (12, 5, 5, 3)
    colours = (BI, POLY, POLY, CROSS)
    drawing = Drawing(720, 250)
    drawing.text(20, 24, "padded: 4 texts × 12 tokens, 23 of 48 are padding", anchor="start", weight="bold")
    for row, (length, colour) in enumerate(zip(lengths, colours, strict=True)):
        for column in range(max(lengths)):
            is_token = column < length
            drawing.bar(
                20 + 27 * column,
                36 + 24 * row,
                24,
                20,
                fill=colour if is_token else INK,
                opacity=0.8 if is_token else 0.08,
            )
    drawing.text(20, 166, "packed: 25 tokens in a row for all linear layers", anchor="start", weight="bold")
    x = 20.0
    for length, colour in zip(lengths, colours, strict=True):
        for _ in range(length):
            drawing.bar(x, 178, 24, 20, fill=colour, opacity=0.8)
            x += 27
        x += 3
    for start, count, label in (
        (20, 12, "attention: 1 text"),
        (347, 10, "2 texts of equal length"),
        (623, 3, "1 text"),
    ):
        drawing.line(start, 208, start + 27 * count - 3, 208)
        drawing.text(start + (27 * count - 3) / 2, 228, label, size=12)
    return drawing


DRAWINGS = {
    "bi.svg": bi,
    "poly.svg": poly,
    "cross.svg": cross,
    "retrieve.svg": retrieve,
    "match.svg": match,
    "certificate.svg": certificate,
    "packing.svg": packing,
}
