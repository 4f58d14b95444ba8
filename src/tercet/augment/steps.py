"""The steps of the pipeline: each declares its inputs and computes one file or one trained model."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from tercet.augment.cache import FileStep, GrowingFileStep, RunStep, complete_lines
from tercet.augment.changes import change_words
from tercet.augment.contrasts import contrasts, split
from tercet.augment.given_pairs import given_pairs
from tercet.augment.gold import Gold, write_examples, write_rows
from tercet.augment.gold_distribution import match_gold_distribution
from tercet.augment.label_noise import label_noise
from tercet.augment.new_pairs import SAMPLERS, new_pairs
from tercet.augment.provenance import data_digest, training_provenance, words_provenance
from tercet.augment.silver import (
    PAIRS_AT_ONCE,
    ScoreRange,
    Silver,
    binarize,
    label,
    read_new_pairs,
    read_silver,
    with_agreement,
    write_pairs,
)
from tercet.data.overlap import comparison_key
from tercet.data.rows import count_rows, read_rows
from tercet.errors import DataError, InputError
from tercet.files.digest import path_digest, rows_digest
from tercet.files.structured import json_text, read_json
from tercet.formats.load import load
from tercet.records import Example
from tercet.scorers.cross import CrossEncoder
from tercet.scorers.scorer import Scorer
from tercet.settings.augment import PairsConfig, Sampler, SamplingConfig, WordChange, WordsConfig
from tercet.settings.models import Precision
from tercet.settings.recipe import Recipe
from tercet.training.reporter import Reporter
from tercet.training.run import run_recipe


@dataclass(frozen=True)
class WriteGold(FileStep):
    """Gold pairs as a file."""

    split: str
    examples: Sequence[Example]

    @property
    def name(self) -> str:
        """The file's name."""
        return f"{self.split}.jsonl"

    def inputs(self) -> Mapping[str, Any]:
        """The pairs."""
        return {"rows": rows_digest(asdict(example) for example in self.examples)}

    def write(self, file: Path) -> None:
        """Write the pairs."""
        write_examples(self.examples, file)


@dataclass(frozen=True)
class ChangeWords(FileStep):
    """Gold pairs with changed words."""

    change: WordChange
    config: WordsConfig
    gold: Gold
    device: str | None

    @property
    def name(self) -> str:
        """The file's name."""
        return f"silver-{self.change}.jsonl"

    def inputs(self) -> Mapping[str, Any]:
        """The gold pairs, the settings, and the models and word lists."""
        return {
            "gold": rows_digest(asdict(example) for example in self.gold.train),
            "known": rows_digest(sorted(self.gold.known_pairs())),
            "words": asdict(replace(self.config, changes=(self.change,))),
            "folders": words_provenance(self.change, self.config),
        }

    def write(self, file: Path) -> None:
        """Write the changed pairs that are not gold pairs."""
        known = self.gold.known_pairs()
        rows = change_words(self.gold.train, self.change, self.config, device=self.device)
        write_pairs([row for row in rows if _key(row) not in known], file)


@dataclass(frozen=True)
class Train(RunStep):
    """A trained model: a labeller, a student, or a model that these start from."""

    run_name: str
    recipe: Recipe
    later_test: Sequence[Example]
    """Test data, which must not be trained on."""
    root: Path | None
    device: str | None
    reporter: Reporter

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.run_name

    def inputs(self) -> Mapping[str, Any]:
        """The recipe, its data and models, and the test data."""
        later_test = rows_digest(asdict(example) for example in self.later_test)
        return training_provenance(self.recipe, self.root) | {"later_test": later_test}

    def train(self, folder: Path, *, resume: bool) -> None:
        """Run the recipe."""
        run_recipe(
            self.recipe,
            folder,
            root=self.root,
            resume=resume,
            device=self.device,
            reporter=self.reporter,
            later_test=self.later_test,
        )


@dataclass(frozen=True)
class MeasureNoise(FileStep):
    """The labellers' noise on dev data."""

    labellers: "Labellers"
    dev_file: Path
    dev: Sequence[Example]
    scores: ScoreRange
    threshold: float | None = None
    match_from: float | None = None

    @property
    def name(self) -> str:
        """The file's name."""
        return "noise.json"

    def inputs(self) -> Mapping[str, Any]:
        """The labellers, the dev data, and what a match is."""
        matches = {"threshold": self.threshold, "match_from": self.match_from}
        return {**self.labellers.inputs(), "dev": path_digest(self.dev_file), **matches}

    def write(self, file: Path) -> None:
        """Label the dev data and compare."""
        noise = label_noise(
            self.labellers.load(),
            self.dev,
            self.scores,
            threshold=self.threshold,
            match_from=self.match_from,
        )
        file.write_text(json_text(asdict(noise)), encoding="utf-8")


@dataclass(frozen=True)
class SamplePairs(FileStep):
    """New pairs of one sampler."""

    title: str
    sampler: Sampler
    config: SamplingConfig
    texts: Sequence[str]
    known: set[tuple[str, str]]
    device: str | None

    @property
    def name(self) -> str:
        """The file's name."""
        return f"pairs-{file_name(self.title)}.jsonl"

    @cached_property
    def searcher(self) -> Scorer | None:
        """The bi-encoder of semantic sampling."""
        if not SAMPLERS[self.sampler].semantic:
            return None
        return load(self.config.searcher, device=self.device, runtime="torch")

    def inputs(self) -> Mapping[str, Any]:
        """The texts, the labelled pairs, and the settings that the sampler uses."""
        return {
            "texts": rows_digest(self.texts),
            "known": rows_digest(sorted(self.known)),
            "sampler": self.sampler,
            "settings": {name: getattr(self.config, name) for name in SAMPLERS[self.sampler].settings},
            "searcher": getattr(self.searcher, "fingerprint", None),
        }

    def write(self, file: Path) -> None:
        """Sample the pairs."""
        found = new_pairs(self.texts, self.sampler, self.config, known=self.known, searcher=self.searcher)
        write_pairs(found, file)


@dataclass(frozen=True)
class TakePairs(FileStep):
    """The given pairs that are not labelled yet."""

    title: str
    config: PairsConfig
    known: set[tuple[str, str]]
    root: Path | None

    @property
    def name(self) -> str:
        """The file's name."""
        return f"pairs-{file_name(self.title)}.jsonl"

    def inputs(self) -> Mapping[str, Any]:
        """The files, the settings, and the labelled pairs."""
        return {
            "files": [data_digest(file, self.root) for file in self.config.files],
            "pairs": asdict(self.config),
            "known": rows_digest(sorted(self.known)),
        }

    def write(self, file: Path) -> None:
        """Read the pairs."""
        write_pairs(given_pairs(self.config, self.title, known=self.known, root=self.root), file)


@dataclass(frozen=True)
class LabelPairs(GrowingFileStep):
    """New pairs with the labellers' scores."""

    title: str
    pairs: Path
    labellers: "Labellers"
    scores: ScoreRange
    progress: Callable[[int, int, dict[str, float]], None]

    @property
    def name(self) -> str:
        """The file's name."""
        return f"labelled-{file_name(self.title)}.jsonl"

    def inputs(self) -> Mapping[str, Any]:
        """The pairs, the labellers, and the range of scores."""
        return {**self.labellers.inputs(), "pairs": path_digest(self.pairs), "scores": asdict(self.scores)}

    def append(self, file: Path) -> None:
        """Label the pairs that are not in the file yet."""
        done, total = complete_lines(file), count_rows(self.pairs) or 0
        waiting = islice(read_new_pairs(self.pairs), done, None)
        labelled = label(waiting, self.labellers.load(), self.scores)
        write_pairs(self._with_progress(labelled, done, total), file)

    def _with_progress(self, rows: Iterable[Silver], done: int, total: int) -> Iterator[Silver]:
        for number, row in enumerate(rows, start=done + 1):
            yield row
            if (number - done) % PAIRS_AT_ONCE == 0 or number == total:
                self.progress(number, total, {})


@dataclass(frozen=True)
class SelectSilver(FileStep):
    """The labelled pairs that students learn from."""

    title: str
    labelled: Path
    gold: Gold
    scores: ScoreRange
    max_disagreement: float | None = None
    threshold: float | None = None
    """For binary labels."""
    match_gold: tuple[int, int] | None = None
    """To keep pairs whose scores are distributed like gold scores: their number, and a seed."""

    @property
    def name(self) -> str:
        """The file's name."""
        return f"silver-{file_name(self.title)}.jsonl"

    def inputs(self) -> Mapping[str, Any]:
        """The labelled pairs and the settings of the selection."""
        return {
            "labelled": path_digest(self.labelled),
            "gold": rows_digest(self.gold.scores().tolist()),
            "max_disagreement": self.max_disagreement,
            "threshold": self.threshold,
            "match gold": None if self.match_gold is None else list(self.match_gold),
        }

    def write(self, file: Path) -> None:
        """Select by agreement and by the distribution of gold scores, then binarize if requested."""
        given = np.array([row.score for row in self._agreed()])
        if not len(given):
            raise DataError(
                f"{self.title}: the labellers agree on no pair: raise max_disagreement, or remove it"
            )
        kept = self._agreed()
        if self.match_gold is not None:
            wanted, seed = self.match_gold
            chosen = match_gold_distribution(given, self.gold.scores(), min(wanted, len(given)), seed=seed)
            positions = set(chosen.tolist())
            kept = (row for position, row in enumerate(kept) if position in positions)
        write_pairs(kept if self.threshold is None else binarize(kept, self.threshold, self.scores), file)

    def _agreed(self) -> Iterator[Silver]:
        rows = read_silver(self.labelled)
        limit = self.max_disagreement
        return rows if limit is None else with_agreement(rows, limit)


@dataclass(frozen=True)
class WriteContrasts(FileStep):
    """Examples for distillation: training rows, or dev rows."""

    title: str
    files: Sequence[Path]
    dev: bool

    @property
    def name(self) -> str:
        """The file's name."""
        return f"contrasts-{file_name(self.title)}{'-dev' if self.dev else ''}.jsonl"

    def inputs(self) -> Mapping[str, Any]:
        """The scored pairs."""
        return {"files": [path_digest(file) for file in self.files]}

    def write(self, file: Path) -> None:
        """Write the rows."""
        train, dev = split(contrasts(pair for each in self.files for pair in _scored_pairs(each)))
        rows = dev if self.dev else train
        if not rows:
            raise DataError(
                f"{self.title}: too few texts have two partners with different scores: raise top_k, or add "
                "texts"
            )
        write_rows(rows, file)


@dataclass(frozen=True)
class Labellers:
    """The cross-encoders that label."""

    models: list[Path] = field(default_factory=list)
    precision: Precision = "fp32"
    device: str | None = None

    def inputs(self) -> dict[str, Any]:
        """Their fingerprints and precision."""
        names = [str(read_json(model.parent / "result.json")["fingerprint"]) for model in self.models]
        return {"labellers": names, "precision": self.precision}

    def load(self) -> list[CrossEncoder]:
        """The models."""
        return [self._load(model) for model in self.models]

    def _load(self, model: Path) -> CrossEncoder:
        scorer = load(model, device=self.device, precision=self.precision, runtime="torch")
        if not isinstance(scorer, CrossEncoder):
            raise InputError(f"a labeller must be a cross-encoder, and {model} is a {scorer.kind}-encoder")
        return scorer


def check_no_leak(silver: Path, gold: Gold) -> None:
    """Raise if silver pairs are also gold, dev or test pairs."""
    known = gold.known_pairs()
    leaked = [row for row in read_silver(silver) if _key(row) in known]
    if leaked:
        raise DataError(
            f"{silver} contains {len(leaked)} pairs of the gold, dev or test data, such as "
            f"{leaked[0].context!r}: remove the file, and it is created again without them"
        )


def file_name(title: str) -> str:
    """A title as part of a file name."""
    return title.replace(", ", "-").replace(" ", "-").replace("+", "-")


def _key(row: Silver) -> tuple[str, str]:
    return comparison_key(row.context), comparison_key(row.candidate)


def _scored_pairs(file: Path) -> Iterator[tuple[str, str, float]]:
    for row in read_rows(file):
        yield row.columns["context"], row.columns["candidate"], float(row.columns["score"])
