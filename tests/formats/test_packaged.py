"""The packaged models: their size, their model cards, and what they can do, in English and Korean."""

import re

import numpy as np
import pytest

import tercet
from tercet.errors import TruncationWarning
from tercet.formats.from_spec import make_scorer, spec_from_manifest
from tercet.formats.manifest import read_manifest
from tercet.formats.sources import OWN_MODELS, PACKAGED, resolve_model

SECTIONS = ("Data", "Recipe", "Figures", "Limits", "Licence")
MAX_BYTES = 36_000_000
BILINGUAL = [name for name in PACKAGED if name != "bi"]


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


@pytest.mark.parametrize("name", BILINGUAL)
def test_a_bilingual_model_ranks_a_korean_answer_first(name: str) -> None:
    answers = ["일주일에 한 번 물을 주세요.", "하루 종일 비가 왔어요.", "도서관은 아홉 시에 엽니다."]
    scorer = tercet.load(name, device="cpu")
    assert scorer.rank("책은 언제 빌릴 수 있나요?", answers, k=1)[0].position == 2
    assert scorer.rank("When can I borrow books?", answers, k=1)[0].position == 2


def test_korean_words_are_tokens_of_their_own() -> None:
    unknown = tercet.load("bi", device="cpu").tokenizer.bare_ids(["도서관"])[0]
    known = tercet.load("bi-ko", device="cpu").tokenizer.bare_ids(["도서관"])[0]
    assert len(known) == 1 < len(unknown)


@pytest.mark.parametrize("name", ["poly", "cross"])
def test_a_name_with_ko_means_the_same_model(name: str) -> None:
    assert resolve_model(f"{name}-ko") == resolve_model(name)


def test_english_is_tokenized_alike_with_and_without_korean() -> None:
    texts = ["Where's the café, Mr. O'Neill?", "naïve ½ price — 10€!", "don't", "東京"]
    bi, bilingual = (tercet.load(name, device="cpu").tokenizer.bare_ids(texts) for name in ("bi", "bi-ko"))
    assert bi == bilingual


def test_the_packaged_weights_are_at_most_36_megabytes() -> None:
    assert sum(file.stat().st_size for file in OWN_MODELS.rglob("*") if file.is_file()) <= MAX_BYTES


@pytest.mark.parametrize("name", BILINGUAL)
def test_a_model_card_has_the_fingerprint_and_all_sections(name: str) -> None:
    card = (OWN_MODELS / name / "README.md").read_text(encoding="utf-8")
    head, *sections = re.split(r"^## ", card, flags=re.MULTILINE)
    assert tercet.load(name, device="cpu").fingerprint in head
    assert tuple(section.partition("\n")[0] for section in sections) == SECTIONS
    assert all(len(section.split()) > 10 for section in sections)


@pytest.mark.parametrize("name", ["poly", "cross"])
def test_a_packaged_model_scores_differently_from_its_base_model(name: str) -> None:
    folder = OWN_MODELS / name
    base = make_scorer(spec_from_manifest(folder, read_manifest(folder) or {}), device="cpu")
    context, candidates = ["Hi!", "Is it raining?"], ["No, the sun is out.", "Yes, take a coat."]
    packaged = tercet.load(name, device="cpu")
    assert np.abs(packaged.score(context, candidates) - base.score(context, candidates)).max() > 0.01
