"""Choose the next line of a dialogue, from its turns."""

import tercet
from tercet.data.sample import dialogues

scorer = tercet.load("bi")
talks = dialogues("en")
replies = [talk.turns[-1] for talk in talks]

best = scorer.rank(talks[0].turns[:-1], replies, k=1)[0]
print("\n".join(talks[0].turns[:-1]))
print("->", best.candidate)
