"""Find pairs of texts that say the same, and groups of similar texts."""

import tercet
from tercet.data.sample import questions

scorer = tercet.load("bi")
texts = [entry.question for entry in questions("en")]

for pair in tercet.closest_pairs(scorer, texts, count=3):
    print(f"{pair.score:.2f} {texts[pair.first]} = {texts[pair.second]}")

largest = tercet.clusters(scorer, texts, threshold=0.5)[0]  # the first text is the centre
print(len(largest), "questions about:", texts[largest[0]])
