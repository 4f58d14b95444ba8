"""BERTopic finds topics with vectors of tercet."""

import numpy as np
import pytest
from tests.integrations.conftest import QUERY, TEXTS

import tercet
from tercet.data.sample import questions

pytest.importorskip("bertopic", reason="needs bertopic")

from bertopic import BERTopic
from bertopic.backend._utils import select_backend
from bertopic.representation import KeyBERTInspired
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

from tercet.integrations.bertopic import TercetBackend

pytestmark = pytest.mark.slow


def test_vectors_equal_the_library(minilm: tercet.BiEncoder) -> None:
    backend = TercetBackend(minilm)
    assert select_backend(backend) is backend
    np.testing.assert_allclose(backend.embed(TEXTS), minilm.encode(TEXTS), atol=1e-5)


def test_topics_of_a_faq_are_found(minilm: tercet.BiEncoder) -> None:
    entries = questions("en")
    texts = [entry.question for entry in entries]
    topics = BERTopic(
        embedding_model=TercetBackend(minilm),
        umap_model=PCA(5, random_state=0),
        hdbscan_model=KMeans(len({entry.topic for entry in entries}), random_state=0, n_init=5),
        representation_model=KeyBERTInspired(),
    )
    found, _ = topics.fit_transform(texts)
    of_query = topics.transform([QUERY])[0][0]
    card = texts.index("Why was my card payment refused?")
    assert found[card] == of_query
    assert "payment" in [word for word, _ in topics.get_topic(of_query)]
