"""scikit-learn: a transformer from texts to vectors."""

from collections.abc import Sequence
from typing import Self

from tercet.extras import require_package
from tercet.integrations.model import Model, loaded, vectors
from tercet.records import Floats
from tercet.settings.models import Side

require_package("sklearn", package="scikit-learn", purpose="tercet.integrations.scikit_learn")

from sklearn.base import BaseEstimator, TransformerMixin  # noqa: E402


class TercetVectorizer(TransformerMixin, BaseEstimator):
    """Vectors of texts by a bi- or poly-encoder. There is nothing to fit."""

    def __init__(self, model: Model = "bi", side: Side = "candidate") -> None:
        self.model = model
        self.side = side

    def fit(self, texts: Sequence[str], y: object = None) -> Self:
        """Load the model; the texts are not used."""
        self.loaded_ = loaded(self.model)
        return self

    def transform(self, texts: Sequence[str]) -> Floats:
        """``[N, D]``: the vector of each text."""
        if not self.__sklearn_is_fitted__():
            self.fit(texts)
        return vectors(self.loaded_, list(texts), side=self.side)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "loaded_")

    def __sklearn_clone__(self) -> Self:
        """A transformer with the same model, which is shared and not copied."""
        return type(self)(**self.get_params(deep=False))
