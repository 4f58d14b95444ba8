"""Encode any number of texts into a file and find the nearest ones with numpy alone."""

import tempfile
from pathlib import Path

import numpy as np

import tercet
from tercet.data.sample import pairs

scorer = tercet.load("bi")
sentences = [pair.context for pair in pairs("en")]

with tempfile.TemporaryDirectory() as folder:
    written = scorer.encode(iter(sentences), Path(folder) / "vectors.npy")
    print(f"{written.count} vectors of {written.width}")
    vectors = tercet.open_vectors(written.path)
    code = scorer.encode_contexts(["the train was late"]).vectors[0, 0]
    print(sentences[int(np.argmax(vectors @ code))])
