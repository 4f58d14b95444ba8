"""The models that come with tercet: small, described, and at work without a network."""

import re

import numpy as np
import pytest

import tercet
from tercet.models.manifest import read_manifest
from tercet.models.sources import OWN_MODELS, PACKAGED
from tercet.models.start import make_scorer, read_start

SECTIONS = ("Data", "Recipe", "Figures", "Limits", "Licence")
MOST_BYTES = 12_000_000


@pytest.fixture(scope="module", params=PACKAGED)
def packaged(request: pytest.FixtureRequest) -> tercet.Scorer:
    return tercet.load(request.param, device="cpu")


def test_a_packaged_scorer_finds_the_answer(packaged: tercet.Scorer) -> None:
    answers = ["Water it once a week.", "It rained all day.", "The library opens at nine."]
    assert packaged.rank("When can I borrow books?", answers, k=1)[0].position == 2


def test_a_packaged_scorer_knows_paraphrases(packaged: tercet.Scorer) -> None:
    scores = packaged.score("A man plays the guitar.", ["Somebody is playing a guitar.", "A man eats soup."])
    assert scores[0] > scores[1]


def test_a_packaged_scorer_reads_long_texts(packaged: tercet.Scorer) -> None:
    words = "the library lends books to everybody who lives in this town " * 60
    with pytest.warns(tercet.TruncationWarning):
        assert np.isfinite(packaged.score(words, [words, "no"])).all()


def test_the_packaged_weights_are_small_together() -> None:
    assert sum(file.stat().st_size for file in OWN_MODELS.rglob("*") if file.is_file()) <= MOST_BYTES


@pytest.mark.parametrize("name", [name for name in PACKAGED if name != "bi"])
def test_a_model_card_says_what_a_user_must_know(name: str) -> None:
    card = (OWN_MODELS / name / "README.md").read_text(encoding="utf-8")
    head, *sections = re.split(r"^## ", card, flags=re.MULTILINE)
    assert tercet.load(name, device="cpu").fingerprint in head
    assert tuple(section.partition("\n")[0] for section in sections) == SECTIONS
    assert all(len(section.split()) > 10 for section in sections)


@pytest.mark.parametrize("name", [name for name in PACKAGED if name != "bi"])
def test_a_packaged_model_is_another_than_the_one_it_began_with(name: str) -> None:
    folder = OWN_MODELS / name
    began = make_scorer(read_start(folder, read_manifest(folder) or {}), device="cpu")
    context, candidates = ["Hi!", "Is it raining?"], ["No, the sun is out.", "Yes, take a coat."]
    learnt = tercet.load(name, device="cpu")
    assert np.abs(learnt.score(context, candidates) - began.score(context, candidates)).max() > 0.01
