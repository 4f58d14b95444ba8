"""Published figures that the tables show in italics beside ours."""

SELECTION = {
    "ubuntu bi": "80.6 ± 0.4",
    "ubuntu poly": "81.3 ± 0.2",
    "ubuntu cross": "82.8 ± 0.3",
    "convai2 bi": "81.7 ± 0.2",
    "convai2 poly": "83.7 ± 0.2",
    "convai2 cross": "84.8 ± 0.3",
}
"""Humeau et al. (2020), table 4, BERT's own weights: ConvAI2 with the official candidates, Ubuntu v2."""

CODES = {
    "learnt": {1: 81.9, 4: 83.8, 16: 84.4, 64: 84.9, 360: 85.3},
    "first": {1: 83.2, 4: 83.4, 16: 85.2, 64: 86.0, 360: 86.3},
    "last": {1: 82.9, 4: 82.8, 16: 83.9, 64: 84.9, 360: 86.3},
    "last_and_first": {4: 82.9, 16: 83.8, 64: 85.0, 360: 86.2},
}
"""Humeau et al. (2020), table 5, ConvAI2 dev."""

NEGATIVES = {31: 81.0, 63: 81.7, 127: 82.3, 255: 83.0, 511: 83.3}
"""Humeau et al. (2020), table 3, ConvAI2."""

ABLATIONS = {
    "reduction first": "83.3",
    "reduction mean_first 16": "82.9",
    "reduction mean_first 64": "82.7",
    "reduction mean": "83.1",
    "layers top bi": "74.2",
    "layers top four bi": "82.0",
    "layers all but embeddings bi": "83.3",
    "layers all bi": "83.0",
    "layers top cross": "80.6",
    "layers top four cross": "86.3",
    "layers all but embeddings cross": "87.3",
    "layers all cross": "86.6",
} | {f"negatives {count}": f"{value}" for count, value in NEGATIVES.items()}
"""Humeau et al. (2020), sections 5.2 and 5.3, ConvAI2."""

SENTENCE_BERT = {
    ("pooling, sbert-nli", "mean"): 80.78,
    ("pooling, sbert-nli", "max"): 79.07,
    ("pooling, sbert-nli", "first"): 79.80,
    ("pooling, sbert-stsb", "mean"): 87.44,
    ("pooling, sbert-stsb", "max"): 69.92,
    ("pooling, sbert-stsb", "first"): 86.62,
    ("concatenation, sbert-nli", "u, v"): 66.04,
    ("concatenation, sbert-nli", "|u − v|"): 69.78,
    ("concatenation, sbert-nli", "u ∗ v"): 70.54,
    ("concatenation, sbert-nli", "|u − v|, u ∗ v"): 78.37,
    ("concatenation, sbert-nli", "u, v, u ∗ v"): 77.44,
    ("concatenation, sbert-nli", "u, v, |u − v|"): 80.78,
    ("concatenation, sbert-nli", "u, v, |u − v|, u ∗ v"): 80.44,
}
"""Reimers & Gurevych (2019), table 6, STSb dev, by table and row of ``sbert_tables.json``."""
