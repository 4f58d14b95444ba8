"""Which words of a dialogue decided on a reply, by each kind of scorer."""

import tercet

dialogue = ["I ordered a lamp last week.", "It arrived with a broken switch.", "Can I send it back?"]
reply = "Of course, returns are free within 30 days."
for name in ("bi", "poly", "cross"):
    explanation = tercet.load(name).explain(dialogue, reply)
    words = [token for token in explanation.tokens if token.text.isalpha()]
    best = sorted(words, key=lambda token: -token.contribution)[:3]
    print(f"{name}, {explanation.method}: {', '.join(token.text for token in best)}")
