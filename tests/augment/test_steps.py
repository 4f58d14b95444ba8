"""The steps of the pipeline are computed again if a setting or a file that they depend on changes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.augment.conftest import FolderOf
from tests.conftest import SENTENCES

from tercet.augment.cache import Step, StepCache
from tercet.augment.gold import Gold
from tercet.augment.new_pairs import SAMPLERS
from tercet.augment.silver import ScoreRange, Silver, write_pairs
from tercet.augment.steps import SamplePairs, SelectSilver, TakePairs, WriteContrasts, WriteGold
from tercet.records import Example
from tercet.settings.augment import PairsConfig, SamplingConfig

OTHER_SETTINGS: dict[str, Any] = {"top_k": 2, "pairs": 5, "pool": 2, "seed": 1}
USED_SETTINGS = {
    "random": {"pairs", "seed"},
    "kde": {"pairs", "pool", "seed"},
    "bm25": {"top_k", "pairs", "seed"},
    "semantic": {"top_k", "pairs", "seed"},
    "bm25+semantic": {"top_k", "pairs", "seed"},
}
PAIRS = [Example(left, (right,), (1.0,)) for left, right in zip(SENTENCES[:4], SENTENCES[4:], strict=True)]


def recomputed(changed: Step, step: Step, folder: Path) -> bool:
    """Whether ``changed`` is computed again although the result of ``step`` is cached."""
    StepCache(folder).get(step)
    cache = StepCache(folder)
    cache.get(changed)
    return cache.computed == [changed.name]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_sampled_pairs_depend_only_on_the_settings_of_their_sampler(
    sampler: Any, tiny_folder: FolderOf, tmp_path: Path
) -> None:
    config = SamplingConfig(samplers=(sampler,), top_k=3, pairs=4, searcher=str(tiny_folder("bert")))
    step = SamplePairs("title", sampler, config, SENTENCES, set(), "cpu")
    assert not recomputed(step, step, tmp_path)
    for name, value in OTHER_SETTINGS.items():
        changed = replace(step, config=replace(config, **{name: value}))
        assert recomputed(changed, step, tmp_path) == (name in USED_SETTINGS[sampler]), name


def test_sampled_pairs_depend_on_texts_and_labelled_pairs(tmp_path: Path) -> None:
    config = SamplingConfig(samplers=("random",), pairs=4)
    step = SamplePairs("title", "random", config, SENTENCES, set(), "cpu")
    assert not recomputed(replace(step, texts=list(SENTENCES)), step, tmp_path)
    assert recomputed(replace(step, texts=SENTENCES[1:]), step, tmp_path)
    assert recomputed(replace(step, known={("a dog ran", "old house")}), step, tmp_path)


def test_semantic_pairs_depend_on_the_searcher(tiny_folder: FolderOf, tmp_path: Path) -> None:
    config = SamplingConfig(samplers=("semantic",), searcher=str(tiny_folder("bert")))
    step = SamplePairs("title", "semantic", config, SENTENCES, set(), "cpu")
    other = replace(config, searcher=str(tiny_folder("roberta")))
    assert recomputed(replace(step, config=other), step, tmp_path)


def test_written_gold_depends_on_its_pairs(tmp_path: Path) -> None:
    step = WriteGold("dev", PAIRS)
    assert not recomputed(WriteGold("dev", list(PAIRS)), step, tmp_path)
    assert recomputed(WriteGold("dev", [replace(PAIRS[0], targets=(2.0,)), *PAIRS[1:]]), step, tmp_path)


def test_silver_pairs_depend_on_labels_and_selection(tmp_path: Path) -> None:
    labelled = tmp_path / "labelled.jsonl"
    rows = [Silver(text, "cat", number / 8, "bm25", (0, 1), "", 0.1) for number, text in enumerate(SENTENCES)]
    write_pairs(rows, labelled)
    gold = Gold(PAIRS, [], [])
    step = SelectSilver("bm25", labelled, gold, ScoreRange(), max_disagreement=0.5)
    folder = tmp_path / "run"
    assert not recomputed(step, step, folder)
    assert recomputed(replace(step, max_disagreement=0.2), step, folder)
    graded = Gold([replace(PAIRS[0], targets=(0.5,)), *PAIRS[1:]], [], [])
    assert recomputed(replace(step, gold=graded, match_gold=(3, 0)), replace(step, gold=graded), folder)
    assert recomputed(replace(step, threshold=0.5), step, folder)
    assert recomputed(replace(step, gold=Gold(PAIRS[1:], [], [])), step, folder)
    other = tmp_path / "other.jsonl"
    write_pairs(rows[:1], other)
    assert recomputed(replace(step, labelled=other), step, folder)


def test_given_pairs_depend_on_files_settings_and_labelled_pairs(tmp_path: Path) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text('{"context": "a", "candidate": "b"}\n{"context": "c", "candidate": "d"}\n')
    config = PairsConfig(files=("pairs.jsonl",))
    step = TakePairs("given", config, set(), tmp_path)
    folder = tmp_path / "run"
    assert not recomputed(step, step, folder)
    assert recomputed(replace(step, config=replace(config, limit=1)), step, folder)
    assert recomputed(replace(step, known={("a", "b")}), step, folder)
    StepCache(folder).get(step)
    file.write_text('{"context": "e", "candidate": "f"}\n')
    cache = StepCache(folder)
    cache.get(step)
    assert cache.computed == ["pairs-given.jsonl"]


def test_contrasts_depend_on_their_files(tmp_path: Path) -> None:
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for file in files:
        write_pairs([Silver("cat", text, len(text), "bm25", (0, 1), "") for text in SENTENCES], file)
    step = WriteContrasts("bm25", files[:1], dev=False)
    folder = tmp_path / "run"
    assert not recomputed(step, step, folder)
    assert recomputed(replace(step, files=files), step, folder)
