"""KeyBERT finds keywords with vectors of tercet."""

import numpy as np
import pytest
from tests.integrations.conftest import TEXTS

import tercet

pytest.importorskip("keybert", reason="needs keybert")

from keybert import KeyBERT
from keybert.backend._utils import select_backend

from tercet.integrations.keybert import TercetBackend

pytestmark = pytest.mark.slow

TEXT = "The parcel is late because the driver of the delivery van fell ill on Monday."


def test_vectors_equal_the_library(minilm: tercet.BiEncoder) -> None:
    backend = TercetBackend(minilm)
    assert select_backend(backend) is backend
    np.testing.assert_allclose(backend.embed(TEXTS), minilm.encode(TEXTS), atol=1e-5)


def test_keywords_are_the_words_with_the_best_cosines(minilm: tercet.BiEncoder) -> None:
    found = KeyBERT(TercetBackend(minilm)).extract_keywords(TEXT, top_n=3)
    words = ["parcel", "late", "driver", "delivery", "van", "fell", "ill", "monday"]
    scores = minilm.similarity(minilm.encode([TEXT]), minilm.encode(words))[0]
    best = [words[position] for position in np.argsort(-scores)[:3]]
    assert [word for word, _ in found] == best
    assert [score for _, score in found] == pytest.approx(sorted(scores, reverse=True)[:3], abs=1e-3)
