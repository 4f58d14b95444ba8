"""Augmented SBERT from recipe to students, step by step; every step's file is kept (``steps.py``).

gold.jsonl, dev.jsonl, test.jsonl
labeller-SEED                what labels
pairs-SAMPLER.jsonl          new pairs
labelled-SAMPLER.jsonl       with scores
silver-SAMPLER.jsonl         those that are learnt; of changed words, made of gold at once
student-SAMPLER-SEED         who learns
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from tercet.augment.changes import change_words
from tercet.augment.contrasts import contrasts
from tercet.augment.gold import Gold, pairs_in, read_gold, read_texts, write_lessons
from tercet.augment.like_gold import like_gold
from tercet.augment.new_pairs import DEPENDS_ON, new_pairs, wanted
from tercet.augment.noise import Noise, label_noise
from tercet.augment.recipe import AugmentRecipe
from tercet.augment.sampling import Sampler, SamplingConfig, distinct_texts
from tercet.augment.silver import (
    Range,
    Silver,
    agreed,
    decided,
    label,
    read_new_pairs,
    read_silver,
    write_pairs,
)
from tercet.augment.steps import Steps, hash_of, whole_lines
from tercet.augment.words import Change, WordConfig
from tercet.config import Precision
from tercet.data.overlap import folded
from tercet.data.rows import read_rows
from tercet.errors import DataError, InputError
from tercet.files import read_json
from tercet.models.cross import CrossEncoder
from tercet.models.load import load
from tercet.training.recipe import Recipe
from tercet.training.run import run_recipe, with_seed
from tercet.training.run_folder import Teller

GOLD_ALONE = "gold alone"


@dataclass(frozen=True)
class Made:
    """What a run has made."""

    gold: Gold
    scores: Range
    silver: dict[str, Path]
    """Files, by sampler or change."""
    students: dict[str, list[Path]]
    """Models of all seeds, by sampler or change; those of gold alone first."""
    labellers: list[Path]
    noise: Noise | None
    """Of the labellers, if there are any."""


class Pipeline:
    """One run of a recipe in its folder."""

    def __init__(
        self,
        recipe: AugmentRecipe,
        folder: Path,
        *,
        root: Path | None = None,
        device: str | None = None,
        precision: Precision = "fp32",
        teller: Teller | None = None,
    ) -> None:
        """``precision`` is that of labelling."""
        self.recipe = recipe
        self.scores = Range(lowest=recipe.student.objective.lowest, highest=recipe.student.objective.highest)
        self._root, self._device = root, device
        self._precision: Precision = precision
        self._teller = teller or Teller()
        self._steps = Steps(folder, say=self._teller.say)

    @property
    def made(self) -> list[str]:
        """The steps that were not there yet."""
        return self._steps.made

    def run(self) -> Made:
        """Do what has not been done yet."""
        self._teller.say("reading data")
        gold = read_gold(self.recipe, self.scores, self._root)
        files = self._gold_files(gold)
        silver: dict[str, Path] = {change: self._changed(change, gold) for change in self._changes()}
        labellers: list[Path] = []
        noise = None
        students: dict[str, list[Path]] = {}
        if not self.recipe.distils:  # which takes several candidates of a text
            students[GOLD_ALONE] = self._students(GOLD_ALONE, [files["gold"]], files, gold)
        for change in silver:
            students[change] = self._taught(change, silver[change], files, gold)
        if self.recipe.labeller is not None and self.recipe.sampling is not None:
            labellers = self._labellers(self.recipe.labeller, files, gold)
            noise = label_noise([self._cross(each) for each in labellers], gold.dev, self.scores)
            texts = self._texts(gold)
            for sampler in self.recipe.sampling.samplers:
                config = self.recipe.sampling
                for number in range(1, self._rounds(sampler) + 1):
                    name = sampler if number == 1 else f"{sampler}, round {number}"
                    pairs = self._pairs(name, sampler, config, texts, gold)
                    labelled = self._labelled(name, pairs, labellers)
                    silver[name] = self._silver(name, sampler, config, labelled, gold, noise)
                    students[name] = self._taught(name, silver[name], files, gold)
                    config = replace(config, searcher=str(students[name][0]))
        return Made(gold, self.scores, silver, students, labellers, noise)

    def _changes(self) -> Sequence[Change]:
        return self.recipe.words.changes if self.recipe.words else ()

    def _rounds(self, sampler: Sampler) -> int:
        return self.recipe.learning.rounds if sampler == "semantic" else 1

    def _gold_files(self, gold: Gold) -> dict[str, Path]:
        files = {}
        for name, lessons in (("gold", gold.train), ("dev", gold.dev), ("test", gold.test)):
            origin = {"rows": _digest(asdict(lesson) for lesson in lessons)}
            files[name] = self._steps.file(f"{name}.jsonl", origin, _writes(lessons))
        return files

    def _labellers(self, recipe: Recipe, files: Mapping[str, Path], gold: Gold) -> list[Path]:
        """The models that label: the best of several seeds by dev data, or all of them."""
        data = replace(pairs_in(files["gold"]), both_ways=recipe.train.both_ways)
        recipe = replace(recipe, train=data, dev=pairs_in(files["dev"]), test=None)
        found: dict[Path, float] = {}
        for seed in range(self.recipe.labelling.seeds):
            learnt = [files["gold"], files["dev"]]
            run = self._train(f"labeller-{seed}", with_seed(recipe, seed), learnt, gold)
            found[run / "model"] = float(read_json(run / "result.json")["dev"]["spearman"])
        best = max(found, key=found.__getitem__)
        return list(found) if self.recipe.labelling.ensemble else [best]

    def _texts(self, gold: Gold) -> list[str]:
        if self.recipe.texts is None:
            return distinct_texts(gold.texts())
        given = list(read_texts(self.recipe.texts, self._root))
        found = distinct_texts(given)
        if len(found) < len(given):
            self._teller.say(f"{len(given):,} texts, {len(found):,} of them different and not empty")
        return found

    def _pairs(
        self, name: str, sampler: Sampler, config: SamplingConfig, texts: Sequence[str], gold: Gold
    ) -> Path:
        known = gold.known()
        searcher = load(config.searcher, device=self._device) if "semantic" in sampler else None
        origin = {
            "texts": _digest(texts),
            "known": _digest(sorted(known)),
            "sampler": sampler,
            "settings": {each: getattr(config, each) for each in DEPENDS_ON[sampler]},
            "searcher": None if searcher is None else searcher.fingerprint,
        }

        def make(file: Path) -> None:
            found = new_pairs(texts, sampler, config, known=known, searcher=searcher)
            asked = wanted(sampler, config)
            if asked is not None and len(found) < asked:
                self._teller.say(
                    f"{name}: {len(found):,} pairs instead of {asked:,}: {len(texts):,} texts give no "
                    "more that have no label yet; give more texts, or a larger top_k"
                )
            write_pairs(found, file)

        return self._steps.file(f"pairs-{_plain(name)}.jsonl", origin, make)

    def _labelled(self, name: str, pairs: Path, labellers: Sequence[Path]) -> Path:
        scorers = [self._cross(each) for each in labellers]
        origin = {
            "pairs": hash_of(pairs),
            "labellers": [each.fingerprint for each in scorers],
            "scores": asdict(self.scores),
        }

        def make(file: Path) -> None:
            done = whole_lines(file)
            total = sum(1 for _ in read_new_pairs(pairs))
            waiting = islice(read_new_pairs(pairs), done, None)
            write_pairs(self._counted(label(waiting, scorers, self.scores), done, total), file)

        return self._steps.growing_file(f"labelled-{_plain(name)}.jsonl", origin, make)

    def _counted(self, rows: Iterable[Silver], done: int, total: int) -> Iterator[Silver]:
        for number, row in enumerate(rows, start=done + 1):
            yield row
            self._teller.progress(number, total, {})

    def _silver(
        self, name: str, sampler: Sampler, config: SamplingConfig, labelled: Path, gold: Gold, noise: Noise
    ) -> Path:
        """What is learnt: pairs that the labellers agree on, spread as gold is, as scores or decisions."""
        labelling = self.recipe.labelling
        threshold = noise.threshold if labelling.labels == "binary" else None
        if labelling.labels == "binary" and threshold is None:
            raise InputError(
                'labels = "binary" needs dev data of matches and others; this has grades: use "soft"'
            )
        origin = {
            "labelled": hash_of(labelled),
            "gold": _digest(gold.scores().tolist()),
            "most_spread": labelling.most_spread,
            "threshold": threshold,
            "like gold": [config.pairs, config.seed] if sampler == "kde" else None,
        }

        def make(file: Path) -> None:
            rows = read_silver(labelled)
            if labelling.most_spread is not None:
                rows = agreed(rows, labelling.most_spread)
            if not rows:
                raise DataError(f"{name}: the labellers agree on no pair: raise most_spread, or leave it out")
            if sampler == "kde" and config.pairs is not None:
                found = np.array([row.score for row in rows])
                count = min(config.pairs, len(rows))
                rows = [rows[place] for place in like_gold(found, gold.scores(), count, seed=config.seed)]
            write_pairs(rows if threshold is None else decided(rows, threshold, self.scores), file)

        return self._steps.file(f"silver-{_plain(name)}.jsonl", origin, make)

    def _changed(self, change: Change, gold: Gold) -> Path:
        config = self.recipe.words or WordConfig()
        known = gold.known()
        origin = {
            "gold": _digest(asdict(lesson) for lesson in gold.train),
            "words": asdict(replace(config, changes=(change,))),
        }

        def make(file: Path) -> None:
            rows = change_words(gold.train, change, config)
            write_pairs(
                [row for row in rows if (folded(row.context), folded(row.candidate)) not in known], file
            )

        return self._steps.file(f"silver-{change}.jsonl", origin, make)

    def _taught(self, name: str, silver: Path, files: Mapping[str, Path], gold: Gold) -> list[Path]:
        learnt = [files["gold"], silver] if self.recipe.learning.gold else [silver]
        return self._students(name, learnt, files, gold)

    def _students(
        self, name: str, learnt: Sequence[Path], files: Mapping[str, Path], gold: Gold
    ) -> list[Path]:
        """Students of all seeds; where no gold is learnt, dev data is held out of silver."""
        student = self.recipe.student
        data, dev = pairs_in(*learnt), pairs_in(files["dev"]) if files["gold"] in learnt else None
        if self.recipe.distils:
            learnt, dev = [self._contrasts(name, learnt)], None
            data = replace(pairs_in(*learnt), reader="scored")
        data = replace(data, both_ways=student.train.both_ways)
        recipe = replace(student, train=data, dev=dev, test=None)
        seen = [*learnt, files["dev"]]
        return [
            self._train(f"student-{_plain(name)}-{seed}", with_seed(recipe, seed), seen, gold) / "model"
            for seed in range(self.recipe.learning.seeds)
        ]

    def _contrasts(self, name: str, files: Sequence[Path]) -> Path:
        origin = {"files": [hash_of(file) for file in files]}

        def make(file: Path) -> None:
            rows = list(contrasts(pair for each in files for pair in _scored(each)))
            if not rows:
                raise DataError(f"{name}: no text has two partners of different scores: raise top_k")
            lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            file.write_text("".join(lines), encoding="utf-8")

        return self._steps.file(f"contrasts-{_plain(name)}.jsonl", origin, make)

    def _train(self, name: str, recipe: Recipe, files: Sequence[Path], gold: Gold) -> Path:
        origin = {"recipe": recipe.resolved(), "files": [hash_of(file) for file in files]}

        def make(folder: Path, begun: bool) -> None:
            run_recipe(
                recipe,
                folder,
                root=self._root,
                resume=begun,
                device=self._device,
                teller=self._teller,
                sealed=gold.test,
            )

        return self._steps.run(name, origin, make)

    def _cross(self, folder: Path) -> CrossEncoder:
        scorer = load(folder, device=self._device, precision=self._precision)
        if not isinstance(scorer, CrossEncoder):
            raise InputError(f"a labeller is a cross-encoder, {folder} is a {scorer.kind}-encoder")
        return scorer


def _writes(lessons: Sequence[Any]) -> Any:
    return lambda file: write_lessons(lessons, file)


def _scored(file: Path) -> Iterator[tuple[str, str, float]]:
    for row in read_rows(file):
        yield row.columns["context"], row.columns["candidate"], float(row.columns["score"])


def _plain(name: str) -> str:
    """A name for a file."""
    return name.replace(", ", "-").replace(" ", "-").replace("+", "-")


def _digest(rows: Iterable[Any]) -> str:
    digest = sha256()
    for row in rows:
        digest.update(json.dumps(row, ensure_ascii=False).encode())
    return digest.hexdigest()[:16]
