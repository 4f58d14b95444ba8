"""``tercet index`` and ``tercet search``, as users type them."""

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.command import assert_fails, assert_refused, tercet, tercet_process

import tercet as library
from tercet import retrieve as tercet_retrieve
from tercet.cli.index import compact
from tercet.index.store import GRAPH_THRESHOLD

FolderOf = Callable[[str], Path]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    file = tmp_path / "rows.jsonl"
    texts = ["the cat sat on the mat", "a dog ran", "bread and water", "an old house", "a dog sat"]
    lines = [{"key": f"k{n}", "text": text, "year": 2000 + n} for n, text in enumerate(texts)]
    file.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return file


@pytest.fixture
def index(rows: Path, tiny_folder: FolderOf, tmp_path: Path) -> str:
    path = str(tmp_path / "some.tercet")
    done = tercet(
        "index", "build", str(rows), "--id-column", "key", "-o", path, "-m", str(tiny_folder("bert"))
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{path}: 5 candidates\n"
    return path


def found(*words: str) -> list[str]:
    done = tercet("search", *words, "--json")
    assert done.returncode == 0, done.stderr
    return [hit["id"] for hit in json.loads(done.stdout)["hits"]]


def test_candidates_are_found_by_vectors_by_bm25_and_by_metadata(index: str) -> None:
    assert found(index, "a dog ran", "-k", "1") == ["k1"]
    assert set(found(index, "dogs", "--mode", "lexical")) == {"k1", "k4"}
    assert found(index, "a dog ran", "--where", "year=2003") == ["k3"]
    assert set(found(index, "a dog ran", "--where", "year in 2003,2000")) == {"k0", "k3"}
    shown = tercet("search", index, "a dog ran", "-k", "2").stdout
    assert "a dog ran" in shown
    assert "the best 2 of 5, certified" in shown


def test_contexts_come_from_a_file_or_are_typed_one_after_another(index: str, tmp_path: Path) -> None:
    file = tmp_path / "asked.txt"
    file.write_text("a dog ran\nbread and water\n")
    done = tercet("search", index, "--contexts", str(file), "-k", "1", "--json")
    typed = tercet("search", index, "-k", "1", "--json", stdin="a dog ran\nbread and water\n\n")
    for result in (done, typed):
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        assert [line["hits"][0]["id"] for line in lines] == ["k1", "k2"]
        assert {line["certainty"] for line in lines} == {"certified"}


def test_an_index_is_changed_without_building_it_again(index: str, tmp_path: Path) -> None:
    more = tmp_path / "more.jsonl"
    more.write_text('{"key": "k9", "text": "a red bird"}\n{"key": "k1", "text": "the blue bird"}\n')
    assert_fails(tercet("index", "add", index, str(more), "--id-column", "key"), "'k1' exists already")
    done = tercet("index", "add", index, str(more), "--id-column", "key", "--update")
    assert done.stdout == f"{index}: 1 updated, 1 added ('k9'), 6 candidates\n"
    assert found(index, "the blue bird", "-k", "1") == ["k1"]
    assert tercet("index", "remove", index, "k9", "k0").stdout == f"{index}: 4 candidates\n"
    assert tercet("index", "compact", index).stdout == f"{index}: 4 candidates\n"
    assert found(index, "a red bird", "-k", "9").count("k9") == 0
    info = json.loads(tercet("index", "info", index, "--json").stdout)
    assert (info["candidates"], info["removed"], info["kind"]) == (4, 0, "bi")


def test_a_reranker_reorders_the_best(index: str, tiny_folder: FolderOf, tmp_path: Path) -> None:
    cross = str(tmp_path / "cross")
    assert tercet("new", "cross", cross, "--backbone", str(tiny_folder("bert"))).returncode == 0
    again = json.loads(tercet("search", index, "a dog", "--reranker", cross, "--json", "-k", "2").stdout)
    texts = tercet("rank", "a dog", "-m", cross, "--json", "-k", "2", stdin=_texts(index)).stdout
    assert [hit["text"] for hit in again["hits"]] == [r["text"] for r in json.loads(texts)["ranking"]]


def _texts(index: str) -> str:
    hits = json.loads(tercet("search", index, "a dog", "-k", "9", "--json").stdout)["hits"]
    return "\n".join(hit["text"] for hit in hits)


def test_the_help_says_from_how_many_vectors_on_a_graph_is_built() -> None:
    assert f"build an HNSW graph from {GRAPH_THRESHOLD:,} vectors on" in str(compact.__doc__)


def test_damage_is_found_and_repaired(index: str) -> None:
    assert tercet("index", "verify", index).stdout == f"{index}: 5 candidates, no problems\n"
    file = next(Path(index).glob("segments/*/vectors.npy"))
    file.write_bytes(file.read_bytes()[:-10])
    broken = tercet("index", "verify", index)
    assert broken.returncode == 1
    assert f"to repair what can be, run: tercet index repair {index}" in broken.stdout
    assert_fails(tercet("search", index, "a dog"), 'run "tercet index repair"')
    assert tercet("index", "repair", index).stdout == f"{index}: 5 candidates, 5 of them encoded again\n"
    assert found(index, "a dog ran", "-k", "1") == ["k1"]


def test_a_repair_that_leaves_problems_fails(index: str) -> None:
    with closing(sqlite3.connect(Path(index) / "store.sqlite")) as connection, connection:
        connection.execute("UPDATE metadata SET value = 'true' WHERE name = 'text_columns'")
    assert tercet("index", "verify", index).returncode == 1
    assert_fails(tercet("index", "repair", index), "cannot be repaired: settings of the index: modified")
    assert tercet("index", "verify", index).returncode == 1


def test_a_large_k_is_the_size_of_the_index(index: str) -> None:
    for mode in ("vectors", "lexical", "hybrid"):
        assert len(found(index, "a dog sat", "-k", str(10**11), "--mode", mode)) in (2, 3, 5)


def test_an_interrupted_build_of_a_pipe_is_resumed_only_by_the_same_rows(
    tiny_folder: FolderOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "pipe.tercet"
    command = ("index", "build", "-", "-o", str(path), "-m", str(tiny_folder("bert")))
    first, second = ("".join(f"{word} {n}\n" for n in range(5)) for word in ("cat", "dog"))
    monkeypatch.setattr(tercet_retrieve, "ADDED_AT_ONCE", 2)
    encode, calls = tercet_retrieve.Retriever._encoded, []

    def interrupted(self: tercet_retrieve.Retriever, texts: list[str]) -> object:
        calls.append(texts)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return encode(self, texts)

    monkeypatch.setattr(tercet_retrieve.Retriever, "_encoded", interrupted)
    assert tercet(*command, stdin=first).returncode == 130
    assert_fails(
        tercet(*command, stdin=second),
        "unfinished build whose first 2 candidates differ from those given now",
    )
    assert_fails(
        tercet(*command, stdin="cat 0\n"),
        "unfinished build whose first 2 candidates differ from those given now",
    )
    assert tercet(*command, stdin=first).returncode == 0
    stored = tercet("index", "get", str(path), *"01234", "--json").stdout
    assert [json.loads(line)["text"] for line in stored.splitlines()] == first.splitlines()


def test_the_same_command_resumes_an_interrupted_build(
    rows: Path, tiny_folder: FolderOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "other.tercet"
    command = ("index", "build", str(rows), "-o", str(path), "-m", str(tiny_folder("bert")))
    monkeypatch.setattr(tercet_retrieve, "ADDED_AT_ONCE", 2)
    encode = tercet_retrieve.Retriever._encoded

    def interrupted(self: tercet_retrieve.Retriever, texts: list[str]) -> object:
        if "bread and water" in texts:
            raise KeyboardInterrupt
        return encode(self, texts)

    with monkeypatch.context() as patched:
        patched.setattr(tercet_retrieve.Retriever, "_encoded", interrupted)
        stopped = tercet(*command)
    assert stopped.returncode == 130
    assert "stopped with 2 candidates, which are stored: run the same command to resume" in stopped.stderr
    assert "interrupted after 2 candidates" in tercet("search", str(path), "a dog").stderr
    assert "finished     no" in tercet("index", "info", str(path)).stdout
    other = tercet(*command, "--storage", "int8")
    started = 'is an unfinished build of 2 candidates, started with storage "float32" instead of "int8"'
    assert_fails(other, f"{started}: run that command again, or remove the index")
    content = rows.read_bytes()
    rows.write_bytes(content.replace(b"cat", b"cow"))
    assert_fails(tercet(*command), "first 2 candidates differ from those given now")
    rows.write_bytes(content)
    os.utime(rows, (1, 1))  # touched, with the same rows
    assert tercet(*command).stdout == f"{path}: 5 candidates\n"
    assert_fails(tercet(*command), "exists: choose another one")


def test_verify_and_repair_agree_on_metadata_that_is_not_json(index: str) -> None:
    with closing(sqlite3.connect(Path(index) / "store.sqlite")) as connection, connection:
        connection.execute("UPDATE candidates SET metadata = '{' WHERE id = 'k1'")
    verified = tercet("index", "verify", index)
    assert (verified.returncode, "run: tercet index repair" in verified.stdout) == (1, True)
    assert_fails(tercet("index", "repair", index), 'accept them with "tercet index repair --accept-loss"')
    assert tercet("index", "repair", index, "--accept-loss").returncode == 0
    assert tercet("index", "verify", index).returncode == 0


@pytest.mark.parametrize("cell", ["NaN", "Infinity", "1e999", '{"deep": [1, NaN]}'])
def test_a_cell_that_is_not_finite_is_named_by_its_row_and_column(cell: str, tmp_path: Path) -> None:
    file, out = tmp_path / "scores.jsonl", tmp_path / "new.tercet"
    file.write_text(f'{{"text": "a", "score": 1}}\n{{"text": "b", "score": {cell}}}\n')
    failed = tercet("index", "build", str(file), "-o", str(out))
    assert_fails(failed, "scores.jsonl, line 2: score")
    assert "an index stores finite numbers only: correct or empty the cell" in failed.stderr
    assert not out.exists()


def test_an_id_that_is_not_a_number_is_named_by_its_row(tmp_path: Path) -> None:
    file = tmp_path / "ids.jsonl"
    file.write_text('{"text": "a", "id": 1}\n{"text": "b", "id": NaN}\n')
    failed = tercet("index", "build", str(file), "-o", str(tmp_path / "new.tercet"))
    assert_fails(failed, "ids.jsonl, line 2: id = nan")


def test_long_candidates_are_found_by_their_best_chunk(tmp_path: Path, tiny_folder: FolderOf) -> None:
    file, path = tmp_path / "long.jsonl", str(tmp_path / "long.tercet")
    text = "the red bird sat in the old tree. " * 9 + "bread and water."
    file.write_text(
        json.dumps({"id": "long", "text": text}) + "\n" + json.dumps({"id": "b", "text": "a dog ran"})
    )
    options = "-m", str(tiny_folder("bert")), "--chunk", "12", "--chunk-overlap", "3"
    done = tercet("index", "build", str(file), "-o", path, *options)
    assert done.returncode == 0, done.stderr
    best = json.loads(tercet("search", path, "bread and water.", "--json").stdout)["hits"][0]
    assert best["id"] == "long"
    assert text[best["part"]["start"] : best["part"]["end"]].endswith("bread and water.")
    assert "chunks" in tercet("index", "info", path).stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--chunk", "many"], "--chunk must be a number of tokens or max, got 'many'"),
        (["--chunk-overlap", "3"], "need --chunk TOKENS"),
        (["--chunk", "5", "--chunk-overlap", "5"], "overlap must be smaller than size"),
        (["--chunk", "9999"], "got a size of 9999"),
    ],
)
def test_chunks_that_cannot_be_made_leave_no_folder_behind(
    rows: Path, tmp_path: Path, tiny_folder: FolderOf, options: list[str], message: str
) -> None:
    path = tmp_path / "x.tercet"
    model = "-m", str(tiny_folder("bert"))
    assert_fails(tercet("index", "build", str(rows), "-o", str(path), *model, *options), message)
    assert not path.exists()


def test_a_build_refuses_a_folder_that_is_not_an_index(tmp_path: Path) -> None:
    command = ("index", "build", "sample:faq.en", "--column", "question", "-o", str(tmp_path))
    assert_fails(tercet(*command), "exists and is not an index: choose another folder")


def test_wrong_input_ends_in_one_line(index: str, tmp_path: Path, rows: Path) -> None:
    assert_fails(tercet("search", str(tmp_path), "a dog"), "is not an index")
    assert_fails(tercet("search", index, "a dog", "--where", "year"), "a condition must be NAME=VALUE")
    assert_refused(tercet("search", index, "a dog", "--mode", "luck"), "'luck' is not one of 'vectors'")
    assert_fails(tercet("search", index, "a dog", "-k", "0"), "k must be at least 1")
    assert_fails(tercet("search", index, "a", "--contexts", str(rows)), "only one of them")
    assert_fails(tercet("search", index, "a dog", "-m", "bi"), "was built by the bi-encoder")
    assert_fails(tercet("index", "remove", index, "nobody"), "has no candidate 'nobody'")
    build = ("index", "build", str(rows), "-o", str(tmp_path / "new.tercet"))
    assert_fails(tercet(*build, "--id-column", "id"), "column 'id' is missing")
    assert_refused(tercet(*build, "--storage", "float8"), "'float8' is not one of 'float32'")
    assert not (tmp_path / "new.tercet").exists()
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    assert tercet("index", "build", str(empty), "-o", str(tmp_path / "new.tercet")).returncode == 1
    assert not (tmp_path / "new.tercet").exists()
    made = library.Retriever("bi", path=tmp_path / "made.tercet")
    made.close()
    assert_fails(tercet("index", "build", str(rows), "-o", str(tmp_path / "made.tercet")), "exists")
    assert_fails(
        tercet("index", "build", str(rows), "-o", str(tmp_path / "made.tercet"), "--column", "x"), "exists"
    )
    assert (tmp_path / "made.tercet").is_dir()


def test_two_processes_share_an_index(index: str) -> None:
    done = tercet_process("search", index, "a dog ran", "-k", "1", "--json")
    assert json.loads(done.stdout)["hits"][0]["id"] == "k1"


def test_ids_of_beir_are_recognized_and_repeated_ids_are_listed(
    tmp_path: Path, tiny_folder: FolderOf
) -> None:
    file, path = tmp_path / "corpus.jsonl", str(tmp_path / "c.tercet")
    file.write_text(
        '{"_id": "d1", "text": "a dog"}\n{"_id": "d2", "text": "a cat"}\n{"_id": "d1", "text": "x"}\n'
    )
    build = "index", "build", str(file), "-o", path, "-m", str(tiny_folder("bert"))
    assert_fails(tercet(*build), "line 3: the id 'd1' occurs in line 1 already")
    file.write_text('{"_id": "d1", "text": "a dog"}\n{"_id": "d2", "text": "a cat"}\n')
    assert tercet(*build).returncode == 0
    assert found(path, "a dog", "-k", "1") == ["d1"]


def test_a_file_without_rows_adds_nothing_and_says_so(index: str, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("key,text\n")
    added = tercet("index", "add", index, str(tmp_path / "empty.csv"), "--id-column", "key")
    assert_fails(added, "empty.csv has no rows: add at least one")


def test_an_export_has_the_suffix_of_a_known_format(index: str, tmp_path: Path) -> None:
    assert_fails(
        tercet("index", "export", index, "-o", str(tmp_path / "x.csv")),
        "ends in .jsonl, .parquet, .npy, .faiss, got x.csv",
    )


def test_a_skipped_row_is_noted_once(tmp_path: Path, tiny_folder: FolderOf) -> None:
    file, path = tmp_path / "rows.csv", str(tmp_path / "c.tercet")
    file.write_text("text,topic\na dog,x\n,y\n")
    done = tercet(
        "index",
        "build",
        str(file),
        "-o",
        path,
        "-m",
        str(tiny_folder("bert")),
        "--skip-empty",
        "--column",
        "text",
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("1 of 2 rows") == 1


@pytest.fixture
def faq(tmp_path: Path, tiny_folder: FolderOf) -> str:
    """An index whose texts are questions."""
    file, path = tmp_path / "faq.csv", str(tmp_path / "faq.tercet")
    file.write_text("ID;question;answer;topic\nF1;a dog ran;yes;dogs\nF2;old house;no;homes\n")
    done = tercet(
        "index", "build", str(file), "-o", path, "--column", "question", "-m", str(tiny_folder("bert"))
    )
    assert done.returncode == 0, done.stderr
    return path


def metadata_of(path: str, id_: str) -> dict[str, object]:
    stored: dict[str, object] = json.loads(tercet("index", "get", path, id_, "--json").stdout)
    return stored


def test_an_update_reads_the_columns_that_the_index_was_built_from(faq: str, tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    new.write_text("id,question,answer\nF1,a dog sat,maybe\n")
    assert tercet("index", "add", faq, str(new), "--update").returncode == 0
    assert metadata_of(faq, "F1") == {
        "id": "F1",
        "text": "a dog sat",
        "metadata": {"answer": "maybe", "topic": "dogs"},
    }
    new.write_text("id,answer\nF1,maybe\n")
    refused = tercet("index", "add", faq, str(new), "--update", "--column", "answer")
    assert_fails(refused, "'answer' is metadata of")
    assert metadata_of(faq, "F1")["text"] == "a dog sat"


def test_an_update_names_new_ids_and_new_columns(faq: str, tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    new.write_text("id,question,antwort\nF01,a dog sat,ja\n")
    done = tercet("index", "add", faq, str(new), "--update")
    assert done.stdout == f"{faq}: 0 updated, 1 added ('F01'), 3 candidates\n"
    assert "new in the metadata: 'antwort'; the other columns are 'answer', 'topic'" in done.stderr


def test_joined_columns_but_the_last_can_be_shown(tmp_path: Path, tiny_folder: FolderOf) -> None:
    file, path = tmp_path / "papers.csv", str(tmp_path / "papers.tercet")
    file.write_text("id,title,text\n1,Dogs,a dog ran\n")
    columns = "--column", "title", "--column", "text"
    assert (
        tercet("index", "build", str(file), "-o", path, *columns, "-m", str(tiny_folder("bert"))).returncode
        == 0
    )
    assert metadata_of(path, "1") == {"id": "1", "text": "Dogs\na dog ran", "metadata": {"title": "Dogs"}}


def test_the_column_of_contexts_may_be_called_text(faq: str, tmp_path: Path) -> None:
    queries = tmp_path / "queries.jsonl"
    queries.write_text('{"_id": "q1", "text": "a dog"}\n')
    done = tercet("search", faq, "--contexts", str(queries), "--json", "-k", "1")
    assert json.loads(done.stdout)["columns"] == {"_id": "q1"}
    queries.write_text('{"_id": "q1", "words": "a dog"}\n')
    assert "(--context-column)" in tercet("search", faq, "--contexts", str(queries)).stderr
