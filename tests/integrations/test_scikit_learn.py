"""A scikit-learn pipeline, a grid search and clones, with models of tercet."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from tests.integrations.conftest import TEXTS

import tercet
from tercet.data.sample import questions
from tercet.integrations.scikit_learn import TercetVectorizer


def test_vectors_equal_the_library(minilm: tercet.BiEncoder) -> None:
    vectors = TercetVectorizer(minilm).fit_transform(TEXTS)
    np.testing.assert_allclose(vectors, minilm.encode(TEXTS), atol=1e-5)
    np.testing.assert_allclose(TercetVectorizer(minilm).transform(np.array(TEXTS)), vectors, atol=1e-5)


def test_a_clone_shares_the_model_and_has_the_same_parameters(minilm: tercet.BiEncoder) -> None:
    vectorizer = TercetVectorizer(minilm, side="context")
    copy = clone(vectorizer)
    assert copy is not vectorizer
    assert copy.get_params() == {"model": minilm, "side": "context"}
    assert copy.model is minilm


def test_parameters_can_be_set() -> None:
    assert TercetVectorizer("bi").set_params(side="context").get_params() == {
        "model": "bi",
        "side": "context",
    }


def test_a_pipeline_learns_the_topics_of_a_faq(minilm: tercet.BiEncoder) -> None:
    entries = questions("en")
    texts, topics = [entry.question for entry in entries], [entry.topic for entry in entries]
    pipeline = make_pipeline(TercetVectorizer(minilm), LogisticRegression(C=10))
    search = GridSearchCV(pipeline, {"tercetvectorizer__side": ["context", "candidate"]}, cv=2)
    search.fit(texts[::2], topics[::2])
    assert search.score(texts[1::2], topics[1::2]) > 0.6


@pytest.mark.parametrize("model", ["bi", "all-MiniLM-L6-v2"])
def test_a_name_is_loaded(model: str) -> None:
    assert TercetVectorizer(model).fit_transform(["one text"]).shape == (1, 384)
