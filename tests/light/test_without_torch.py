"""The base installation: everything but training, other architectures and GPUs works without torch."""

import json
from pathlib import Path

import pytest

import tercet as library
from tests.light.process import environment, python, tercet
from tests.serve.running import running_server

FAQ = ("-c", "sample:faq.en", "--column", "question")

API = """
import json, tercet
from tercet.data.sample import questions
texts = [each.question for each in questions("en")]
found = {}
for name in ("bi", "bi-ko", "poly", "cross"):
    scorer = tercet.load(name)
    ranking = scorer.rank("My card was declined", texts, 3)
    found[name] = [[ranked.position, round(ranked.score, 4)] for ranked in ranking]
scorer = tercet.load("bi")
found["score"] = scorer.score("a cat sat", ["a kitten rested"]).round(4).tolist()
found["pairs"] = [[pair.first, pair.second] for pair in tercet.closest_pairs(scorer, texts, 3)]
found["clusters"] = len(tercet.clusters(scorer, texts, threshold=0.6))
retriever = tercet.Retriever("poly", reranker="cross")
retriever.add(texts)
found["search"] = [hit.id for hit in retriever.search("My card was declined", 3)]
print(json.dumps(found))
"""


def test_the_library_has_the_same_answers_with_and_without_torch(tmp_path: Path) -> None:
    def answers(**variables: str) -> dict[str, object]:
        done = python("-c", API, folder=tmp_path, **variables)
        assert done.returncode == 0, done.stderr
        found: dict[str, object] = json.loads(done.stdout)
        return found

    without = answers()
    assert without == answers(PYTHONPATH=str(Path(library.__file__).parents[1]), TERCET_RUNTIME="openvino")
    assert without["search"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("explain", "--model", "poly", "Is it raining?", "Yes, take an umbrella."),
        ("cluster", "sample:faq.en", "--column", "answer", "--threshold", "0.6", "--map", "map.html"),
        ("evaluate", "bi", "answers:sample:faq.en"),
        ("data", "negatives", "sample:faq.en", "-o", "hard.jsonl", "--by", "model"),
    ],
)
def test_a_command_needs_no_torch(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = tercet(*arguments, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_an_index_is_built_and_searched_without_torch_and_tantivy(tmp_path: Path) -> None:
    built = tercet(
        "index", "build", "sample:faq.en", "--column", "question", "-o", "faq.tercet", folder=tmp_path
    )
    assert built.returncode == 0, built.stderr
    assert "pip install 'tercet[lexical]'" in built.stderr
    found = tercet("search", "faq.tercet", "My card was declined", "-k", "1", folder=tmp_path)
    assert "Why was my card payment refused?" in found.stdout
    lexical = tercet("search", "faq.tercet", "card", "--mode", "lexical", folder=tmp_path)
    assert "has no lexical index" in lexical.stderr


def test_the_server_embeds_and_reranks_without_torch(tmp_path: Path) -> None:
    options = ("--model", "bi", "--model", "cross")
    with running_server(*options, log=tmp_path / "log", environment=environment()) as server:
        texts = ["Water it.", "The library opens at nine."]
        body = {"model": "cross", "query": "When can I borrow books?", "documents": texts}
        assert server.post("/v1/rerank", body).json()["results"][0]["index"] == 1
        vectors = server.post("/v1/embeddings", {"model": "bi", "input": texts}).json()["data"]
        assert [len(each["embedding"]) for each in vectors] == [384, 384]


def test_info_says_what_is_not_installed(tmp_path: Path) -> None:
    described = json.loads(tercet("info", "--json", folder=tmp_path).stdout)
    assert described["machine"]["torch"] == described["machine"]["transformers"] == "not installed"
    assert described["model"]["runtime"] == "openvino on cpu"


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("train", "bi-sample"), "train"),
        (("cross-validate", "sbert-arguments", "--group", "topic"), "train"),
        (("pretrain", "pretrain-sample"), "train"),
        (
            (
                "distill",
                "bi",
                "sample:parallel.en-ko",
                "--column",
                "source=en",
                "--column",
                "target=ko",
                "-o",
                "run",
            ),
            "train",
        ),
        (("augment", "augment-sample"), "augment"),
        (("new", "bi", "my-bi", "--backbone", "bi"), "torch"),
        (("calibrate", "cross", "--data", "sample:pairs.en", "--match-from", "3", "-o", "out"), "torch"),
        (("bench",), "torch"),
        (("evaluate", "mean:bi", "answers:sample:faq.en"), "torch"),
    ],
)
def test_a_command_that_needs_torch_prints_its_install_line(
    arguments: tuple[str, ...], extra: str, tmp_path: Path
) -> None:
    done = tercet(*arguments, folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr.strip().endswith(f"needs torch, which is not installed: pip install 'tercet[{extra}]'")


NAMES = {
    "BiEncoder": "torch",
    "CrossEncoder": "torch",
    "PolyEncoder": "torch",
    "match": "torch",
    "run_recipe": "train",
}

CALLS = """
import tercet
def failing(call):
    try: call()
    except tercet.errors.MissingExtraError as error: print(error)
for name in {names}:
    failing(lambda: getattr(tercet, name))
failing(lambda: tercet.load("bi", device="cpu"))
failing(lambda: tercet.load("bi").save("copy"))
"""


def test_calls_that_need_torch_raise_with_the_install_line(tmp_path: Path) -> None:
    done = python("-c", CALLS.format(names=list(NAMES)), folder=tmp_path)
    lines = done.stdout.splitlines()
    for line, (name, extra) in zip(lines, NAMES.items(), strict=False):
        assert line == f"tercet.{name} needs torch, which is not installed: pip install 'tercet[{extra}]'"
    assert len(lines) == len(NAMES) + 2
    assert all("pip install 'tercet[torch]'" in line for line in lines[-2:])


def test_a_folder_of_another_library_names_torch(tiny: library.BiEncoder, tmp_path: Path) -> None:
    folder = tiny.save(tmp_path / "model")
    (folder / "tercet.json").unlink()
    done = tercet("rank", "x", *FAQ, "--model", str(folder), folder=tmp_path)
    assert "needs torch, which is not installed: pip install 'tercet[torch]'" in done.stderr
    found = tercet("rank", "a dog", *FAQ, "--model", str(folder), folder=tmp_path, TERCET_RUNTIME="openvino")
    assert found.returncode == 0, found.stderr


def test_a_gpu_is_no_reason_for_torch_where_it_is_not_installed(tmp_path: Path) -> None:
    code = "from pathlib import Path; from tercet.formats import load; load.GPU_DEVICES = ('/dev/null',)"
    done = python("-c", f"{code}; print(load.load('bi').runtime)", folder=tmp_path)
    assert done.stdout.strip() == "openvino"
