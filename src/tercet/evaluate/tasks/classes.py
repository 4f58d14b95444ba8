"""Classification of pairs into named classes, such as natural language inference."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from tercet.errors import DataError, InputError
from tercet.evaluate.metrics import best_other_class, macro_f1
from tercet.evaluate.results import Case, Result, check_finite
from tercet.evaluate.significance import MeanOf
from tercet.evaluate.tasks.pairs import Pairs
from tercet.records import Context, Floats, Ints
from tercet.scorers.cross_scorer import CrossScorer
from tercet.scorers.scorer import Scorer

if TYPE_CHECKING:
    from tercet.scorers.pair_classifier import PairClassifier


@runtime_checkable
class PairClassifying(Protocol):
    """A bi-encoder that can have a classifier of pairs. To name its class would import torch."""

    classifier: "PairClassifier | None"

    def classify(self, contexts: Iterable[Context], candidates: Iterable[str]) -> Floats:
        """The probabilities of the classes, for each pair."""
        ...


@dataclass(frozen=True)
class ClassTask:
    """Find the class of each pair, with a cross-encoder of several classes or a bi-encoder's classifier."""

    name: str
    pairs: Pairs
    """The target of a pair is the number of its label."""
    labels: tuple[str, ...] = ()
    """The names of the labels, in the order of their numbers. Without names, numbers are compared."""

    def __post_init__(self) -> None:
        targets = self.pairs.targets
        strange = targets[(targets < 0) | (targets != np.floor(targets))]
        if strange.size:
            raise DataError(
                f"{self.name}: labels must be names or whole numbers from 0, got {strange[0]:g}: set labels "
                "or the score column"
            )
        if len(np.unique(targets)) < 2:
            raise InputError(f"{self.name}: at least 2 labels are needed, and all pairs have the same label")

    def texts(self) -> list[str]:
        """The texts that a baseline is fitted to."""
        return self.pairs.texts()

    def check(self, scorer: Scorer) -> None:
        """Raise if the scorer has no classes, or others."""
        self._columns(scorer)

    def run(self, scorer: Scorer, model: str) -> Result:
        """Accuracy and macro F1; a class that shares the highest value with another is not found."""
        columns = self._columns(scorer)
        if not isinstance(scorer, CrossScorer | PairClassifying):  # _columns has refused it
            raise InputError(f"{self.name}: {model} has no classes")
        values = scorer.classify(self.pairs.contexts, self.pairs.candidates)
        return self.of_values(values[:, columns], model)

    def of_values(self, values: Floats, model: str) -> Result:
        """The result of values ``[N, k]``, one per pair and label."""
        check_finite(values, model)
        labels: Ints = self.pairs.targets.astype(np.int64)
        rows = np.arange(len(values))
        other = best_other_class(values, labels)
        margins = values[rows, other].astype(np.float64) - values[rows, labels]
        predicted = np.where(margins < 0, labels, other)
        return Result(
            self.name,
            model,
            {"accuracy": MeanOf("right"), "macro F1": lambda at: macro_f1(at["predicted"], at["label"])},
            {"right": predicted == labels, "predicted": predicted, "label": labels},
            margins,
            lambda position: Case(
                self.pairs.contexts[position],
                wanted=self._label(int(labels[position])),
                got=f"{self._label(int(predicted[position]))} for {self.pairs.candidates[position]}",
            ),
        )

    def _columns(self, scorer: Scorer) -> list[int]:
        """The scorer's class for each label: by its name, or by its number if either has no names."""
        count, names = self._classes(scorer)
        if self.labels and names:
            known = {name.casefold(): number for number, name in enumerate(names)}
            wanted = [label.casefold() for label in self.labels]
            if known.keys() != set(wanted):
                raise InputError(
                    f"{self.name} has the labels {', '.join(self.labels)}, and the model has "
                    f"{', '.join(names)}: they must be the same"
                )
            return [known[label] for label in wanted]
        needed = len(self.labels) or int(self.pairs.targets.max()) + 1
        if count < needed or (self.labels and count > needed):
            raise InputError(f"{self.name} has {needed} labels, and the model has {count} classes")
        return list(range(count))

    def _classes(self, scorer: Scorer) -> tuple[int, tuple[str, ...]]:
        """The number of a scorer's classes, and their names if it has any."""
        if isinstance(scorer, CrossScorer) and scorer.config.num_labels > 1:
            return scorer.config.num_labels, scorer.config.labels
        if isinstance(scorer, PairClassifying) and scorer.classifier is not None:
            return scorer.classifier.num_labels, scorer.classifier.labels
        raise InputError(
            f"{self.name} needs a cross-encoder with several classes, or a bi-encoder that was trained with "
            "the objective softmax: this scorer has no classes"
        )

    def _label(self, number: int) -> str:
        return self.labels[number] if self.labels else f"class {number}"
