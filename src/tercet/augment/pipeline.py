"""Augmented SBERT from recipe to students, as a sequence of cached steps (``steps.py``).

gold.jsonl, dev.jsonl, test.jsonl
before-labeller              the model that all labellers start from, if their recipe has ``after``
labeller-SEED                cross-encoders
pairs-SAMPLER.jsonl          new pairs; those that the recipe gives are called ``given``
labelled-SAMPLER.jsonl       new pairs with scores
silver-SAMPLER.jsonl         the pairs that students learn from; for changed words, made from gold directly
before-student               the model that all students start from
student-SAMPLER-SEED         students
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tercet.augment.cache import StepCache
from tercet.augment.checks import check_labeller_model, check_recipe, distils
from tercet.augment.gold import Gold, pairs_in, read_gold, read_texts, scores_of
from tercet.augment.label_noise import LabelNoise, gold_matches
from tercet.augment.new_pairs import SAMPLERS, pairs_to_label
from tercet.augment.sampling import distinct_texts
from tercet.augment.silver import ScoreRange
from tercet.augment.steps import (
    ChangeWords,
    Labellers,
    LabelPairs,
    MeasureNoise,
    SamplePairs,
    SelectSilver,
    TakePairs,
    Train,
    WriteContrasts,
    WriteGold,
    check_no_leak,
    file_name,
)
from tercet.data.rows import count_rows
from tercet.errors import InputError
from tercet.files.structured import read_json
from tercet.settings.augment import AugmentRecipe, Sampler, SamplingConfig
from tercet.settings.models import Precision
from tercet.settings.recipe import Recipe
from tercet.training.reporter import Reporter

GOLD_ONLY = "gold only"
GIVEN = "given"
"""The title of pairs that were given, not sampled."""


@dataclass(frozen=True)
class Augmented:
    """The results of a pipeline."""

    gold: Gold
    scores: ScoreRange
    silver: dict[str, Path]
    """Files of silver pairs, by sampler or word change."""
    students: dict[str, list[Path]]
    """Models of all seeds, by sampler or word change; those of gold data only come first."""
    labellers: list[Path]
    noise: LabelNoise | None
    """The noise of the labellers, if there are any."""
    notes: list[str]
    """Notes on deviations from the recipe, such as fewer pairs than requested."""


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
        reporter: Reporter | None = None,
    ) -> None:
        """``precision`` is that of labelling."""
        check_recipe(recipe)
        self.recipe = recipe
        objective = recipe.student.objective
        self.scores = ScoreRange(min_score=objective.min_score, max_score=objective.max_score)
        self._root, self._device = root, device
        self._precision: Precision = precision
        self._reporter = reporter or Reporter()
        self._cache = StepCache(folder, report=self._reporter.report)
        self._notes: list[str] = []

    @property
    def computed(self) -> list[str]:
        """The results that were not cached."""
        return self._cache.computed

    def run(self) -> Augmented:
        """Compute all results that are not cached."""
        self._reporter.report("reading data")
        gold = read_gold(self.recipe, self.scores, self._root)
        check_labeller_model(self.recipe)
        self._check_threshold(gold)
        splits = {"gold": gold.train, "dev": gold.dev, "test": gold.test}
        files = {name: self._cache.get(WriteGold(name, examples)) for name, examples in splits.items()}
        silver = self._changed_words(gold)
        students: dict[str, list[Path]] = {}
        if not distils(self.recipe):  # distillation needs several candidates per text
            students[GOLD_ONLY] = self._students(GOLD_ONLY, [files["gold"]], files, gold)
        for change, file in silver.items():
            students[change] = self._train_students(change, file, files, gold)
        labellers: list[Path] = []
        noise = None
        if self.recipe.labeller is not None:
            labellers = self._labellers(self.recipe.labeller, files, gold)
            noise = self._noise(labellers, files, gold)
            if self.recipe.pairs is not None:
                pairs = self._cache.get(TakePairs(GIVEN, self.recipe.pairs, gold.known_pairs(), self._root))
                silver[GIVEN] = self._silver(GIVEN, pairs, labellers, gold, noise)
                students[GIVEN] = self._train_students(GIVEN, silver[GIVEN], files, gold)
            sampling = self.recipe.sampling
            texts = [] if sampling is None else self._texts(gold)
            for sampler in () if sampling is None else sampling.samplers:
                self._sample(sampler, texts, labellers, noise, files, gold, silver, students)
        return Augmented(gold, self.scores, silver, students, labellers, noise, self._notes)

    def _sample(
        self,
        sampler: Sampler,
        texts: Sequence[str],
        labellers: Sequence[Path],
        noise: LabelNoise,
        files: Mapping[str, Path],
        gold: Gold,
        silver: dict[str, Path],
        students: dict[str, list[Path]],
    ) -> None:
        """Add the silver pairs and students of one sampler; in later rounds the student searches."""
        config = self.recipe.sampling or SamplingConfig()
        rounds = self.recipe.students.rounds if sampler == "semantic" else 1
        for number in range(1, rounds + 1):
            title = sampler if number == 1 else f"{sampler}, round {number}"
            pairs = self._pairs(title, sampler, config, texts, gold)
            kept = config.pairs if SAMPLERS[sampler].matches_gold else None
            match_gold = None if kept is None else (kept, config.seed)
            silver[title] = self._silver(title, pairs, labellers, gold, noise, match_gold=match_gold)
            students[title] = self._train_students(title, silver[title], files, gold)
            config = replace(config, searcher=str(students[title][0]))

    def _changed_words(self, gold: Gold) -> dict[str, Path]:
        words = self.recipe.words
        if words is None:
            return {}
        return {
            change: self._cache.get(ChangeWords(change, words, gold, self._device))
            for change in words.changes
        }

    def _labellers(self, recipe: Recipe, files: Mapping[str, Path], gold: Gold) -> list[Path]:
        """The models that label: the best of several seeds on dev data, or all of them."""
        data = replace(pairs_in(files["gold"]), both_directions=recipe.train.both_directions)
        recipe = self._with_trained_base("labeller", recipe, gold)
        recipe = replace(recipe, train=data, dev=pairs_in(files["dev"]), test=None)
        quality: dict[Path, float] = {}
        for seed in range(self.recipe.labelling.seeds):
            run = self._train(f"labeller-{seed}", recipe.with_seed(seed), gold)
            quality[run / "model"] = float(read_json(run / "result.json")["dev"]["spearman"])
        best = max(quality, key=quality.__getitem__)
        return list(quality) if self.recipe.labelling.ensemble else [best]

    def _loaded(self, labellers: Sequence[Path]) -> Labellers:
        return Labellers(list(labellers), self._precision, self._device)

    def _noise(self, labellers: Sequence[Path], files: Mapping[str, Path], gold: Gold) -> LabelNoise:
        labelling = self.recipe.labelling
        step = MeasureNoise(
            self._loaded(labellers),
            files["dev"],
            gold.dev,
            self.scores,
            labelling.threshold,
            labelling.match_from,
        )
        return LabelNoise(**read_json(self._cache.get(step)))

    def _texts(self, gold: Gold) -> list[str]:
        if self.recipe.texts is None:
            return distinct_texts(gold.texts())
        given = list(read_texts(self.recipe.texts, self._root))
        texts = distinct_texts(given)
        if len(texts) < len(given):
            self._reporter.report(f"{len(given):,} texts, {len(texts):,} of them distinct and not empty")
        return texts

    def _pairs(
        self, title: str, sampler: Sampler, config: SamplingConfig, texts: Sequence[str], gold: Gold
    ) -> Path:
        step = SamplePairs(title, sampler, config, texts, gold.known_pairs(), self._device)
        file = self._cache.get(step)
        wanted, count = pairs_to_label(sampler, config), count_rows(file) or 0
        if wanted is not None and count < wanted:
            more = "texts" if SAMPLERS[sampler].is_random else "texts, or raise top_k"
            self._notes.append(
                f"{title}: {count:,} pairs instead of {wanted:,}, because {len(texts):,} texts have no more "
                f"unlabelled ones; add {more}"
            )
            self._reporter.report(self._notes[-1])
        return file

    def _silver(
        self,
        title: str,
        pairs: Path,
        labellers: Sequence[Path],
        gold: Gold,
        noise: LabelNoise,
        *,
        match_gold: tuple[int, int] | None = None,
    ) -> Path:
        """The labelled pairs that students learn from."""
        labelling = self.recipe.labelling
        labelled = self._cache.get(
            LabelPairs(title, pairs, self._loaded(labellers), self.scores, self._reporter.progress)
        )
        threshold = noise.threshold if labelling.labels == "binary" else None
        step = SelectSilver(
            title, labelled, gold, self.scores, labelling.max_disagreement, threshold, match_gold
        )
        return self._cache.get(step)

    def _check_threshold(self, gold: Gold) -> None:
        """Raise if labels cannot be binarized."""
        labelling, scores = self.recipe.labelling, self.scores
        for name in ("threshold", "match_from"):
            value = getattr(labelling, name)
            if value is not None and not scores.min_score < value <= scores.max_score:
                raise InputError(
                    f"{name} must be above {scores.min_score:g} and at most {scores.max_score:g}, the range "
                    f"of the gold scores, got {value:g}"
                )
        if labelling.labels == "soft" or labelling.threshold is not None:
            return
        matches = gold_matches(scores_of(gold.dev), labelling.match_from)
        if matches is None:
            raise InputError(
                'labels = "binary" needs dev data with two different scores: set match_from to the lowest '
                "gold score of a match, or set threshold"
            )
        if matches.all() or not matches.any():
            raise InputError(
                f"match_from = {labelling.match_from} leaves only one class of the {len(matches)} dev pairs"
            )

    def _train_students(self, title: str, silver: Path, files: Mapping[str, Path], gold: Gold) -> list[Path]:
        """Students of silver pairs, and of gold pairs unless the recipe excludes them."""
        check_no_leak(silver, gold)
        data = [files["gold"], silver] if self.recipe.students.gold else [silver]
        return self._students(title, data, files, gold)

    def _students(
        self, title: str, data: Sequence[Path], files: Mapping[str, Path], gold: Gold
    ) -> list[Path]:
        """Students of all seeds; without gold pairs, dev data is held out of the silver pairs."""
        student = self._with_trained_base("student", self.recipe.student, gold)
        train = replace(pairs_in(*data), both_directions=student.train.both_directions)
        dev = pairs_in(files["dev"]) if files["gold"] in data else None
        if distils(self.recipe):
            rows = [self._cache.get(WriteContrasts(title, data, is_dev)) for is_dev in (False, True)]
            train, dev = (replace(pairs_in(file), reader="scored", drop_overlap=True) for file in rows)
        recipe = replace(student, train=train, dev=dev, test=None)
        return [
            self._train(f"student-{file_name(title)}-{seed}", recipe.with_seed(seed), gold) / "model"
            for seed in range(self.recipe.students.seeds)
        ]

    def _with_trained_base(self, role: str, recipe: Recipe, gold: Gold) -> Recipe:
        """The recipe with its ``after`` replaced by that recipe's model, trained once for all seeds."""
        if recipe.after is None:
            return recipe
        run = self._train(f"before-{role}", recipe.after, gold)
        return replace(recipe, after=None, model=replace(recipe.model, source=str(run / "model")))

    def _train(self, name: str, recipe: Recipe, gold: Gold) -> Path:
        return self._cache.get(Train(name, recipe, gold.test, self._root, self._device, self._reporter))
