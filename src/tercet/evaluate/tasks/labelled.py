"""Tasks on labelled texts and their vectors: linear probes as in SentEval, and clustering."""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tercet.errors import InputError
from tercet.evaluate.results import Case, Result, check_finite
from tercet.evaluate.significance import MeanOf
from tercet.extras import require
from tercet.records import Floats, Ints
from tercet.scorers.dual_scorer import DualScorer
from tercet.scorers.scorer import Scorer

FOLDS = 10
INVERSE_PENALTIES = (0.001, 0.01, 0.1, 1.0)
"""Values of C of the logistic regression. A held-out tenth of the training texts chooses one."""


@runtime_checkable
class HasVectors(Protocol):
    """A baseline that encodes texts."""

    def vectors(self, texts: list[str]) -> Floats:
        """``[N, D]``: a vector per text."""


@dataclass(frozen=True)
class Labelled:
    """Texts, or pairs of texts, and the number of the label of each."""

    texts: list[str]
    others: list[str]
    """The second text of each pair; empty for single texts."""
    labels: Ints
    names: list[str]
    """The label names, in the order of their numbers."""

    def check_each(self, fewest: int, task: str) -> None:
        """Raise if a label has fewer than ``fewest`` texts."""
        counts = np.bincount(self.labels, minlength=len(self.names))
        rarest = int(counts.argmin())
        if counts[rarest] < fewest:
            raise InputError(
                f"{task}: each label needs at least {fewest} texts, and {self.names[rarest]!r} has "
                f"{counts[rarest]}"
            )

    def all_texts(self) -> list[str]:
        """All texts, the first and second ones of pairs."""
        return [*self.texts, *self.others]

    def features(self, scorer: Scorer, task: str) -> Floats:
        """``[N, D]``: the vectors of texts; ``[N, 2 D]`` for pairs, |u − v| and u ∗ v, as in SentEval."""
        vectors = _vectors(scorer, self.texts, task)
        if not self.others:
            return vectors
        others = _vectors(scorer, self.others, task)
        return np.concatenate([np.abs(vectors - others), vectors * others], axis=1)


@dataclass(frozen=True)
class ProbeTask:
    """How well a logistic regression predicts labels from the vectors."""

    name: str
    data: Labelled
    test: Labelled | None = None
    """Test data. Default: cross-validation with 10 folds."""
    seed: int = 0

    def __post_init__(self) -> None:
        self.data.check_each(FOLDS, self.name)

    def texts(self) -> list[str]:
        """The texts that a baseline is fitted to."""
        return self.data.all_texts()

    def check(self, scorer: Scorer) -> None:
        """Raise if the scorer has no vectors."""
        _check_vectors(scorer, self.name)

    def run(self, scorer: Scorer, model: str) -> Result:
        """Accuracy."""
        features = self.data.features(scorer, self.name)
        if self.test is None:
            tested, predicted = self.data, self._cross_validated(features)
        else:
            tested = self.test
            regression = _fit_regression(features, self.data.labels, self.seed)
            predicted = regression.predict(tested.features(scorer, self.name))
        right = predicted == tested.labels
        return Result(
            self.name,
            model,
            {"accuracy": MeanOf("right")},
            {"right": right},
            1.0 - right,
            lambda position: Case(
                tested.texts[position],
                wanted=tested.names[tested.labels[position]],
                got=tested.names[int(predicted[position])],
            ),
        )

    def _cross_validated(self, features: Floats) -> NDArray[Any]:
        selection = _sklearn("model_selection")
        labels = self.data.labels
        predicted = np.empty_like(labels)
        folds = selection.StratifiedKFold(FOLDS, shuffle=True, random_state=self.seed)
        for train, test in folds.split(features, labels):
            regression = _fit_regression(features[train], labels[train], self.seed)
            predicted[test] = regression.predict(features[test])
        return predicted


@dataclass(frozen=True)
class ClusterTask:
    """Whether k-means clusters of the vectors agree with the labels."""

    name: str
    data: Labelled
    seed: int = 0

    def texts(self) -> list[str]:
        """The texts that a baseline is fitted to."""
        return self.data.all_texts()

    def check(self, scorer: Scorer) -> None:
        """Raise if the scorer has no vectors."""
        _check_vectors(scorer, self.name)

    def run(self, scorer: Scorer, model: str) -> Result:
        """V-measure and adjusted Rand index, with as many clusters as labels."""
        cluster, metrics = _sklearn("cluster"), _sklearn("metrics")
        labels, names = self.data.labels, self.data.names
        features = self.data.features(scorer, self.name)
        clusters = cluster.KMeans(len(names), n_init=10, random_state=self.seed).fit_predict(features)
        majority = np.array([_most_frequent(labels[clusters == number]) for number in range(len(names))])
        return Result(
            self.name,
            model,
            {
                "V-measure": lambda at: float(metrics.v_measure_score(at["label"], at["cluster"])),
                "adjusted Rand": lambda at: float(metrics.adjusted_rand_score(at["label"], at["cluster"])),
            },
            {"label": labels, "cluster": clusters},
            (majority[clusters] != labels).astype(np.float64),
            lambda position: Case(
                self.data.texts[position],
                wanted=names[labels[position]],
                got=f"among {names[majority[clusters[position]]]}",
            ),
            half_samples=True,
        )


def _most_frequent(labels: Ints) -> int:
    return int(np.bincount(labels).argmax()) if len(labels) else 0


def _vectors(scorer: Scorer, texts: list[str], task: str) -> Floats:
    encoder = _check_vectors(scorer, task)
    vectors = encoder.encode_candidates(texts) if isinstance(encoder, DualScorer) else encoder.vectors(texts)
    check_finite(vectors, "the vectors")
    return vectors


def _check_vectors(scorer: Scorer, task: str) -> DualScorer | HasVectors:
    if isinstance(scorer, (DualScorer, HasVectors)):
        return scorer
    raise InputError(f"{task} needs a vector for each text, and this scorer has none: use a bi-encoder")


def _fit_regression(features: Floats, labels: Ints, seed: int) -> Any:
    """The logistic regression with the penalty that is best on a held-out tenth, fitted to all rows."""
    selection = _sklearn("model_selection")
    train, held_out, train_labels, held_out_labels = selection.train_test_split(
        features, labels, test_size=0.1, random_state=seed, stratify=labels
    )
    best = max(
        INVERSE_PENALTIES,
        key=lambda c: _regression(c).fit(train, train_labels).score(held_out, held_out_labels),
    )
    return _regression(best).fit(features, labels)


def _regression(c: float) -> Any:
    linear, pipeline = _sklearn("linear_model"), _sklearn("pipeline")
    scaler = _sklearn("preprocessing").StandardScaler()
    return pipeline.make_pipeline(scaler, linear.LogisticRegression(C=c, max_iter=1000))


def _sklearn(module: str) -> Any:
    return require(f"sklearn.{module}", extra="evaluate", purpose="evaluating vectors")
