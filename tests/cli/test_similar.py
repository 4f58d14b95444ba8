"""``tercet pairs`` and ``tercet cluster``, as users type them."""

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.cli.command import assert_fails, assert_refused, tercet

import tercet as library
from tercet.cli.map_layout import layout_points, pick_layout
from tercet.cli.similar import _show_clusters, _show_pairs
from tercet.records import ClosePair

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
    assert tercet("pairs", file, "--count", "2", "-o", out, "--overwrite").stdout == f"{out}: 2 rows\n"


def test_a_threshold_means_all_pairs_and_a_table_says_what_it_leaves_out(file: str, tmp_path: Path) -> None:
    many = tmp_path / "many.txt"
    many.write_text("".join(f"a dog {number}\n" for number in range(8)))  # 8 · 7 / 2 = 28 pairs
    out = str(tmp_path / "pairs.jsonl")
    assert tercet("pairs", str(many), "--threshold", "-1", "-o", out).stdout == f"{out}: 28 rows\n"
    assert len(Path(out).read_text().splitlines()) == 28
    assert len(tercet("pairs", str(many), "--threshold", "-1", "--json").stdout.splitlines()) == 28
    shown = tercet("pairs", str(many), "--threshold", "-1").stdout.split()
    assert "the closest 28 pairs of 8 texts; 20 of 28 shown; -o FILE writes all" in " ".join(shown)
    assert tercet("pairs", str(many), "-o", out, "--overwrite").stdout == f"{out}: 28 rows\n"
    printed = tercet("pairs", str(many), "--json")
    assert len(printed.stdout.splitlines()) == 20
    assert "20 of 28 pairs: give --count or --threshold, or -o FILE for all" in printed.stderr


def test_a_table_of_clusters_says_what_it_leaves_out(tmp_path: Path) -> None:
    file = tmp_path / "twice.txt"
    animals = (
        "dog",
        "cat",
        "horse",
        "snake",
        "eagle",
        "shark",
        "whale",
        "mouse",
        "frog",
        "bee",
        "wolf",
        "elk",
    )
    file.write_text("".join(f"{animal}\n{animal}\n" for animal in animals))
    shown = tercet("cluster", str(file), "--threshold", "0.99").stdout.split()
    assert "12 clusters with 24 of 24 texts; 10 of 12 shown; -o FILE writes all" in " ".join(shown)


def test_other_columns_are_kept_with_pairs_and_clusters(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("id;text\n7;a dog\n8;a puppy\n")
    (pair,) = tercet("pairs", str(file), "--json").stdout.splitlines()
    assert json.loads(pair)["columns"] == [{"id": "7"}, {"id": "8"}]
    (cluster,) = tercet("cluster", str(file), "--threshold", "0.5", "--json").stdout.splitlines()
    assert json.loads(cluster)["rows"] == [0, 1]
    assert json.loads(cluster)["columns"] == [{"id": "7"}, {"id": "8"}]


def test_the_library_finds_the_same_pairs_and_clusters(file: str, minilm: library.BiEncoder) -> None:
    (pair,) = library.closest_pairs(minilm, TEXTS, 1)
    assert (pair.first, pair.second) == (0, 3)
    assert pair.score == pytest.approx(float(minilm.score(TEXTS[0], [TEXTS[3]])[0]), abs=1e-6)
    assert sorted(map(sorted, library.clusters(minilm, TEXTS, threshold=0.6))) == [[0, 3], [1, 4]]
    with pytest.raises(library.errors.InputError, match="bi-encoder with one tower"):
        library.closest_pairs(library.PolyEncoder.from_backbone("bi", device="cpu"), TEXTS)


@pytest.mark.parametrize(("layout", "picked"), [("auto", "pca"), ("umap", "umap")])
def test_cluster_finds_clusters_and_draws_a_map(file: str, tmp_path: Path, layout: str, picked: str) -> None:
    page = tmp_path / "map.html"
    done = tercet("cluster", file, "--threshold", "0.6", "--map", str(page), "--layout", layout)
    assert "2 clusters with 4 of 6 texts" in done.stdout
    assert f"{page}: a map of 6 texts" in done.stdout
    assert all(name in done.stdout for name in ("rice, cooked", "puppy, dog"))
    drawn = page.read_text()
    assert f"layout: {picked}" in drawn
    points = json.loads(drawn.partition("const points = ")[2].partition(";\n")[0])
    assert [text for *_, text in points] == TEXTS
    assert [cluster for _, _, cluster, _ in points] == [0, 1, -1, 0, 1, -1]
    places = np.array([point[:2] for point in points])
    assert (places.min(), places.max()) == (0, 1)


def test_a_large_map_uses_umap_by_default() -> None:
    assert pick_layout("auto", 499) == "pca"
    assert pick_layout("auto", 500) == "umap"
    assert pick_layout("pca", 500) == "pca"


def test_a_large_map_without_umap_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.warns(UserWarning, match=r"pip install 'tercet\[map\]'"):
        assert pick_layout("auto", 500) == "pca"


def test_a_map_can_be_a_picture(file: str, tmp_path: Path) -> None:
    picture = tmp_path / "map.png"
    done = tercet("cluster", file, "--threshold", "0.6", "--map", str(picture), "--json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["rows"] for row in rows] == [[0, 3], [1, 4]]
    assert [row["name"] for row in rows] == ["rice, cooked", "puppy, dog"]
    assert done.stderr.strip() == ""
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_text_cannot_end_the_script_of_a_map(tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("</script><script>alert(1)</script>\nanother\nDATA COUNT\n")
    tercet("cluster", str(texts), "--map", str(tmp_path / "map.html"))
    assert (tmp_path / "map.html").read_text().count("</script>") == 1


def test_wrong_input_ends_in_one_line(file: str, tmp_path: Path) -> None:
    assert_fails(tercet("pairs", file, "--count", "0"), "count must be")
    assert_fails(tercet("pairs", file, "--threshold", "nan"), "threshold must be a number, got float nan")
    assert_fails(tercet("cluster", file, "--threshold", "nan"), "threshold must be a number, got float nan")
    assert_fails(tercet("cluster", file, "--min-size", "0"), "min_size must be")
    assert_fails(tercet("cluster", file, "--map", str(tmp_path / "map.svg")), "an .html or a .png file")
    assert_refused(
        tercet("cluster", file, "--map", str(tmp_path / "m.png"), "--layout", "x"), "'x' is not one of 'auto'"
    )
    one = tmp_path / "one.txt"
    one.write_text("alone\n")
    assert "the closest 0 pairs" in tercet("pairs", str(one)).stdout


@pytest.mark.parametrize("width", [40, 60, 61, 80])
def test_tables_keep_every_letter_of_wide_scripts(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    texts = [
        "얘 빽다방이랑 메가커피 중에 더치커피가 더 비싼곳이 어디니",
        "삼성과 엘지 중에 어떤 태블릿이 더 쓰기 편해",
    ]
    _show_pairs([ClosePair(0, 1, 0.9)], texts, [0, 1], caption="")
    _show_clusters([[0, 1]], texts, ["태블릿"])
    shown = capsys.readouterr().out
    assert "…" not in shown
    letters = Counter(letter for letter in shown if letter.isalpha() and not letter.isascii())
    assert letters == Counter("".join(texts * 2).replace(" ", "") + "태블릿")


def test_positions_count_skipped_rows(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("id,text\n1,\n2,a dog ran\n3,\n4,a dog ran fast\n")
    options = str(file), "--column", "text", "--skip-empty", "--json"
    pair = json.loads(tercet("pairs", *options).stdout)
    assert (pair["first"], pair["second"]) == (1, 3)
    assert pair["columns"] == [{"id": "2"}, {"id": "4"}]
    (cluster,) = map(json.loads, tercet("cluster", *options, "--threshold", "0.1").stdout.splitlines())
    assert sorted(cluster["rows"]) == [1, 3]
    ranked = json.loads(tercet("rank", "a dog", "-c", *options).stdout)["ranking"]
    assert {entry["position"]: entry["columns"]["id"] for entry in ranked} == {1: "2", 3: "4"}


def test_the_layout_umap_leaves_the_threads_of_torch_alone() -> None:
    pytest.importorskip("umap")
    threads = torch.get_num_threads()
    layout_points(np.random.default_rng(0).random((30, 8), dtype=np.float32), "umap")
    assert torch.get_num_threads() == threads
