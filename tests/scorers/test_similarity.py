"""``similarity``: the scores of a bi-encoder, from arrays."""

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from tests.conftest import SENTENCES

import tercet
from tercet.errors import InputError

FIRST, SECOND = [[3.0, 4.0]], [[4.0, 3.0], [0.0, 2.0]]


def test_the_cosine_of_two_vectors(tiny: tercet.BiEncoder) -> None:
    # (3·4 + 4·3) / (5·5) and 4·2 / (5·2)
    np.testing.assert_allclose(tiny.similarity(FIRST, SECOND), [[0.96, 0.8]], rtol=1e-6)


def test_a_model_that_compares_by_dot_product_has_dot_products(tiny: tercet.BiEncoder) -> None:
    tiny.config = tercet.BiConfig(similarity="dot")
    np.testing.assert_array_equal(tiny.similarity(FIRST, SECOND), [[24, 8]])


def test_one_vector_is_a_row(tiny: tercet.BiEncoder) -> None:
    assert tiny.similarity(FIRST[0], SECOND).shape == (1, 2)


def test_the_similarity_of_encoded_texts_is_their_score(tiny: tercet.BiEncoder) -> None:
    vectors = tiny.encode(SENTENCES)
    np.testing.assert_allclose(
        tiny.similarity(vectors, vectors), tiny.score_many(SENTENCES, SENTENCES), atol=1e-6
    )


@pytest.mark.parametrize("dimensions", [None, 64])
def test_it_equals_sentence_transformers(minilm: tercet.BiEncoder, dimensions: int | None) -> None:
    from tercet.formats.backbone import backbone_folder

    theirs = SentenceTransformer(str(backbone_folder()), device="cpu", truncate_dim=dimensions)
    texts = [*SENTENCES, "Where is my parcel?"]
    vectors = minilm.encode(texts, dimensions=dimensions)
    np.testing.assert_allclose(vectors, theirs.encode(texts), atol=1e-6)
    expected = theirs.similarity(theirs.encode(texts), theirs.encode(texts))
    np.testing.assert_allclose(minilm.similarity(vectors, vectors), expected, atol=1e-6)


@pytest.mark.parametrize("texts", ["a text", ["one", "two"], [["one"], [2]]])
def test_texts_are_refused_with_the_call_that_compares_them(tiny: tercet.BiEncoder, texts: object) -> None:
    with pytest.raises(
        InputError, match=r"encode texts first, or compare them with score_many\(texts, texts\)"
    ):
        tiny.similarity(texts, texts)  # type: ignore[arg-type]


def test_different_widths_are_refused(tiny: tercet.BiEncoder) -> None:
    with pytest.raises(InputError, match="equally many dimensions, got 2 and 3: encode them with the same"):
        tiny.similarity(FIRST, [[1.0, 2.0, 3.0]])


@pytest.mark.parametrize("shape", [(2, 2, 2), (2, 0)])
def test_other_shapes_are_refused(tiny: tercet.BiEncoder, shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"first must have the shape \[N, D\] or \[D\], got \[2, "):
        tiny.similarity(np.zeros(shape), SECOND)
