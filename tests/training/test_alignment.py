"""First vectors of new pieces: means of the known pieces that their translations have in common."""

import numpy as np
import pytest
import torch

from tercet.training.alignment import NEIGHBOURS, Alignment, align, first_vectors

CAT, DOG, THE = 3, 4, 5
NEW_CAT, NEW_DOG, NEW_UNSEEN = 10, 11, 12


def aligned() -> Alignment:
    """Cats are in pairs 0, 1, dogs in 2, 3, and "the" is everywhere."""
    sources = [[THE, CAT, CAT], [CAT, THE], [THE, DOG], [THE, DOG]]
    targets = [[NEW_CAT], [NEW_CAT, NEW_CAT], [NEW_DOG], [6, NEW_DOG]]
    return align(sources, targets, first_new=10, count=3)


def test_weights_are_the_dice_coefficients() -> None:
    pieces, weights = aligned()
    assert pieces[0, :2].tolist() == [CAT, THE]
    cat, the = 2 * 2 / (2 + 2), 2 * 2 / (2 + 4)
    assert weights[0] == pytest.approx([cat / (cat + the), the / (cat + the), 0, 0])
    assert pieces[1, 0] == DOG


def test_pieces_that_meet_once_count_for_little() -> None:
    pieces, weights = align([[CAT, DOG], [CAT]], [[NEW_CAT], [NEW_CAT]], first_new=10, count=1)
    assert pieces[0, :2].tolist() == [CAT, DOG]
    assert weights[0, 1] < 1e-5


def test_a_piece_in_no_pair_has_no_weights() -> None:
    assert aligned().weights[2].tolist() == [0.0] * NEIGHBOURS


def test_a_first_vector_points_to_the_mean_of_its_neighbours() -> None:
    words = torch.randn(10, 64, generator=torch.Generator().manual_seed(1))
    alignment = aligned()
    vectors = first_vectors(words, alignment, seed=0)
    shares = torch.from_numpy(alignment.weights[0, :2])
    mean = shares @ words[[CAT, THE]]
    assert torch.cosine_similarity(vectors[0], mean, dim=0) > 0.9
    assert abs(float(torch.cosine_similarity(vectors[2], mean, dim=0))) < 0.5
    assert vectors.norm(dim=1).tolist() == pytest.approx([float(words.norm(dim=1).mean())] * 3, rel=0.3)


def test_first_vectors_depend_on_the_seed_only() -> None:
    words = torch.randn(10, 16, generator=torch.Generator().manual_seed(1))
    first, again, other = (first_vectors(words, aligned(), seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_pairs_without_known_pieces_are_left_out() -> None:
    found = align([[], [CAT]], [[NEW_CAT], [NEW_DOG]], first_new=10, count=2)
    assert np.array_equal(found.weights[0], np.zeros(NEIGHBOURS))
    assert found.pieces[1, 0] == CAT
