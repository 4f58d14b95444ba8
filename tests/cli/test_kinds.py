"""All three kinds of scorer on the command line: created, described, used, explained."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from tests.cli.command import assert_fails, assert_refused, tercet

from tercet import PoolingConfig, load
from tercet.cli.explain_page import SHOWN_CODES, page
from tercet.records import CodeShare, Explanation, ExplanationMethod, TokenShare

FolderOf = Callable[[str], Path]

KINDS = {
    "bi": ["--pooling", "max", "--similarity", "dot", "--towers", "2"],
    "poly": ["--codes", "3", "--code-kind", "last_and_first", "--reduction", "max"],
    "cross": ["--head", "dense", "--activation", "sigmoid"],
}


@pytest.fixture(scope="module")
def made(tiny_folder: FolderOf, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder of each kind, created by the command."""
    folder = tmp_path_factory.mktemp("made")
    for kind, options in KINDS.items():
        result = tercet("new", kind, str(folder / kind), "--backbone", str(tiny_folder("bert")), *options)
        assert result.returncode == 0, result.stderr
        assert re.fullmatch(
            rf".*{kind}: an untrained {kind}-encoder, fingerprint [0-9a-f]{{16}}\n", result.stdout
        )
    return {kind: folder / kind for kind in KINDS}


def test_info_describes_every_kind(made: dict[str, Path]) -> None:
    described = {
        kind: json.loads(tercet("info", "-m", str(folder), "--json").stdout) for kind, folder in made.items()
    }
    assert {kind: found["model"]["kind"] for kind, found in described.items()} == {
        kind: kind for kind in KINDS
    }
    assert described["bi"]["model"]["similarity"] == "dot"
    assert described["poly"]["model"]["codes"] == "3 last_and_first"
    assert described["poly"]["model"]["reduction"] == "max"
    assert described["cross"]["model"]["head"] == "dense"


@pytest.mark.parametrize("kind", KINDS)
def test_rank_and_score_take_every_kind(kind: str, made: dict[str, Path]) -> None:
    folder = str(made[kind])
    result = tercet("rank", "the cat sat", "-m", folder, "--json", stdin="a dog ran\nold house\n")
    ranking = json.loads(result.stdout)["ranking"]
    lines = tercet("score", "the cat sat", "a dog ran", "old house", "-m", folder).stdout.splitlines()
    scores = {line.split("  ")[-1]: float(line.split()[0]) for line in lines}
    assert {ranked["text"]: round(ranked["score"], 4) for ranked in ranking} == scores


def test_encode_takes_a_poly_encoder_and_refuses_a_cross_encoder(
    made: dict[str, Path], tmp_path: Path
) -> None:
    out = str(tmp_path / "vectors.npy")
    assert_fails(
        tercet("encode", "-", "-o", out, "-m", str(made["cross"]), stdin="cat\n"),
        "a cross-encoder has no vectors",
    )
    result = tercet("encode", "-", "-o", out, "-m", str(made["poly"]), stdin="cat\ndog\n")
    assert "2 vectors of 16 dimensions" in result.stdout


def test_explain_prints_codes_and_words(made: dict[str, Path]) -> None:
    result = tercet("explain", "-m", str(made["poly"]), "a dog ran", "the cat sat", "old house", "--top", "2")
    assert result.returncode == 0
    assert "old house" in result.stdout
    assert "dog" in result.stdout
    assert "%" in result.stdout
    assert "the 2 codes with the largest weights of 4" in result.stdout
    every = tercet("explain", "-m", str(made["poly"]), "a dog ran", "the cat sat", "old house")
    assert "all 4 codes" in every.stdout


def test_the_page_of_an_explanation_says_how_many_codes_it_leaves_out() -> None:
    tokens = (TokenShare("a", 0, 1, 1.0, 0.5),)
    codes = tuple(CodeShare(position, weight=1 / 13, contribution=0.0) for position in range(SHOWN_CODES + 1))
    found = Explanation(
        context="a",
        candidate="b",
        score=0.5,
        method=ExplanationMethod.EXACT,
        codes=codes,
        tokens=tokens,
        candidate_tokens=(),
        attention=np.ones((len(codes), 1), dtype=np.float32),
        context_truncated=0,
        candidate_truncated=0,
    )
    assert "the 12 codes with the largest weights of 13" in page(found)
    assert "all 12 codes" in page(replace(found, codes=codes[:12]))


def test_explain_counts_truncated_tokens(made: dict[str, Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = tercet("explain", "-m", str(made["poly"]), "cat " * 60, "old house", "--html", str(page))
    assert "14 tokens of the context truncated" in result.stdout
    assert "14 tokens of the context truncated" in page.read_text()


def test_score_shows_the_classes_of_a_model_without_a_score(tiny_folder: FolderOf, tmp_path: Path) -> None:
    folder = str(tmp_path / "nli")
    options = ("--num-labels", "2", "--label", "yes", "--label", "no", "--activation", "softmax")
    assert tercet("new", "cross", folder, "-b", str(tiny_folder("bert")), *options).returncode == 0
    found = json.loads(tercet("score", "the cat", "a dog", "-m", folder, "--json").stdout)
    assert found["yes"] + found["no"] == pytest.approx(1)
    assert re.match(
        r"yes 0\.\d+  no 0\.\d+  a dog\n", tercet("score", "the cat", "a dog", "-m", folder).stdout
    )


def test_explain_prints_json_that_adds_up(made: dict[str, Path]) -> None:
    result = tercet("explain", "-m", str(made["poly"]), "the cat sat", "old house", "--json")
    found = json.loads(result.stdout)
    assert sum(token["contribution"] for token in found["tokens"]) == pytest.approx(found["score"], rel=1e-4)
    assert len(found["attention"]) == len(found["codes"]) == 4


class Texts(HTMLParser):
    """What a reader sees of the marked context, and whether every tag is one of ours."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.marked = ""
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if ("class", "text") in attrs:
            self._inside = True

    def handle_endtag(self, tag: str) -> None:
        if tag == "p":
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.marked += data


def test_texts_are_escaped_on_the_page_of_explain(made: dict[str, Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    hostile = 'the cat <script>alert(1)</script> & "sat" $score'
    result = tercet("explain", "-m", str(made["poly"]), hostile, "<img src=x>", "--html", str(page))
    assert result.returncode == 0, result.stderr
    seen = Texts()
    seen.feed(page.read_text(encoding="utf-8"))
    assert "script" not in seen.tags
    assert "img" not in seen.tags
    assert seen.marked == f"<s>{hostile}</s>"
    assert "http" not in page.read_text(encoding="utf-8")  # opens offline


def test_explain_overwrites_no_page_without_permission(made: dict[str, Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("precious")
    words = ("explain", "-m", str(made["poly"]), "the cat", "a dog", "--html", str(page))
    assert_fails(tercet(*words), "page.html exists")
    assert page.read_text() == "precious"
    assert tercet(*words, "--overwrite").returncode == 0


@pytest.mark.parametrize(("kind", "claim"), [("bi", "Exact"), ("cross", "Approximate")])
def test_bi_and_cross_encoders_are_explained_with_their_method(
    kind: str, claim: str, made: dict[str, Path], tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    hostile = "the cat <script>alert(1)</script> sat"
    words = ("explain", "-m", str(made[kind]), "old house", hostile)
    result = tercet(*words, "--html", str(page))
    assert result.returncode == 0, result.stderr
    assert claim in result.stdout
    assert re.search(r"house [+-]\d\.\d{3}", result.stdout)
    shown = page.read_text(encoding="utf-8")
    seen = Texts()
    seen.feed(shown)
    assert "script" not in seen.tags
    assert hostile in seen.marked
    assert claim in shown
    assert ("add up to the score." in shown) == (kind == "bi")
    assert "http" not in shown
    assert json.loads(tercet(*words, "--json").stdout)["method"] == {"bi": "exact"}.get(kind, "leave-one-out")


def test_leaving_words_out_can_be_asked_of_any_model(made: dict[str, Path]) -> None:
    for kind in KINDS:
        words = ("explain", "-m", str(made[kind]), "the cat sat", "old house", "--leave-one-out", "--json")
        found = json.loads(tercet(*words).stdout)
        assert found["method"] == "leave-one-out"
        assert [token["text"] for token in found["tokens"]] == ["the", "cat", "sat"]
        assert [token["text"] for token in found["candidate_tokens"]] == ["old", "house"]


def test_explain_says_why_a_single_word_has_no_contribution(made: dict[str, Path]) -> None:
    result = tercet("explain", "-m", str(made["cross"]), "never", "old house")
    assert "the context has one word, which cannot be left out" in result.stdout


def test_new_overwrites_nothing(made: dict[str, Path]) -> None:
    assert_fails(tercet("new", "poly", str(made["poly"])), f"the folder {made['poly']} exists")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("poly", "OUT", "--codes", "0"), "codes must be at least 1, got 0"),
        (("poly", "OUT", "--code-scale", "-1"), "code_scale must be a number from 1e-06 to 1e+06"),
        (("poly", "OUT", "--symmetric", "--towers", "2"), "needs 1 tower for both texts, got 2"),
        (("poly", "OUT", "--backbone", "/no/where"), "there is no folder /no/where"),
        (
            ("cross", "OUT", "--num-labels", "2", "--label", "yes"),
            "labels must be 2 different names, got yes",
        ),
        (("cross", "OUT", "--max-tokens", "3"), "max_tokens must leave room for two texts"),
        (("bi", "OUT", "--towers", "3"), "towers must be 1 or 2"),
        (("bi", "OUT", "--first-tokens", "0"), "first_tokens must be at least 1, got 0"),
        (("bi", "OUT", "--first-tokens", "3"), "has no effect without pooling"),
        (("bi", "/no/where/OUT"), "/no/where is not a folder"),
    ],
)
def test_bad_settings_get_one_clear_line(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    given = [str(tmp_path / word) if word == "OUT" else word for word in words]
    assert_fails(tercet("new", *given), message)
    assert list(tmp_path.iterdir()) == []


def test_a_new_bi_encoder_averages_the_first_tokens(tiny_folder: FolderOf, tmp_path: Path) -> None:
    words = ("--pooling", "mean_first", "--first-tokens", "3", "--pooling", "max")
    made = tercet("new", "bi", str(tmp_path / "bi"), "-b", str(tiny_folder("bert")), *words)
    assert "does not load in sentence-transformers: the pooling mean_first is unknown there" in made.stderr
    loaded = load(tmp_path / "bi", device="cpu")
    assert loaded.context_tower.pooling == PoolingConfig(kinds=("mean_first", "max"), first_tokens=3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("poly", "OUT", "--code-kind", "middle"), "'middle' is not one of 'learnt'"),
        (("cross", "OUT", "--head", "deep"), "'deep' is not one of 'linear', 'dense', 'native', 'compare'"),
    ],
)
def test_unknown_choices_are_refused(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    given = [str(tmp_path / word) if word == "OUT" else word for word in words]
    assert_refused(tercet("new", *given), message)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_setting_is_an_option_with_help(kind: str) -> None:
    from dataclasses import fields

    from tercet.settings.models import SCORER_CONFIGS

    shown = tercet("new", kind, "--help").stdout
    for field in fields(SCORER_CONFIGS[kind]):
        name = {"labels": "label"}.get(field.name, field.name)
        assert f"--{name.replace('_', '-')}" in shown


def test_an_option_of_another_kind_is_explained(tmp_path: Path) -> None:
    result = tercet("new", "bi", str(tmp_path / "x"), "--codes", "4")
    assert result.returncode == 2
    assert "--codes" in result.stderr
