"""All three kinds of scorer on the command line: made, described, used, explained."""

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.cli.command import assert_fails, tercet

FolderOf = Callable[[str], Path]

KINDS = {
    "bi": ["--pooling", "max", "--similarity", "dot", "--towers", "2"],
    "poly": ["--codes", "3", "--code-kind", "last_and_first", "--reduction", "max"],
    "cross": ["--head", "dense", "--activation", "sigmoid"],
}


@pytest.fixture(scope="module")
def made(tiny_folder: FolderOf, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder of each kind, made by the command."""
    folder = tmp_path_factory.mktemp("made")
    for kind, options in KINDS.items():
        result = tercet("new", kind, str(folder / kind), "--backbone", str(tiny_folder("bert")), *options)
        assert result.returncode == 0, result.stderr
        assert re.fullmatch(
            rf".*{kind}: an untrained {kind}-encoder, fingerprint [0-9a-f]{{16}}\n", result.stdout
        )
    return {kind: folder / kind for kind in KINDS}


def test_info_describes_every_kind(made: dict[str, Path]) -> None:
    facts = {
        kind: json.loads(tercet("info", "-m", str(folder), "--json").stdout) for kind, folder in made.items()
    }
    assert {kind: found["model"]["kind"] for kind, found in facts.items()} == {kind: kind for kind in KINDS}
    assert facts["bi"]["model"]["similarity"] == "dot"
    assert facts["poly"]["model"]["codes"] == "3 last_and_first"
    assert facts["poly"]["model"]["candidates by"] == "max"
    assert facts["cross"]["model"]["head"] == "dense"


@pytest.mark.parametrize("kind", KINDS)
def test_rank_and_score_take_every_kind(kind: str, made: dict[str, Path]) -> None:
    folder = str(made[kind])
    result = tercet("rank", "the cat sat", "-m", folder, "--json", stdin="a dog ran\nold house\n")
    ranking = json.loads(result.stdout)["ranking"]
    lines = tercet("score", "the cat sat", "a dog ran", "old house", "-m", folder).stdout.splitlines()
    scores = {line.split("  ")[-1]: float(line.split()[0]) for line in lines}
    assert {ranked["candidate"]: round(ranked["score"], 4) for ranked in ranking} == scores


def test_encode_takes_a_poly_encoder_and_refuses_a_cross_encoder(
    made: dict[str, Path], tmp_path: Path
) -> None:
    out = str(tmp_path / "vectors.npy")
    assert_fails(tercet("encode", "-", "-o", out, "-m", str(made["cross"]), stdin="cat\n"), "has no vectors")
    result = tercet("encode", "-", "-o", out, "-m", str(made["poly"]), stdin="cat\ndog\n")
    assert "2 vectors of 16" in result.stdout


def test_explain_prints_codes_and_words(made: dict[str, Path]) -> None:
    result = tercet("explain", "-m", str(made["poly"]), "a dog ran", "the cat sat", "old house", "--top", "2")
    assert result.returncode == 0
    assert "old house" in result.stdout
    assert "dog" in result.stdout
    assert "%" in result.stdout


def test_explain_tells_what_was_not_read(made: dict[str, Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = tercet("explain", "-m", str(made["poly"]), "cat " * 60, "old house", "--html", str(page))
    assert "14 tokens of the context not read" in result.stdout
    assert "14 tokens of the context not read" in page.read_text()


def test_score_shows_the_classes_of_a_model_without_a_score(tiny_folder: FolderOf, tmp_path: Path) -> None:
    folder = str(tmp_path / "nli")
    options = ("--outputs", "2", "--label", "yes", "--label", "no", "--activation", "softmax")
    assert tercet("new", "cross", folder, "-b", str(tiny_folder("bert")), *options).returncode == 0
    found = json.loads(tercet("score", "the cat", "a dog", "-m", folder, "--json").stdout)
    assert found["yes"] + found["no"] == pytest.approx(1)
    assert re.match(
        r"yes 0\.\d+  no 0\.\d+  a dog\n", tercet("score", "the cat", "a dog", "-m", folder).stdout
    )


def test_explain_gives_json_that_adds_up(made: dict[str, Path]) -> None:
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


def test_explain_draws_a_page_that_nobody_can_inject_into(made: dict[str, Path], tmp_path: Path) -> None:
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


def test_explain_overwrites_no_page_unasked(made: dict[str, Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("precious")
    words = ("explain", "-m", str(made["poly"]), "the cat", "a dog", "--html", str(page))
    assert_fails(tercet(*words), "page.html exists")
    assert page.read_text() == "precious"
    assert tercet(*words, "--overwrite").returncode == 0


@pytest.mark.parametrize("kind", ["bi", "cross"])
def test_only_a_poly_encoder_is_explained(kind: str, made: dict[str, Path]) -> None:
    result = tercet("explain", "-m", str(made[kind]), "the cat", "a dog")
    assert_fails(result, f"only a poly-encoder has codes to explain, and {made[kind]} is a {kind}-encoder")


def test_new_overwrites_nothing(made: dict[str, Path]) -> None:
    assert_fails(tercet("new", "poly", str(made["poly"])), "is a folder that exists")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("poly", "OUT", "--codes", "0"), "codes must be at least 1, got 0"),
        (("poly", "OUT", "--code-kind", "middle"), "code_kind must be one of learnt"),
        (("poly", "OUT", "--code-scale", "-1"), "code_scale must be a number from 1e-06 to 1e+06"),
        (("poly", "OUT", "--symmetric", "--towers", "2"), "with 1 tower, got 2"),
        (("poly", "OUT", "--backbone", "/no/where"), "there is no folder /no/where"),
        (("cross", "OUT", "--head", "deep"), "head must be one of linear, dense, native, compare"),
        (
            ("cross", "OUT", "--outputs", "2", "--label", "yes"),
            "2 outputs need as many different labels, got yes",
        ),
        (("cross", "OUT", "--max-tokens", "3"), "max_tokens must leave room for two texts"),
        (("bi", "OUT", "--towers", "3"), "towers must be 1 or 2"),
        (("bi", "/no/where/OUT"), "/no/where is not a folder"),
    ],
)
def test_bad_settings_get_one_clear_line(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    given = [str(tmp_path / word) if word == "OUT" else word for word in words]
    assert_fails(tercet("new", *given), message)
    assert list(tmp_path.iterdir()) == []


def test_an_option_of_another_kind_is_explained(tmp_path: Path) -> None:
    result = tercet("new", "bi", str(tmp_path / "x"), "--codes", "4")
    assert result.returncode == 2
    assert "--codes" in result.stderr
