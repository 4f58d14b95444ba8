"""Augmented SBERT from recipe to students, step by step; every step's file is kept (``steps.py``).

gold.jsonl, dev.jsonl, test.jsonl
before-labeller              what all labellers begin with, if they come after another recipe
labeller-SEED                what labels
pairs-SAMPLER.jsonl          new pairs
labelled-SAMPLER.jsonl       with scores
silver-SAMPLER.jsonl         those that are learnt; of changed words, made of gold at once
before-student               the same for students
student-SAMPLER-SEED         who learns
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from tercet.augment.changes import change_words
from tercet.augment.contrasts import contrasts, split
from tercet.augment.gold import Gold, pairs_in, read_gold, read_texts, targets, write_lessons, write_rows
from tercet.augment.like_gold import like_gold
from tercet.augment.new_pairs import DEPENDS_ON, new_pairs, wanted
from tercet.augment.noise import Noise, label_noise
from tercet.augment.origins import origin_of, origin_of_words
from tercet.augment.recipe import AugmentRecipe
from tercet.augment.sampling import Sampler, SamplingConfig, distinct_texts
from tercet.augment.silver import (
    PAIRS_AT_ONCE,
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
from tercet.data.rows import count_rows, read_rows
from tercet.errors import DataError, InputError
from tercet.files import read_json
from tercet.models.cross import CrossEncoder
from tercet.models.load import load
from tercet.records import Lesson
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
    notes: list[str]
    """What did not go as asked."""


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
        self._notes: list[str] = []

    @property
    def made(self) -> list[str]:
        """The steps that were not there yet."""
        return self._steps.made

    def run(self) -> Made:
        """Do what has not been done yet."""
        self._teller.say("reading data")
        gold = read_gold(self.recipe, self.scores, self._root)
        if self.recipe.labelling.labels == "binary" and len(np.unique(targets(gold.dev))) > 2:
            raise InputError(
                'labels = "binary" needs dev data of matches and others; this has grades: use "soft"'
            )
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
            noise = self._noise(labellers, files, gold)
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
        return Made(gold, self.scores, silver, students, labellers, noise, self._notes)

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
        recipe = self._begun("labeller", recipe, gold)
        recipe = replace(recipe, train=data, dev=pairs_in(files["dev"]), test=None)
        found: dict[Path, float] = {}
        for seed in range(self.recipe.labelling.seeds):
            run = self._train(f"labeller-{seed}", with_seed(recipe, seed), gold)
            found[run / "model"] = float(read_json(run / "result.json")["dev"]["spearman"])
        best = max(found, key=found.__getitem__)
        return list(found) if self.recipe.labelling.ensemble else [best]

    def _noise(self, labellers: Sequence[Path], files: Mapping[str, Path], gold: Gold) -> Noise:
        origin = {
            "labellers": [_fingerprint(each) for each in labellers],
            "dev": hash_of(files["dev"]),
            "precision": self._precision,
        }

        def make(file: Path) -> None:
            noise = label_noise([self._cross(each) for each in labellers], gold.dev, self.scores)
            file.write_text(json.dumps(asdict(noise)), encoding="utf-8")

        return Noise(**read_json(self._steps.file("noise.json", origin, make)))

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
            write_pairs(found, file)

        made = self._steps.file(f"pairs-{_plain(name)}.jsonl", origin, make)
        self._note_if_few(name, made, wanted(sampler, config), texts=len(texts))
        return made

    def _note_if_few(self, name: str, made: Path, asked: int | None, *, texts: int) -> None:
        count = count_rows(made) or 0
        if asked is not None and count < asked:
            more = "texts" if name in ("random", "kde") else "texts, or a larger top_k"
            self._notes.append(
                f"{name}: {count:,} pairs instead of {asked:,}, since {texts:,} texts give no more that "
                f"have no label yet; give more {more}"
            )
            self._teller.say(self._notes[-1])

    def _labelled(self, name: str, pairs: Path, labellers: Sequence[Path]) -> Path:
        origin = {
            "pairs": hash_of(pairs),
            "labellers": [_fingerprint(each) for each in labellers],
            "scores": asdict(self.scores),
            "precision": self._precision,
        }

        def make(file: Path) -> None:
            scorers = [self._cross(each) for each in labellers]
            done, total = whole_lines(file), count_rows(pairs) or 0
            waiting = islice(read_new_pairs(pairs), done, None)
            write_pairs(self._counted(label(waiting, scorers, self.scores), done, total), file)

        return self._steps.growing_file(f"labelled-{_plain(name)}.jsonl", origin, make)

    def _counted(self, rows: Iterable[Silver], done: int, total: int) -> Iterator[Silver]:
        for number, row in enumerate(rows, start=done + 1):
            yield row
            if (number - done) % PAIRS_AT_ONCE == 0 or number == total:
                self._teller.progress(number, total, {})

    def _silver(
        self, name: str, sampler: Sampler, config: SamplingConfig, labelled: Path, gold: Gold, noise: Noise
    ) -> Path:
        """What is learnt: pairs that the labellers agree on, spread as gold is, as scores or decisions."""
        labelling = self.recipe.labelling
        threshold = noise.threshold if labelling.labels == "binary" else None
        origin = {
            "labelled": hash_of(labelled),
            "gold": _digest(gold.scores().tolist()),
            "most_spread": labelling.most_spread,
            "threshold": threshold,
            "like gold": [config.pairs, config.seed] if sampler == "kde" else None,
        }

        def rows() -> Iterator[Silver]:
            found = read_silver(labelled)
            return found if labelling.most_spread is None else agreed(found, labelling.most_spread)

        def make(file: Path) -> None:
            given = np.array([row.score for row in rows()])
            if not len(given):
                raise DataError(f"{name}: the labellers agree on no pair: raise most_spread, or leave it out")
            kept = rows()
            if sampler == "kde" and config.pairs is not None:
                count = min(config.pairs, len(given))
                places = set(like_gold(given, gold.scores(), count, seed=config.seed).tolist())
                kept = (row for place, row in enumerate(kept) if place in places)
            write_pairs(kept if threshold is None else decided(kept, threshold, self.scores), file)

        return self._steps.file(f"silver-{_plain(name)}.jsonl", origin, make)

    def _changed(self, change: Change, gold: Gold) -> Path:
        config = self.recipe.words or WordConfig()
        known = gold.known()
        origin = {
            "gold": _digest(asdict(lesson) for lesson in gold.train),
            "known": _digest(sorted(known)),
            "words": asdict(replace(config, changes=(change,))),
            "folders": origin_of_words(change, config),
        }

        def make(file: Path) -> None:
            rows = change_words(gold.train, change, config, device=self._device)
            write_pairs(
                [row for row in rows if (folded(row.context), folded(row.candidate)) not in known], file
            )

        return self._steps.file(f"silver-{change}.jsonl", origin, make)

    def _taught(self, name: str, silver: Path, files: Mapping[str, Path], gold: Gold) -> list[Path]:
        check_unknown(silver, gold)
        learnt = [files["gold"], silver] if self.recipe.learning.gold else [silver]
        return self._students(name, learnt, files, gold)

    def _students(
        self, name: str, learnt: Sequence[Path], files: Mapping[str, Path], gold: Gold
    ) -> list[Path]:
        """Students of all seeds; where no gold is learnt, dev data is held out of silver."""
        student = self._begun("student", self.recipe.student, gold)
        data = replace(pairs_in(*learnt), both_ways=student.train.both_ways)
        dev = pairs_in(files["dev"]) if files["gold"] in learnt else None
        if self.recipe.distils:
            rows = self._contrasts(name, learnt)
            data, dev = (replace(pairs_in(file), reader="scored", drop_overlap=True) for file in rows)
        recipe = replace(student, train=data, dev=dev, test=None)
        return [
            self._train(f"student-{_plain(name)}-{seed}", with_seed(recipe, seed), gold) / "model"
            for seed in range(self.recipe.learning.seeds)
        ]

    def _contrasts(self, name: str, files: Sequence[Path]) -> list[Path]:
        """Rows to learn from and rows to look at, for a student that distils."""
        origin = {"files": [hash_of(file) for file in files]}

        def rows(place: int) -> list[dict[str, Any]]:
            found = split(contrasts(pair for each in files for pair in _scored(each)))[place]
            if not found:
                raise DataError(
                    f"{name}: too few texts have two partners of different scores: raise top_k, or give "
                    "more texts"
                )
            return found

        def make(place: int) -> Callable[[Path], None]:
            return lambda file: write_rows(rows(place), file)

        names = f"contrasts-{_plain(name)}.jsonl", f"contrasts-{_plain(name)}-dev.jsonl"
        return [self._steps.file(each, origin, make(place)) for place, each in enumerate(names)]

    def _begun(self, role: str, recipe: Recipe, gold: Gold) -> Recipe:
        """The recipe with the model to begin with: what it comes after is trained once, for all seeds."""
        if recipe.after is None:
            return recipe
        run = self._train(f"before-{role}", recipe.after, gold)
        return replace(recipe, after=None, model=replace(recipe.model, source=str(run / "model")))

    def _train(self, name: str, recipe: Recipe, gold: Gold) -> Path:
        origin = origin_of(recipe, self._root) | {"sealed": _digest(asdict(each) for each in gold.test)}

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


def check_unknown(silver: Path, gold: Gold) -> None:
    """Raise if a file of silver holds pairs that people have labelled, of dev or test data above all."""
    known = gold.known()
    leaked = [row for row in read_silver(silver) if (folded(row.context), folded(row.candidate)) in known]
    if leaked:
        raise DataError(
            f"{silver} holds {len(leaked)} pairs that gold, dev or test data has, such as "
            f"{leaked[0].context!r}: remove the file, and it is made again without them"
        )


def _fingerprint(model: Path) -> str:
    """Of a model that a run has made."""
    return str(read_json(model.parent / "result.json")["fingerprint"])


def _writes(lessons: Sequence[Lesson]) -> Callable[[Path], None]:
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
