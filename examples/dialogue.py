"""Choose the next line of a dialogue."""

import tercet
from tercet.data.sample import dialogues

scorer = tercet.load("bi")
samples = dialogues("en")
replies = [dialogue.turns[-1] for dialogue in samples]  # the right reply is one of 40

context = samples[0].turns[:-1]  # a context may be a list of turns, oldest first
best = scorer.rank(context, replies, k=1)[0]
print("\n".join(context))
print("->", best.text)
