"""Encode any number of texts into a file, and find the nearest neighbour of a query."""

import tempfile
from pathlib import Path

import tercet
from tercet.data.sample import pairs

scorer = tercet.load("bi")
sentences = [pair.context for pair in pairs("en")]

with tempfile.TemporaryDirectory() as folder:
    # a generator is enough: the texts are encoded as a stream, in constant memory
    vectors = scorer.encode((text for text in sentences), Path(folder) / "vectors.npy")
    print(f"{len(vectors)} vectors of {vectors.shape[1]} dimensions")
    query = scorer.encode(["the train was late"])
    print(sentences[int(scorer.similarity(query, vectors).argmax())])
