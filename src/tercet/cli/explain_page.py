"""An explanation as a page that opens offline."""

from typing import TYPE_CHECKING, Any

from tercet.pages.render import render
from tercet.records import ExplanationMethod

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tercet.records import Explanation, TokenShare

SHOWN_CODES = 12

METHODS = {
    ExplanationMethod.EXACT: "Exact: the contributions of the tokens of a text add up to the score.",
    ExplanationMethod.LEAVE_ONE_OUT: (
        "Approximate: a contribution is how much the score falls without the word. Contributions do not "
        "add up to the score, because words that say the same thing can replace each other."
    ),
}
"""What a reader has to know about contributions."""


def page(explanation: "Explanation") -> str:
    """The page."""
    top = sorted(explanation.codes, key=lambda code: -code.weight)[:SHOWN_CODES]
    return render(
        "explain",
        score=f"{explanation.score:.4f}",
        candidate=explanation.candidate,
        notes=[*filter(None, (truncation_note(explanation), *explanation.notes))],
        method=METHODS[explanation.method],
        exact=explanation.is_exact,
        texts=_texts(explanation),
        tokens=[token.text for token in explanation.tokens],
        codes=[
            {
                "position": code.position,
                "weight": f"{code.weight:.1%}",
                "contribution": f"{code.contribution:.3f}",
                "cells": [
                    {"strength": f"{share:.2f}", "title": f"{share:.1%}"}
                    for share in explanation.attention[code.position]
                ],
            }
            for code in top
        ],
        codes_title=codes_title(explanation, len(top)),
    )


def codes_title(explanation: "Explanation", shown: int) -> str:
    """Which codes are shown, and of how many."""
    total = len(explanation.codes)
    return f"the {shown} codes with the largest weights of {total}" if shown < total else f"all {total} codes"


def truncation_note(explanation: "Explanation") -> str:
    """The number of truncated tokens in words; empty if there are none."""
    counts = {"context": explanation.context_truncated, "candidate": explanation.candidate_truncated}
    return ", ".join(f"{count} tokens of the {side} truncated" for side, count in counts.items() if count)


def _texts(explanation: "Explanation") -> list[dict[str, Any]]:
    """The texts with marked words: of a poly-encoder the context, of other scorers both."""
    context = {"side": "context", "parts": list(_parts(explanation.context, explanation.tokens))}
    if explanation.codes:
        return [context]
    return [
        context,
        {"side": "candidate", "parts": list(_parts(explanation.candidate, explanation.candidate_tokens))},
    ]


def _parts(text: str, tokens: "Sequence[TokenShare]") -> "Iterator[dict[str, Any]]":
    """A text in parts: tokens with their strength, and the text between them without."""
    done = 0
    largest = max((_strength(token) for token in tokens), default=0.0) or 1.0
    for token in tokens:
        special = token.start == token.end
        start = done if special else max(token.start, done)
        if start > done:
            yield {"text": text[done:start], "title": None}
        yield {
            "text": token.text if special else text[start : token.end],
            "title": _title(token),
            "special": special,
            "lowers": token.weight is None and token.contribution < 0,
            "strength": f"{_strength(token) / largest:.2f}",
        }
        done = done if special else max(done, token.end)
    yield {"text": text[done:], "title": None}


def _strength(token: "TokenShare") -> float:
    """What the colour of a token shows: attention if the scorer has it, otherwise the contribution."""
    return abs(token.contribution) if token.weight is None else token.weight


def _title(token: "TokenShare") -> str:
    if token.weight is None:
        return f"{token.contribution:+.4f}"
    return f"{token.weight:.1%} of the attention, {token.contribution:.3f} of the score"
