"""``tercet pairs`` and ``tercet cluster``, as users type them."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.command import assert_fails, tercet

import tercet as library

TEXTS = [
    "How do I cook rice?",
    "a dog",
    "the stock market fell",
    "Rice: how is it cooked?",
    "a puppy",
    "<b>&",
]


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    return str(path)


def test_pairs_shows_the_closest_first(file: str, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in tercet("pairs", file, "--count", "2", "--json").stdout.splitlines()]
    assert [(row["first"], row["second"]) for row in rows] == [(0, 3), (1, 4)]
    assert rows[0]["texts"] == [TEXTS[0], TEXTS[3]]
    assert rows[0]["score"] > rows[1]["score"] > 0.5
    shown = tercet("pairs", file, "--threshold", "0.8").stdout
    assert "Rice: how is it cooked?" in shown
    assert "the closest 1 pairs of 6 texts" in shown
    out = str(tmp_path / "pairs.jsonl")
    assert tercet("pairs", file, "--count", "9", "-o", out).stdout == f"{out}: 9 rows\n"
    assert_fails(tercet("pairs", file, "-o", out), "exists")


def test_the_library_gives_the_same_pairs_and_groups(file: str, minilm: library.BiEncoder) -> None:
    (pair,) = library.closest_pairs(minilm, TEXTS, 1)
    assert (pair.first, pair.second) == (0, 3)
    assert pair.score == pytest.approx(float(minilm.score(TEXTS[0], [TEXTS[3]])[0]), abs=1e-6)
    assert sorted(map(sorted, library.groups(minilm, TEXTS, threshold=0.6))) == [[0, 3], [1, 4]]
    with pytest.raises(library.InputError, match="takes a bi-encoder of one tower"):
        library.closest_pairs(library.PolyEncoder.from_backbone("bi", device="cpu"), TEXTS)


@pytest.mark.parametrize("layout", ["pca", "umap"])
def test_cluster_groups_and_draws(file: str, tmp_path: Path, layout: str) -> None:
    page = tmp_path / "map.html"
    done = tercet("cluster", file, "--threshold", "0.6", "--map", str(page), "--layout", layout)
    assert "2 groups hold 4 of 6 texts" in done.stdout
    assert f"{page}: a map of 6 texts" in done.stdout
    drawn = page.read_text()
    points = json.loads(drawn.partition("const points = ")[2].partition(";\n")[0].replace("<\\/", "</"))
    assert [text for *_, text in points] == TEXTS
    assert len({colour for _, _, colour, _ in points}) == 3
    assert np.isfinite([point[:2] for point in points]).all()


def test_a_map_can_be_a_picture(file: str, tmp_path: Path) -> None:
    picture = tmp_path / "map.png"
    done = tercet("cluster", file, "--threshold", "0.6", "--map", str(picture), "--json")
    assert [json.loads(line)["rows"] for line in done.stdout.splitlines()] == [[0, 3], [1, 4]]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_text_cannot_end_the_script_of_a_map(tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("</script><script>alert(1)</script>\nanother\nDATA COUNT\n")
    tercet("cluster", str(texts), "--map", str(tmp_path / "map.html"))
    assert (tmp_path / "map.html").read_text().count("</script>") == 1


def test_wrong_input_ends_in_one_line(file: str, tmp_path: Path) -> None:
    assert_fails(tercet("pairs", file, "--count", "0"), "count must be")
    assert_fails(tercet("cluster", file, "--smallest", "0"), "smallest must be")
    assert_fails(tercet("cluster", file, "--map", str(tmp_path / "map.svg")), "an .html or a .png file")
    assert_fails(
        tercet("cluster", file, "--map", str(tmp_path / "m.png"), "--layout", "x"), "layout must be one of"
    )
    one = tmp_path / "one.txt"
    one.write_text("alone\n")
    assert "the closest 0 pairs" in tercet("pairs", str(one)).stdout
