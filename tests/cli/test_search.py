"""What ``tercet search`` shows, and the commands that read an index."""

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from rich.console import Console
from tests.cli.command import SHOWN, assert_fails, tercet

from tercet.cli.hits import MATCHED, HitsView, candidate_text, hits_table
from tercet.index.lexical import LexicalIndex
from tercet.records import Certainty, Hit, Hits, Part

FolderOf = Callable[[str], Path]
KOREAN = "신용카드 승인 오류가 발생하는 이유는 무엇인가요?"


@pytest.fixture(scope="module")
def index(tiny_folder: FolderOf, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("shown")
    rows = [
        {"id": "cat", "text": "the cat sat on the mat", "topic": "animals", "year": "9", "answer": "a mat"},
        {"id": "dog", "text": "a dog ran", "topic": "animals", "year": "10", "answer": "A dog that ran."},
        {"id": "house", "text": "old house", "topic": "places", "year": "11"},
        {"id": "long", "text": "the red bird " * 300 + "sat in the old river", "topic": "animals"},
    ]
    file = folder / "rows.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    path = str(folder / "some.tercet")
    done = tercet("index", "build", str(file), "-o", path, "-m", str(tiny_folder("bert")))
    assert done.returncode == 0, done.stderr
    return path


def test_columns_of_metadata_are_shown(index: str) -> None:
    shown = tercet("search", index, "a dog ran", "-k", "4", "--show", "answer", "--show", "topic").stdout
    assert "A dog that ran." in shown
    assert "places" in shown
    assert "null" not in shown
    assert_fails(
        tercet("search", index, "a dog", "--show", "anwser"),
        "no candidate has 'anwser' in its metadata: the columns are 'answer', 'topic', 'year'",
    )


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_letter_of_a_wide_text_is_cut(width: int) -> None:
    hits = Hits((Hit("an-id-of-many-letters", KOREAN, 0.5, {"answer": KOREAN * 2}),), Certainty.CERTIFIED)
    page = io.StringIO()
    table = hits_table("카드", hits, HitsView(searched="1", columns=("answer",)))
    Console(file=page, width=width).print(table)
    cells = [line.split("│") for line in page.getvalue().splitlines() if line.startswith("│")]
    for column, text in ((3, "an-id-of-many-letters"), (4, KOREAN), (5, KOREAN * 2)):
        assert "".join("".join(row[column].split()) for row in cells) == text.replace(" ", "")


def test_the_table_of_rank_folds_texts_too(tmp_path: Path, tiny_folder: FolderOf) -> None:
    file = tmp_path / "texts.txt"
    file.write_text(KOREAN.replace(" ", "") + "\n")
    with patch.dict(SHOWN, COLUMNS="40"):
        shown = tercet("rank", "카드", "-c", str(file), "-m", str(tiny_folder("bert"))).stdout
    cells = [line.split("│")[4] for line in shown.splitlines() if line.startswith("│")]
    assert "".join("".join(cells).split()).startswith(KOREAN.replace(" ", ""))


def test_a_long_text_is_shown_as_a_snippet_unless_it_is_asked_for(index: str) -> None:
    length = len("the red bird " * 300 + "sat in the old river")
    search = ("search", index, "an old river", "--where", "topic=animals")
    shown = " ".join(tercet(*search).stdout.replace("│", " ").split())
    assert "long … " in shown
    assert f"sat in the old river [of {length:,} characters]" in shown
    assert shown.count("bird") < 30
    assert tercet(*search, "--full").stdout.count("bird") == 300
    by_stem = tercet("search", index, "rivers", "--mode", "lexical").stdout  # finds "river", no equal word
    assert "sat in the old river [of" in " ".join(by_stem.replace("│", " ").split())
    hits = json.loads(tercet(*search, "--json").stdout)["hits"]
    assert max(len(hit["text"]) for hit in hits) == length


def test_words_are_marked_by_stem_where_the_lexical_index_matched(tmp_path: Path) -> None:
    def marked(view: HitsView, text: str, context: str) -> list[str]:
        shown = candidate_text(Hit("1", text, 0.5), context, view)
        return [shown.plain[span.start : span.end] for span in shown.spans if span.style == MATCHED]

    lexical = HitsView(searched="1", analyze=LexicalIndex(tmp_path).terms)
    vectors = HitsView(searched="1")
    assert marked(lexical, "Cards refused", "a card refuses") == ["Cards", "refused"]
    assert marked(lexical, KOREAN, "카드가 안 돼요") == ["카드"]
    assert marked(vectors, "Cards refused", "a card refuses") == []
    assert marked(vectors, "The card", "a Card") == ["card"]
    long = "filler words here " * 100 + "Cards refused today"
    assert marked(lexical, long, "a card refuses") == ["Cards", "refused"]


def test_comparisons_select_candidates_and_are_named(index: str) -> None:
    shown = tercet("search", index, "a dog", "--where", "year<10.5", "--where", "topic!=places").stdout
    assert "the best 2 of 2 with year<10.5 and topic!=places, certified" in " ".join(shown.split())
    assert "old house" not in shown


def test_unknown_names_and_values_are_answered_with_those_that_exist(index: str) -> None:
    search = ("search", index, "a dog", "--where")
    assert_fails(tercet(*search, "topci=x"), "the columns are 'answer', 'topic', 'year'")
    assert_fails(
        tercet(*search, "topic=x"), "no candidate has topic=x: the values of 'topic' are 'animals', 'pl"
    )
    assert_fails(tercet(*search, "topic=places", "--where", "topic=animals"), "can never both hold")


def test_conditions_that_no_candidate_meets_together_end_in_a_note(index: str) -> None:
    search = ("search", index, "a dog", "--where", "topic=places", "--where", "year<10")
    done = tercet(*search)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "no candidate has topic=places and year<10\n"
    done = tercet(*search, "--json")
    assert json.loads(done.stdout)["hits"] == []
    assert done.stderr == "no candidate has topic=places and year<10\n"


def test_a_lexical_search_without_a_common_word_says_so(index: str) -> None:
    done = tercet("search", index, "zebra", "--mode", "lexical")
    assert done.stdout == "no candidate has a word of the context (--mode vectors compares meanings)\n"


def test_options_of_the_reranker_are_checked_before_anything_is_opened(tmp_path: Path) -> None:
    search = ("search", str(tmp_path / "missing.tercet"), "a dog")
    assert_fails(
        tercet(*search, "--rerank", "0", "--reranker", "cross"), "--rerank 0 would turn the reranker off"
    )
    assert_fails(tercet(*search, "--rerank", "5"), "--rerank 5 needs a cross-encoder: add --reranker")
    assert_fails(tercet(*search, "--rerank", "-5", "--reranker", "cross"), "--rerank must be at least 1")
    assert_fails(tercet(*search, "--reranker", str(tmp_path / "no-model")), "there is no folder")


def test_candidates_are_shown_by_id(index: str) -> None:
    assert tercet("index", "get", index, "dog").stdout.splitlines() == [
        "id      dog",
        "text    a dog ran",
        "topic   animals",
        "year    10",
        "answer  A dog that ran.",
    ]
    rows = [
        json.loads(line)
        for line in tercet("index", "get", index, "house", "dog", "--json").stdout.splitlines()
    ]
    assert rows[0] == {"id": "house", "text": "old house", "metadata": {"topic": "places", "year": "11"}}
    assert rows[1]["id"] == "dog"
    assert_fails(tercet("index", "get", index, "dog", "x", "y"), "the index has no candidate 'x', 'y'")


def test_all_unknown_ids_of_a_removal_are_listed(index: str) -> None:
    unknown = [f"x{number}" for number in range(12)]
    done = tercet("index", "remove", index, "dog", *unknown)
    assert_fails(
        done, "has no candidate 'x0', 'x1', 'x2', 'x3', 'x4', 'x5', 'x6', 'x7', 'x8', 'x9' and 2 more"
    )
    assert tercet("index", "get", index, "dog").returncode == 0


def test_an_export_builds_the_same_index(index: str, tiny_folder: FolderOf, tmp_path: Path) -> None:
    first, second, vectors = (tmp_path / name for name in ("a.jsonl", "b.jsonl", "a.npy"))
    done = tercet("index", "export", index, "-o", str(first), "--vectors", str(vectors))
    assert done.stdout == f"{first}: 4 candidates, vectors in {vectors}\n"
    assert np.load(vectors).shape == (4, 16)
    assert_fails(tercet("index", "export", index, "-o", str(first)), "exists: choose another path")
    again = str(tmp_path / "again.tercet")
    tercet("index", "build", str(first), "-o", again, "-m", str(tiny_folder("bert")))
    tercet("index", "export", again, "-o", str(second))
    assert second.read_text() == first.read_text()


def test_an_update_from_a_file_changes_only_the_columns_that_it_has(
    index: str, tmp_path: Path, tiny_folder: FolderOf
) -> None:
    copy, file = str(tmp_path / "copy.tercet"), tmp_path / "rows.jsonl"
    tercet("index", "export", index, "-o", str(file))
    tercet("index", "build", str(file), "-o", copy, "-m", str(tiny_folder("bert")))
    new = tmp_path / "new.csv"
    new.write_text("id,text\ncat,a cat ran\n")
    assert tercet("index", "add", copy, str(new), "--update").returncode == 0
    row = json.loads(tercet("index", "get", copy, "cat", "--json").stdout)
    assert row == {
        "id": "cat",
        "text": "a cat ran",
        "metadata": {"topic": "animals", "year": "9", "answer": "a mat"},
    }
    new.write_text("id,text,topic\ncat,a cat sat,pets\n")
    tercet("index", "add", copy, str(new), "--update")
    assert json.loads(tercet("index", "get", copy, "cat", "--json").stdout)["metadata"] == {
        "topic": "pets",
        "year": "9",
        "answer": "a mat",
    }


def test_the_best_chunk_is_shown_with_its_position() -> None:
    hit = Hit("1", "one two three four five six", 0.5, part=Part(8, 18))
    view = HitsView(searched="1")
    assert candidate_text(hit, "x", view).plain == "three four [characters 8 to 18 of 27]"
    assert candidate_text(hit, "x", replace(view, full=True)).plain == hit.text
