"""Tasks on texts with labels, by their vectors: probes as in SentEval, and clusters."""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tercet.errors import InputError
from tercet.evaluate.results import Case, Result, check_scores
from tercet.evaluate.significance import MeanOf
from tercet.extras import require
from tercet.models.dual import DualEncoder
from tercet.models.scorer import Scorer
from tercet.records import Counts, Floats

FOLDS = 10
PENALTIES = (0.001, 0.01, 0.1, 1.0)
"""How loosely a probe may fit its texts; the best on a tenth of them that is held out."""


@runtime_checkable
class HasVectors(Protocol):
    """A baseline that makes vectors of texts."""

    def vectors(self, texts: list[str]) -> Floats:
        """``[N, D]``"""


@dataclass(frozen=True)
class Labelled:
    """Texts, or pairs of texts, and the number of each one's label."""

    texts: list[str]
    others: list[str]
    """The second text of each pair; none for single texts."""
    labels: Counts
    names: list[str]

    def check_each(self, fewest: int, task: str) -> None:
        """Raise if a label has fewer texts than that."""
        counts = np.bincount(self.labels, minlength=len(self.names))
        least = int(counts.argmin())
        if counts[least] < fewest:
            raise InputError(
                f"{task}: the label {self.names[least]!r} has {counts[least]} texts; {fewest} are needed"
            )

    def both(self) -> list[str]:
        """All texts."""
        return [*self.texts, *self.others]

    def features(self, scorer: Scorer, task: str) -> Floats:
        """The vectors; of pairs |u − v| and u ∗ v, as SentEval has it."""
        vectors = _vectors(scorer, self.texts, task)
        if not self.others:
            return vectors
        others = _vectors(scorer, self.others, task)
        return np.concatenate([np.abs(vectors - others), vectors * others], axis=1)


@dataclass(frozen=True)
class ProbeTask:
    """How well a logistic regression tells labels from vectors alone."""

    name: str
    data: Labelled
    test: Labelled | None = None
    """Tested on these; 10 folds of the data otherwise."""
    seed: int = 0

    def __post_init__(self) -> None:
        self.data.check_each(FOLDS, self.name)

    def texts(self) -> list[str]:
        """What a baseline learns its words from."""
        return self.data.both()

    def check(self, scorer: Scorer) -> None:
        """It needs vectors."""
        _check_vectors(scorer, self.name)

    def run(self, scorer: Scorer, model: str) -> Result:
        """Accuracy."""
        features = self.data.features(scorer, self.name)
        if self.test is None:
            tested, found = self.data, self._in_folds(features)
        else:
            tested = self.test
            found = _fitted(features, self.data.labels, self.seed).predict(tested.features(scorer, self.name))
        right = found == tested.labels
        names = tested.names
        return Result(
            self.name,
            model,
            {"accuracy": MeanOf("right")},
            {"right": right},
            1.0 - right,
            lambda place: Case(
                tested.texts[place], wanted=names[tested.labels[place]], got=names[int(found[place])]
            ),
        )

    def _in_folds(self, features: Floats) -> NDArray[Any]:
        selection = _sklearn("model_selection")
        labels = self.data.labels
        found = np.empty_like(labels)
        folds = selection.StratifiedKFold(FOLDS, shuffle=True, random_state=self.seed)
        for train, test in folds.split(features, labels):
            found[test] = _fitted(features[train], labels[train], self.seed).predict(features[test])
        return found


@dataclass(frozen=True)
class ClusterTask:
    """Whether k-means over the vectors finds the labels."""

    name: str
    data: Labelled
    seed: int = 0

    def texts(self) -> list[str]:
        """What a baseline learns its words from."""
        return self.data.both()

    def check(self, scorer: Scorer) -> None:
        """It needs vectors."""
        _check_vectors(scorer, self.name)

    def run(self, scorer: Scorer, model: str) -> Result:
        """V-measure and adjusted Rand index, with as many clusters as labels."""
        cluster, metrics = _sklearn("cluster"), _sklearn("metrics")
        features = self.data.features(scorer, self.name)
        count = len(self.data.names)
        found = cluster.KMeans(count, n_init=10, random_state=self.seed).fit_predict(features)
        labels = self.data.labels
        majority = np.array([_most(labels[found == each]) for each in range(count)])
        return Result(
            self.name,
            model,
            {
                "V-measure": lambda at: float(metrics.v_measure_score(at["label"], at["found"])),
                "adjusted Rand": lambda at: float(metrics.adjusted_rand_score(at["label"], at["found"])),
            },
            {"label": labels, "found": found},
            (majority[found] != labels).astype(np.float64),
            lambda place: Case(
                self.data.texts[place],
                wanted=self.data.names[labels[place]],
                got=f"among {self.data.names[majority[found[place]]]}",
            ),
            halves=True,
        )


def _most(labels: Counts) -> int:
    return int(np.bincount(labels).argmax()) if len(labels) else 0


def _vectors(scorer: Scorer, texts: list[str], task: str) -> Floats:
    capable = _check_vectors(scorer, task)
    made = capable.encode_candidates(texts) if isinstance(capable, DualEncoder) else capable.vectors(texts)
    check_scores(made, "the vectors")
    return made


def _check_vectors(scorer: Scorer, task: str) -> DualEncoder | HasVectors:
    if isinstance(scorer, (DualEncoder, HasVectors)):
        return scorer
    raise InputError(f"{task} needs a vector for each text, which this scorer has not: it reads pairs")


def _fitted(features: Floats, labels: Counts, seed: int) -> Any:
    """The regression with the penalty that did best on a held-out tenth."""
    linear, pipeline = _sklearn("linear_model"), _sklearn("pipeline")
    preprocessing, selection = _sklearn("preprocessing"), _sklearn("model_selection")

    def fit(penalty: float, rows: Floats, wanted: Counts) -> Any:
        scaled = preprocessing.StandardScaler()
        return pipeline.make_pipeline(scaled, linear.LogisticRegression(C=penalty, max_iter=1000)).fit(
            rows, wanted
        )

    train, held, wanted, kept = selection.train_test_split(
        features, labels, test_size=0.1, random_state=seed, stratify=labels
    )
    chosen = max(PENALTIES, key=lambda penalty: fit(penalty, train, wanted).score(held, kept))
    return fit(chosen, features, labels)


def _sklearn(module: str) -> Any:
    return require(f"sklearn.{module}", extra="evaluate", purpose="measuring vectors")
