"""Candidates with their vectors as files that other programs read: Parquet, ``.npy`` and faiss."""
