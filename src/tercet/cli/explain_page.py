"""An explanation as a page that opens offline: one file, no script."""

from html import escape
from string import Template
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tercet.records import Explanation, TokenShare

SHOWN_CODES = 12

PAGE = Template("""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Where a score comes from</title>
<style>
  :root { color-scheme: light dark; --heat: 38 92% 50%; }
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
  h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
  blockquote { margin: .3rem 0; padding-left: .8rem; border-left: 3px solid hsl(var(--heat)); }
  .text { white-space: pre-wrap; line-height: 2.1; font-size: 1.1rem; }
  mark { color: inherit; border-radius: .25rem; padding: .15rem 0; }
  .added { font-size: .75rem; opacity: .7; padding: .15rem .25rem; }
  table { border-collapse: collapse; font-size: .85rem; }
  td, th { padding: .15rem .4rem; text-align: right; font-variant-numeric: tabular-nums; }
  .grid td.cell { min-width: 1.6rem; height: 1.4rem; padding: 0; }
  .grid th.token { writing-mode: vertical-rl; text-align: left; font-weight: normal; padding: .3rem 0; }
  .scroll { overflow-x: auto; } small { opacity: .7; }
</style>
<h1>Score $score</h1>
<blockquote>$candidate</blockquote>
<h2>What of the context carried it</h2>
<p class="text">$text</p>
<p><strong>$cut</strong></p>
<p><small>The stronger the colour, the more attention. Point at a word for its part of the score; the parts of
all words add up to it. Tokens that the model adds itself are in small print.</small></p>
<h2>Through which codes</h2>
<div class="scroll"><table class="grid">$grid</table></div>
<p><small>The $shown codes with the most weight of $codes; a row shows what a code looked at.</small></p>
</html>
""")


def page(explanation: "Explanation") -> str:
    """The whole page; every text in it is escaped."""
    strongest = max(token.weight for token in explanation.tokens)
    best = sorted(explanation.codes, key=lambda code: -code.weight)[:SHOWN_CODES]
    rows = [
        f"<tr><th>{code.position}<td>{code.weight:.1%}<td>{code.contribution:.3f}"
        + "".join(
            f'<td class="cell" style="background: hsl(var(--heat) / {share:.2f})" title="{share:.1%}">'
            for share in explanation.attention[code.position]
        )
        for code in best
    ]
    tokens = "".join(f'<th class="token">{escape(token.text)}' for token in explanation.tokens)
    return PAGE.substitute(
        score=f"{explanation.score:.4f}",
        candidate=escape(explanation.candidate),
        cut=cut_note(explanation),
        text=_marked(explanation.context, explanation.tokens, strongest),
        grid=f"<tr><th>code<th>weight<th>part{tokens}\n" + "\n".join(rows),
        shown=len(best),
        codes=len(explanation.codes),
    )


def cut_note(explanation: "Explanation") -> str:
    """What was not read, in words; nothing where all was."""
    cuts = {"context": explanation.context_cut, "candidate": explanation.candidate_cut}
    return ", ".join(f"{cut} tokens of the {name} not read" for name, cut in cuts.items() if cut)


def _marked(text: str, tokens: "Sequence[TokenShare]", strongest: float) -> str:
    """The context with a colour behind each token, and all that was not read without one."""
    parts = []
    done = 0
    for token in tokens:
        parts.append(escape(text[done : max(token.start, done)]))
        title = f'title="{token.weight:.1%} of the attention, {token.contribution:.3f} of the score"'
        colour = f"background: hsl(var(--heat) / {token.weight / strongest:.2f})"
        if token.start == token.end:
            parts.append(f'<mark class="added" style="{colour}" {title}>{escape(token.text)}</mark>')
            continue
        shown = escape(text[max(token.start, done) : token.end])
        parts.append(f'<mark style="{colour}" {title}>{shown}</mark>')
        done = max(done, token.end)
    return "".join([*parts, escape(text[done:])])
