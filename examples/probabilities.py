"""Turn scores into probabilities and decisions with a few labelled pairs."""

import tercet
from tercet.data.sample import pairs

scorer = tercet.load("bi")
# people scored the similarity of these pairs from 0 to 5; from 3 on they count as matches
labelled = [tercet.Pair(pair.context, pair.candidate, float(pair.score >= 3)) for pair in pairs("en")]
train, test = labelled[::2], labelled[1::2]

calibration = tercet.calibrate(scorer, train)
print(f"threshold {calibration.threshold:.3f}, F1 {calibration.f1:.2f} on {len(train)} training pairs")

decisions = scorer.decide_pairs([pair.context for pair in test], [pair.candidate for pair in test])
correct = sum(bool(match) == bool(pair.score) for match, pair in zip(decisions, test, strict=True))
print(f"{correct} of {len(test)} test pairs are decided correctly")

print(scorer.probability("The train was late.", ["The train came late.", "I like trains."]).round(2))
