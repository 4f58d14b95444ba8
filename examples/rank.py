"""Rank the answers of the sample FAQ for a question."""

import tercet
from tercet.data.sample import questions

scorer = tercet.load("bi")
answers = [entry.answer for entry in questions("en")]

for ranked in scorer.rank("nobody was home when the driver came", answers, k=3):
    print(f"{ranked.score:.3f}  {ranked.text}")
