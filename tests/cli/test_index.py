"""``tercet index`` and ``tercet search``, as users type them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.command import assert_fails, tercet, tercet_process

import tercet as library
from tercet import retrieve as tercet_retrieve

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


def test_what_was_built_is_found_by_vectors_words_and_metadata(index: str) -> None:
    assert found(index, "a dog ran", "-k", "1") == ["k1"]
    assert set(found(index, "dogs", "--mode", "words")) == {"k1", "k4"}
    assert found(index, "a dog ran", "--where", "year=2003") == ["k3"]
    assert set(found(index, "a dog ran", "--where", "year=2003", "--where", "year=2000")) == {"k0", "k3"}
    shown = tercet("search", index, "a dog ran", "-k", "2").stdout
    assert "a dog ran" in shown
    assert "the best 2 of 5, certified" in shown


def test_many_contexts_come_from_a_file_and_one_after_another_from_a_person(
    index: str, tmp_path: Path
) -> None:
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
    assert_fails(tercet("index", "add", index, str(more), "--id-column", "key"), "'k1' is there already")
    done = tercet("index", "add", index, str(more), "--id-column", "key", "--update")
    assert done.stdout == f"{index}: 6 candidates, 5 before\n"
    assert found(index, "the blue bird", "-k", "1") == ["k1"]
    assert tercet("index", "remove", index, "k9", "k0").stdout == f"{index}: 4 candidates\n"
    assert tercet("index", "compact", index).stdout == f"{index}: 4 candidates\n"
    assert found(index, "a red bird", "-k", "9").count("k9") == 0
    told = json.loads(tercet("index", "info", index, "--json").stdout)
    assert (told["candidates"], told["removed"], told["kind"]) == (4, 0, "bi")


def test_a_reranker_reads_the_best_again(index: str, tiny_folder: FolderOf, tmp_path: Path) -> None:
    cross = str(tmp_path / "cross")
    assert tercet("new", "cross", cross, "--backbone", str(tiny_folder("bert"))).returncode == 0
    again = json.loads(tercet("search", index, "a dog", "--reranker", cross, "--json", "-k", "2").stdout)
    texts = tercet("rank", "a dog", "-m", cross, "--json", "-k", "2", stdin=_texts(index)).stdout
    assert [hit["text"] for hit in again["hits"]] == [r["candidate"] for r in json.loads(texts)["ranking"]]


def _texts(index: str) -> str:
    hits = json.loads(tercet("search", index, "a dog", "-k", "9", "--json").stdout)["hits"]
    return "\n".join(hit["text"] for hit in hits)


def test_damage_is_found_and_repaired(index: str) -> None:
    assert tercet("index", "verify", index).stdout == f"{index}: 5 candidates, and all is well\n"
    file = next(Path(index).glob("segments/*/vectors.npy"))
    file.write_bytes(file.read_bytes()[:-10])
    broken = tercet("index", "verify", index)
    assert broken.returncode == 1
    assert "can be repaired: tercet index repair" in broken.stdout
    assert_fails(tercet("search", index, "a dog"), "run tercet index repair")
    assert tercet("index", "repair", index).stdout == f"{index}: 5 candidates, 5 of them encoded again\n"
    assert found(index, "a dog ran", "-k", "1") == ["k1"]


def test_an_interrupted_build_goes_on_with_the_same_command(
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
    assert "stopped with 2 candidates, which are kept: the same command goes on" in stopped.stderr
    assert tercet(*command).stdout == f"{path}: 5 candidates\n"
    assert_fails(tercet(*command), "exists: choose another folder")


def test_wrong_input_ends_in_one_line(index: str, tmp_path: Path, rows: Path) -> None:
    assert_fails(tercet("search", str(tmp_path), "a dog"), "is no index: make one with tercet index build")
    assert_fails(tercet("search", index, "a dog", "--where", "year"), "a condition is NAME=VALUE")
    assert_fails(tercet("search", index, "a dog", "--mode", "luck"), "mode must be one of")
    assert_fails(tercet("search", index, "a dog", "-k", "0"), "k must be at least 1")
    assert_fails(tercet("search", index, "a", "--contexts", str(rows)), "only one of them")
    assert_fails(tercet("search", index, "a dog", "-m", "bi"), "was built by the bi-encoder")
    assert_fails(tercet("index", "remove", index, "nobody"), "there is no candidate 'nobody'")
    build = ("index", "build", str(rows), "-o", str(tmp_path / "new.tercet"))
    assert_fails(tercet(*build, "--id-column", "id"), "there is no column 'id'")
    assert_fails(tercet(*build, "--storage", "float8"), "storage must be one of")
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
