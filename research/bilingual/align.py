"""Find, for each Korean piece, the English pieces whose mean is its first word vector.

python research/bilingual/align.py --work WORK

A Korean piece is compared with the English pieces of the translations it occurs in, by the Dice coefficient;
the best four count.
"""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from texts import Spans, TokenFile
from tokenizers import Tokenizer
from vocabulary import ENGLISH_PIECES

NEIGHBOURS = 4
DOCS = 90_000
"""Largest number of sentences of a set to count."""
ROWS = 2000
"""Korean pieces at a time."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="folder of intermediate files")
    work = parser.parse_args().work
    file = TokenFile(work / "backbone.npz")
    size = Tokenizer.from_file(str(work / "tokenizer" / "tokenizer.json")).get_vocab_size()
    english, korean = (bags(file, parallel_spans(file, side), size) for side in ("en", "ko"))
    pieces, weights = neighbours(korean[:, ENGLISH_PIECES:], english[:, :ENGLISH_PIECES])
    np.savez_compressed(work / "align.npz", pieces=pieces, weights=weights)
    print(f"{int((weights.sum(axis=1) > 0).sum())} of {len(pieces)} new pieces occur in parallel text")


def parallel_spans(file: TokenFile, side: str) -> Spans:
    names = ("general", "korsts", "docs")
    return np.concatenate([file.columns[f"parallel/{name}/{side}"][:DOCS] for name in names])


def bags(file: TokenFile, spans: Spans, size: int) -> csr_matrix:
    """``[N, V]``: 1 where a text has a piece."""
    lengths = spans[:, 1] - spans[:, 0]
    rows = np.repeat(np.arange(len(lengths)), lengths)
    ids = np.concatenate([file.tokens[start:end] for start, end in spans])
    matrix = csr_matrix((np.ones(len(ids), np.float32), (rows, ids)), shape=(len(lengths), size))
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def neighbours(korean: csr_matrix, english: csr_matrix) -> tuple[NDArray[np.uint16], NDArray[np.float16]]:
    """English pieces and their weights, each ``[new pieces, 4]``; weights are 0 for unseen pieces."""
    korean_counts = np.asarray(korean.sum(axis=0)).ravel()
    english_counts = np.asarray(english.sum(axis=0)).ravel()
    pieces = np.zeros((korean.shape[1], NEIGHBOURS), np.uint16)
    weights = np.zeros((korean.shape[1], NEIGHBOURS), np.float16)
    by_piece = korean.T.tocsr()
    for start in range(0, len(pieces), ROWS):
        together = (by_piece[start : start + ROWS] @ english).tocsr()
        for row in range(together.shape[0]):
            part = slice(together.indptr[row], together.indptr[row + 1])
            found, counts = together.indices[part], together.data[part]
            if not len(found):
                continue
            dice = 2 * counts / (korean_counts[start + row] + english_counts[found])
            dice = dice * (counts > 1) + 1e-6 * counts  # pieces seen together once count for little
            best = np.argsort(-dice)[:NEIGHBOURS]
            pieces[start + row, : len(best)] = found[best]
            weights[start + row, : len(best)] = dice[best] / dice[best].sum()
    return pieces, weights


if __name__ == "__main__":
    main()
