"""A new poly-encoder: encode candidates once, match contexts against them, and explain a score."""

import tercet

config = tercet.PolyConfig(codes=16)  # learnt codes, two towers
scorer = tercet.PolyEncoder.from_backbone("bi", config=config)  # built on MiniLM, untrained

replies = ["The driver tries a neighbour first.", "Water it once a week.", "Yes, until midnight."]
vectors = scorer.encode_candidates(replies)  # [3, 384], can be cached
dialogue = ["Hi!", "What if nobody is home when the parcel comes?"]
codes = scorer.encode_contexts([dialogue])  # [1, 16, 384]
print(codes.vectors.shape, vectors.shape, scorer.match(codes, vectors).round(2))

explanation = scorer.explain(dialogue, replies[0])
for token in sorted(explanation.tokens, key=lambda token: -token.weight)[:3]:
    print(f"{token.text:>8} {token.weight:6.1%} of the attention, {token.contribution:5.2f} of the score")
