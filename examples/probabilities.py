"""Turn scores into probabilities and decisions with a few labelled pairs."""

import tercet
from tercet.data.sample import pairs

scorer = tercet.load("bi")
graded = pairs("en")  # people's grades, from 0 to 5
labelled = [tercet.Pair(pair.context, pair.candidate, float(pair.score >= 3)) for pair in graded]
train, test = labelled[::2], labelled[1::2]

calibration = tercet.calibrate(scorer, train)
print(f"a match from a score of {calibration.threshold:.3f}; F1 {calibration.f1:.2f} on {len(train)} pairs")

decided = scorer.decide_pairs([pair.context for pair in test], [pair.candidate for pair in test])
right = sum(bool(match) == bool(pair.score) for match, pair in zip(decided, test, strict=True))
print(f"right for {right} of {len(test)} other pairs")

print(scorer.probability("The train was late.", ["The train came late.", "I like trains."]).round(2))
