"""The classifier of a bi-encoder: its features and probabilities, worked out by hand."""

from collections.abc import Callable
from math import exp
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.conftest import SENTENCES

import tercet
from tercet.errors import InputError
from tercet.scorers import pair_classifier
from tercet.scorers.pair_classifier import PairClassifier, concatenate

FolderOf = Callable[[str], Path]


def test_concatenations() -> None:
    left, right = torch.tensor([[1.0, 5.0]]), torch.tensor([[3.0, 2.0]])
    assert concatenate(left, right, ("u", "v", "difference")).tolist() == [[1, 5, 3, 2, 2, 3]]
    assert concatenate(left, right, ("difference", "product")).tolist() == [[2, 3, 3, 10]]
    assert concatenate(left, right, ("u",)).tolist() == [[1, 5]]


def test_probabilities_are_the_softmax_of_a_linear_layer() -> None:
    weights = np.array([[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]], dtype=np.float32)
    classifier = PairClassifier(weights, ("u", "difference"))
    left, right = np.array([[2.0, 5.0]], np.float32), np.array([[7.0, 4.0]], np.float32)
    logits = [2, 1, 0]  # u[0] = 2, |u - v|[1] = 1
    expected = [exp(each) / sum(map(exp, logits)) for each in logits]
    assert classifier.probabilities(left, right)[0].tolist() == pytest.approx(expected, rel=1e-6)


def test_blocks_of_rows_do_not_change_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(2, 11, 4)).astype(np.float32)
    classifier = PairClassifier(rng.normal(size=(3, 12)).astype(np.float32), ("u", "v", "difference"))
    whole = classifier.probabilities(left, right)
    monkeypatch.setattr(pair_classifier, "ROWS", 3)
    np.testing.assert_allclose(classifier.probabilities(left, right), whole, rtol=1e-5)


def test_a_bi_encoder_classifies_with_its_own_vectors(tiny: tercet.BiEncoder) -> None:
    rng = np.random.default_rng(0)
    tiny.classifier = PairClassifier(rng.normal(size=(2, 32)).astype(np.float32), ("u", "difference"))
    contexts, candidates = [SENTENCES[0], SENTENCES[1], SENTENCES[0]], SENTENCES[3:6]
    vectors = [tiny.encode_contexts(contexts).vectors[:, 0], tiny.encode_candidates(candidates)]
    expected = tiny.classifier.probabilities(*vectors)
    np.testing.assert_allclose(tiny.classify(contexts, candidates), expected, rtol=1e-4)
    assert tiny.describe()["labels"] == "2"


def test_a_bi_encoder_without_a_classifier_has_no_classes(tiny: tercet.BiEncoder) -> None:
    with pytest.raises(InputError, match="has no classes: train it on labelled pairs with the objective"):
        tiny.classify(["a dog"], ["never"])


def test_labels_must_be_as_many_as_classes() -> None:
    with pytest.raises(InputError, match="2 classes need as many different labels, got yes, yes"):
        PairClassifier(np.zeros((2, 4), np.float32), ("u",), ("yes", "yes"))
