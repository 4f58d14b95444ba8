"""The packaged models: their size, their model cards, and what they can do."""

import re

import numpy as np
import pytest

import tercet
from tercet.errors import TruncationWarning
from tercet.formats.from_spec import make_scorer, spec_from_manifest
from tercet.formats.manifest import read_manifest
from tercet.formats.sources import OWN_MODELS, PACKAGED

SECTIONS = ("Data", "Recipe", "Figures", "Limits", "Licence")
MAX_BYTES = 12_000_000


@pytest.fixture(scope="module", params=PACKAGED)
def packaged(request: pytest.FixtureRequest) -> tercet.Scorer:
    return tercet.load(request.param, device="cpu")


def test_a_packaged_model_ranks_the_answer_first(packaged: tercet.Scorer) -> None:
    answers = ["Water it once a week.", "It rained all day.", "The library opens at nine."]
    assert packaged.rank("When can I borrow books?", answers, k=1)[0].position == 2


def test_a_packaged_model_scores_paraphrases_higher(packaged: tercet.Scorer) -> None:
    scores = packaged.score("A man plays the guitar.", ["Somebody is playing a guitar.", "A man eats soup."])
    assert scores[0] > scores[1]


def test_a_packaged_model_scores_long_texts(packaged: tercet.Scorer) -> None:
    words = "the library lends books to everybody who lives in this town " * 60
    with pytest.warns(TruncationWarning):
        assert np.isfinite(packaged.score(words, [words, "no"])).all()


def test_the_packaged_weights_are_at_most_12_megabytes() -> None:
    assert sum(file.stat().st_size for file in OWN_MODELS.rglob("*") if file.is_file()) <= MAX_BYTES


@pytest.mark.parametrize("name", [name for name in PACKAGED if name != "bi"])
def test_a_model_card_has_the_fingerprint_and_all_sections(name: str) -> None:
    card = (OWN_MODELS / name / "README.md").read_text(encoding="utf-8")
    head, *sections = re.split(r"^## ", card, flags=re.MULTILINE)
    assert tercet.load(name, device="cpu").fingerprint in head
    assert tuple(section.partition("\n")[0] for section in sections) == SECTIONS
    assert all(len(section.split()) > 10 for section in sections)


@pytest.mark.parametrize("name", [name for name in PACKAGED if name != "bi"])
def test_a_packaged_model_scores_differently_from_its_base_model(name: str) -> None:
    folder = OWN_MODELS / name
    base = make_scorer(spec_from_manifest(folder, read_manifest(folder) or {}), device="cpu")
    context, candidates = ["Hi!", "Is it raining?"], ["No, the sun is out.", "Yes, take a coat."]
    packaged = tercet.load(name, device="cpu")
    assert np.abs(packaged.score(context, candidates) - base.score(context, candidates)).max() > 0.01
