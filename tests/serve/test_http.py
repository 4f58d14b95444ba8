"""The HTTP interface of a real server with tiny models: answers equal the library's, and errors are kind."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import numpy as np
import pytest
from tests.conftest import SENTENCES
from tests.serve.running import Server, running_server, tiny_models, tiny_options

import tercet

CONTEXT, CANDIDATES = "the old cat", SENTENCES


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def server(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    limits = [
        *("--set", "limits.max_texts=50", "--set", "limits.max_text_characters=2000"),
        *("--set", "limits.max_body_bytes=20000", "--set", "limits.max_k=20"),
        *("--set", "limits.max_explained_characters=200", "--set", "engine.max_request_tokens=2000"),
    ]
    log = tmp_path_factory.mktemp("log") / "log"
    with running_server(*tiny_options(folder), *limits, log=log) as found:
        yield found


def error_of(answer: httpx.Response) -> dict[str, object]:
    error: dict[str, object] = answer.json()["error"]
    assert set(error) == {"message", "type", "code", "param", "limit", "request_id"}
    assert error["code"] == answer.status_code
    assert error["request_id"] == answer.headers["x-request-id"]
    return error


@pytest.mark.parametrize("kind", ["bi", "poly", "cross"])
def test_rank_equals_the_library(server: Server, folder: Path, kind: str) -> None:
    for context in (CONTEXT, ["a dog", "the old cat"]):
        answer = server.post("/v1/rank", {"context": context, "candidates": CANDIDATES, "model": kind}).json()
        expected = tercet.load(folder / kind).rank(context, CANDIDATES)
        assert [each["position"] for each in answer["ranking"]] == [each.position for each in expected]
        scores = [each["score"] for each in answer["ranking"]]
        np.testing.assert_allclose(scores, [each.score for each in expected], atol=1e-5)
        assert (answer["model"], answer["kind"]) == (kind, kind)


@pytest.mark.parametrize("kind", ["bi", "poly", "cross"])
def test_scores_equal_the_library(server: Server, folder: Path, kind: str) -> None:
    contexts = [CONTEXT, ("a dog", "ran"), "bread"]
    scorer = tercet.load(folder / kind)
    request = {"contexts": contexts, "candidates": CANDIDATES, "model": kind}
    answer = server.post("/v1/score", request).json()
    np.testing.assert_allclose(answer["scores"], scorer.score_many(contexts, CANDIDATES), atol=1e-5)
    request = {"contexts": contexts, "candidates": CANDIDATES[:3], "model": kind, "pairs": True}
    answer = server.post("/v1/score", request).json()
    np.testing.assert_allclose(answer["scores"], scorer.score_pairs(contexts, CANDIDATES[:3]), atol=1e-5)


def test_a_symmetric_poly_encoder_scores_in_both_directions(folder: Path, tmp_path: Path) -> None:
    config = tercet.PolyConfig(codes=4, symmetric=True, towers=1)
    scorer = tercet.PolyEncoder.from_backbone(folder / "encoder", config=config)
    scorer.save(tmp_path / "symmetric")
    cross = tercet.CrossEncoder.from_backbone(folder / "encoder", config=tercet.CrossConfig(symmetric=True))
    cross.save(tmp_path / "both")
    options = ["--model", str(tmp_path / "symmetric"), "--model", str(tmp_path / "both")]
    with running_server(*options, log=tmp_path / "log") as server:
        for name, model in (("symmetric", scorer), ("both", cross)):
            request = {"contexts": SENTENCES[:3], "candidates": SENTENCES, "model": name}
            scores = server.post("/v1/score", request).json()["scores"]
            np.testing.assert_allclose(scores, model.score_many(SENTENCES[:3], SENTENCES), atol=1e-5)
            request = {"contexts": SENTENCES[:3], "candidates": SENTENCES[3:6], "model": name, "pairs": True}
            scores = server.post("/v1/score", request).json()["scores"]
            np.testing.assert_allclose(scores, model.score_pairs(SENTENCES[:3], SENTENCES[3:6]), atol=1e-5)


def test_embeddings_equal_the_library(server: Server, folder: Path) -> None:
    vectors = tercet.load(folder / "bi").encode(SENTENCES)
    answer = server.post("/v1/embeddings", {"input": SENTENCES, "model": "bi"}).json()
    np.testing.assert_allclose([each["embedding"] for each in answer["data"]], vectors, atol=1e-6)
    assert [each["index"] for each in answer["data"]] == list(range(len(SENTENCES)))
    request = {"input": SENTENCES[0], "model": "bi", "encoding_format": "base64"}
    written = server.post("/v1/embeddings", request).json()["data"][0]["embedding"]
    np.testing.assert_allclose(np.frombuffer(base64.b64decode(written), "<f4"), vectors[0], atol=1e-6)


def test_dimensions_keep_the_first_ones_and_normalize(server: Server, folder: Path) -> None:
    expected = tercet.load(folder / "bi").encode(SENTENCES, dimensions=4, normalize=True)
    answer = server.post("/v1/embeddings", {"input": SENTENCES, "dimensions": 4}).json()
    np.testing.assert_allclose([each["embedding"] for each in answer["data"]], expected, atol=1e-6)


def test_token_arrays_equal_their_texts(server: Server, folder: Path) -> None:
    scorer = tercet.load(folder / "bi")
    ids = scorer.tokenizer.bare_ids(SENTENCES[:3])
    by_text = server.post("/v1/embeddings", {"input": SENTENCES[:3]}).json()
    by_ids = server.post("/v1/embeddings", {"input": ids}).json()
    one = server.post("/v1/embeddings", {"input": ids[0]}).json()
    np.testing.assert_allclose(
        [each["embedding"] for each in by_ids["data"]],
        [each["embedding"] for each in by_text["data"]],
        atol=1e-6,
    )
    assert one["data"][0]["embedding"] == pytest.approx(by_text["data"][0]["embedding"], abs=1e-6)
    assert by_ids["usage"] == by_text["usage"]


def test_usage_counts_tokens_with_special_ones(server: Server) -> None:
    answer = server.post("/v1/embeddings", {"input": ["a dog ran", "never"]}).json()
    assert answer["usage"] == {"prompt_tokens": 5 + 3, "total_tokens": 5 + 3}


def test_every_answer_says_what_was_truncated(server: Server) -> None:
    long = "cat " * 60  # the model reads 46 tokens beside its special ones
    answer = server.post("/v1/embeddings", {"input": ["cat", long]}).json()
    assert answer["truncated"] == [{"index": 1, "tokens": 14}]
    answer = server.post("/v1/rank", {"context": "dog", "candidates": ["cat", long], "model": "bi"}).json()
    dropped = {each["position"]: each["candidate_truncated"] for each in answer["ranking"]}
    assert dropped == {0: 0, 1: 14}
    answer = server.post("/v1/score", {"contexts": [long], "candidates": ["cat"], "model": "bi"}).json()
    assert answer["truncated_contexts"] == [{"index": 0, "tokens": 14}]
    answer = server.post("/v1/rerank", {"query": "dog", "documents": ["cat", long]}).json()
    assert [each["index"] for each in answer["truncated"]] == [1]
    answer = server.post("/v1/explain", {"context": "cat " * 47, "candidate": "cat", "model": "bi"}).json()
    assert answer["context_truncated"] == 1
    answer = server.post("/v1/search", {"index": "faq", "context": long}).json()
    assert answer["context_truncated"] == 14


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank"])
def test_rerank_orders_documents_by_the_cross_encoder(server: Server, folder: Path, path: str) -> None:
    documents = [{"text": SENTENCES[0]}, *SENTENCES[1:]]
    request = {"query": CONTEXT, "documents": documents, "top_n": 3, "return_documents": True}
    answer = server.post(path, request).json()
    expected = tercet.load(folder / "cross").rank(CONTEXT, SENTENCES, k=3)
    assert [each["index"] for each in answer["results"]] == [each.position for each in expected]
    np.testing.assert_allclose(
        [each["score"] for each in answer["results"]], [each.score for each in expected], atol=1e-5
    )
    assert [each["document"]["text"] for each in answer["results"]] == [each.text for each in expected]
    assert all(0 <= each["relevance_score"] <= 1 for each in answer["results"])
    assert answer["model"] == "cross"


def test_tei_rerank_is_a_list(server: Server, folder: Path) -> None:
    request = {"query": CONTEXT, "texts": SENTENCES, "raw_scores": True, "return_text": True}
    answer = server.post("/rerank", request).json()
    expected = tercet.load(folder / "cross").rank(CONTEXT, SENTENCES, k=len(SENTENCES))
    assert [(each["index"], each["text"]) for each in answer] == [
        (each.position, each.text) for each in expected
    ]
    np.testing.assert_allclose(
        [each["score"] for each in answer], [each.score for each in expected], atol=1e-5
    )


@pytest.mark.parametrize("kind", ["bi", "poly", "cross"])
def test_explanations_equal_the_library(server: Server, folder: Path, kind: str) -> None:
    request = {"context": ["a dog", CONTEXT], "candidate": SENTENCES[0], "model": kind}
    answer = server.post("/v1/explain", request).json()
    expected = tercet.load(folder / kind).explain(("a dog", CONTEXT), SENTENCES[0])
    assert answer["score"] == pytest.approx(expected.score, abs=1e-5)
    assert [each["text"] for each in answer["tokens"]] == [each.text for each in expected.tokens]
    assert answer["method"] == expected.method.value
    assert len(answer["codes"]) == len(expected.codes)


@pytest.mark.parametrize("mode", ["vectors", "lexical", "hybrid"])
def test_search_equals_the_library(server: Server, folder: Path, mode: str) -> None:
    request = {"index": "faq", "context": CONTEXT, "k": 3, "mode": mode, "where": {"length": {">": 5}}}
    answer = server.post("/v1/search", request).json()
    with tercet.Retriever.open(folder / "faq.tercet", folder / "bi") as retriever:
        expected = retriever.search(CONTEXT, 3, mode=mode, where={"length": {">": 5}})
    assert [each["id"] for each in answer["hits"]] == [hit.id for hit in expected]
    np.testing.assert_allclose(
        [each["score"] for each in answer["hits"]], [hit.score for hit in expected], atol=1e-5
    )
    assert answer["certainty"] == expected.certainty.value
    assert answer["hits"][0]["metadata"] == dict(expected[0].metadata)


def test_search_reranks_if_asked(server: Server, folder: Path) -> None:
    answer = server.post("/v1/search", {"index": "faq", "context": CONTEXT, "k": 3, "rerank": 8}).json()
    with tercet.Retriever.open(folder / "faq.tercet", folder / "bi", reranker=folder / "cross") as retriever:
        expected = retriever.search(CONTEXT, 3, rerank=8)
    assert [each["id"] for each in answer["hits"]] == [hit.id for hit in expected]
    assert answer["certainty"] == "reranked"


def test_candidates_are_added_updated_and_removed(server: Server) -> None:
    def size() -> int:
        return next(each["size"] for each in httpx.get(f"{server.url}/v1/indexes").json()["data"])

    before = size()
    new = [{"id": "new", "text": "the river", "topic": "water"}, "old water"]
    answer = server.post("/v1/indexes/faq/add", {"candidates": new}).json()
    assert answer == {"index": "faq", "changed": 2, "size": before + 2}
    found = server.post(
        "/v1/search", {"index": "faq", "context": "the river", "where": {"topic": "water"}}
    ).json()
    assert [hit["id"] for hit in found["hits"]] == ["new"]
    again = server.post("/v1/indexes/faq/add", {"candidates": new})
    assert again.status_code == 422
    assert size() == before + 2
    server.post("/v1/indexes/faq/update", {"candidates": [{"id": "new", "text": "a new river"}]})
    found = server.post("/v1/search", {"index": "faq", "context": "a new river", "k": 1}).json()
    assert found["hits"][0]["text"] == "a new river"
    assert found["hits"][0]["metadata"] == {"topic": "water"}
    other = server.post("/v1/search", {"index": "faq", "context": "old water", "k": 1}).json()["hits"][0][
        "id"
    ]
    answer = server.post("/v1/indexes/faq/remove", {"ids": ["new", other]}).json()
    assert answer == {"index": "faq", "changed": 2, "size": before}
    assert server.post("/v1/indexes/faq/remove", {"ids": ["new"]}).status_code == 422


def test_models_say_what_they_are(server: Server) -> None:
    models = {each["id"]: each for each in httpx.get(f"{server.url}/v1/models").json()["data"]}
    assert {name: each["kind"] for name, each in models.items()} == {
        "bi": "bi",
        "poly": "poly",
        "cross": "cross",
    }
    assert (models["bi"]["width"], models["poly"]["codes"], models["cross"]["width"]) == (16, 4, None)
    assert "Latin" in models["bi"]["scripts"]
    assert "Hangul" not in models["bi"]["scripts"]


def test_one_model_can_be_asked_for(server: Server) -> None:
    assert httpx.get(f"{server.url}/v1/models/poly").json()["kind"] == "poly"
    assert error_of(httpx.get(f"{server.url}/v1/models/nope"))["code"] == 404


def test_health_answers_head_and_refuses_bodies(server: Server) -> None:
    assert httpx.head(f"{server.url}/health/ready").status_code == 200
    refused = httpx.post(f"{server.url}/health/live", content=b"x" * 1000)
    assert (error_of(refused)["code"], refused.headers["connection"]) == (405, "close")


def test_a_long_list_is_refused_before_its_items_are_checked(server: Server) -> None:
    for path, name in (("/v1/rerank", "documents"), ("/v1/rank", "candidates"), ("/v1/score", "contexts")):
        error = error_of(server.post(path, {"query": "a", name: ["a"] + [1] * 5000}))
        assert (error["code"], error["limit"]) == (413, "max_texts")
    error = error_of(server.post("/v1/embeddings", {"input": [1] * 3000}))
    assert (error["code"], error["limit"]) == (413, "max_text_characters")


def test_errors_do_not_show_folders_of_the_server(server: Server, folder: Path) -> None:
    message = str(error_of(server.post("/v1/indexes/faq/remove", {"ids": ["missing"]}))["message"])
    assert "faq" in message
    assert str(folder) not in message


def test_health_and_metrics(server: Server) -> None:
    assert httpx.get(f"{server.url}/health/live").json() == {"status": "alive"}
    assert httpx.get(f"{server.url}/health/ready").json() == {"status": "ready"}
    server.post("/v1/rank", {"context": "a", "candidates": ["b", "cat " * 60]})
    metrics = httpx.get(f"{server.url}/metrics").text
    for name in (
        'tercet_requests_total{route="/v1/rank",status="200"}',
        'tercet_stage_seconds_bucket{le="0.1",model="bi",stage="forward"}',
        'tercet_stage_seconds_count{model="bi",stage="queue"}',
        'tercet_stage_seconds_count{model="bi",stage="tokenize"}',
        'tercet_batch_tokens_count{model="bi"}',
        'tercet_truncated_texts_total{model="bi"}',
        'tercet_queue_tokens{model="bi"} 0.0',
        "tercet_memory_bytes",
    ):
        assert name in metrics


BAD_BODIES = {
    "not JSON": b"{",
    "deep": b"[" * 5000 + b"]" * 5000,
    "deep inside": b'{"context": "a", "candidates": ' + b"[" * 900 + b"]" * 900 + b"}",
    "NaN": b'{"context": "a", "candidates": ["b"], "k": NaN}',
    "infinite": b'{"context": "a", "candidates": ["b"], "k": 1e999}',
    "half of a character": b'{"context": "\\ud800", "candidates": ["b"]}',
    "not UTF-8": b'{"context": "\xff", "candidates": ["b"]}',
    "UTF-16": '{"context": "a", "candidates": ["b"]}'.encode("utf-16"),
    "a list": b"[]",
    "a number": b"7",
    "null": b"null",
    "nothing": b"",
    "no candidates": b'{"context": "a", "candidates": []}',
    "an empty candidate": b'{"context": "a", "candidates": [""]}',
    "white space": b'{"context": " ", "candidates": ["b"]}',
    "no turns": b'{"context": [], "candidates": ["b"]}',
    "a wrong type": b'{"context": 5, "candidates": ["b"]}',
    "a wrong type inside": b'{"context": "a", "candidates": ["b", 5]}',
    "an unknown field": b'{"context": "a", "candidates": ["b"], "kk": 5}',
    "k of 0": b'{"context": "a", "candidates": ["b"], "k": 0}',
    "k of a fraction": b'{"context": "a", "candidates": ["b"], "k": 1.5}',
    "k as a string": b'{"context": "a", "candidates": ["b"], "k": "1"}',
    "a huge k": b'{"context": "a", "candidates": ["b"], "k": 123456789012345678901234567890}',
}


@pytest.mark.parametrize("name", BAD_BODIES)
def test_a_bad_body_is_a_4xx_of_one_shape(server: Server, name: str) -> None:
    headers = {"content-type": "application/json"}
    answer = httpx.post(f"{server.url}/v1/rank", content=BAD_BODIES[name], headers=headers)
    assert 400 <= answer.status_code < 500
    assert error_of(answer)["message"]


def test_many_candidates_and_a_large_k_are_no_problem_together(server: Server) -> None:
    answer = server.post("/v1/rank", {"context": "a", "candidates": ["b", "c"], "k": 1_000_000})
    assert len(answer.json()["ranking"]) == 2


@pytest.mark.parametrize(
    ("path", "request_body", "status", "limit"),
    [
        ("/v1/rank", {"context": "a", "candidates": ["b"] * 51}, 413, "max_texts"),
        ("/v1/rank", {"context": "a", "candidates": ["b" * 2001]}, 413, "max_text_characters"),
        ("/v1/rank", {"context": ["b" * 1001] * 2, "candidates": ["b"]}, 413, "max_text_characters"),
        ("/v1/rank", {"context": "a", "candidates": ["b" * 500] * 45}, 413, "max_body_bytes"),
        ("/v1/score", {"contexts": ["a"] * 8, "candidates": ["b"] * 8}, 413, "max_texts"),
        (
            "/v1/rerank",
            {"query": "b" * 300, "documents": [f"{n}" * 90 for n in range(49)]},
            413,
            "max_request_tokens",
        ),
        ("/v1/explain", {"context": "a" * 150, "candidate": "b" * 51}, 413, "max_explained_characters"),
        ("/v1/embeddings", {"input": ["a"] * 51}, 413, "max_texts"),
        ("/v1/search", {"index": "faq", "context": "a", "k": 21}, 422, "max_k"),
        ("/v1/indexes/faq/add", {"candidates": ["a"] * 51}, 413, "max_texts"),
        ("/v1/indexes/faq/add", {"candidates": [{"text": "b" * 2001}]}, 413, "max_text_characters"),
        ("/v1/indexes/faq/remove", {"ids": ["a"] * 51}, 413, "max_texts"),
    ],
)
def test_a_limit_names_itself(
    server: Server, path: str, request_body: dict[str, object], status: int, limit: str
) -> None:
    error = error_of(server.post(path, request_body))
    assert (error["code"], error["limit"]) == (status, limit)
    assert limit in str(error["message"])


@pytest.mark.parametrize(
    ("path", "request_body", "status", "kind"),
    [
        ("/v1/rank", {"context": "a", "candidates": ["b"], "model": "gpt-9"}, 404, "unknown_model"),
        ("/v1/rank", {"context": "a", "candidates": ["b"], "model": "../bi"}, 404, "unknown_model"),
        ("/v1/search", {"index": "nope", "context": "a"}, 404, "unknown_index"),
        ("/v1/search", {"index": "faq", "context": "a", "where": {"x": {"~": 1}}}, 422, "invalid_request"),
        ("/v1/search", {"index": "faq", "context": "a", "mode": "magic"}, 422, "invalid_request"),
        ("/v1/indexes/..%2Ffaq/add", {"candidates": ["a"]}, 404, "not_found"),
        ("/v1/indexes/nope/add", {"candidates": ["a"]}, 404, "unknown_index"),
        ("/v1/indexes/faq/add", {"candidates": [{"id": "x"}]}, 422, "invalid_request"),
        ("/v1/indexes/faq/update", {"candidates": ["no id"]}, 422, "invalid_request"),
        ("/v1/embeddings", {"input": "a", "model": "cross"}, 422, "invalid_request"),
        ("/v1/embeddings", {"input": "a", "dimensions": 17}, 422, "invalid_request"),
        ("/v1/embeddings", {"input": [9999]}, 422, "invalid_request"),
        ("/v1/embeddings", {"input": [-1]}, 422, "invalid_request"),
        ("/v1/embeddings", {"input": "a", "model": "poly", "input_type": "query"}, 422, "invalid_request"),
        ("/v1/score", {"contexts": ["a"], "candidates": ["b", "c"], "pairs": True}, 422, "invalid_request"),
    ],
)
def test_a_wrong_request_says_what_is_wrong(
    server: Server, path: str, request_body: dict[str, object], status: int, kind: str
) -> None:
    error = error_of(server.post(path, request_body))
    assert (error["code"], error["type"]) == (status, kind)


def test_a_form_is_refused(server: Server) -> None:
    answer = httpx.post(
        f"{server.url}/v1/rank", content=b'{"context": "a"}', headers={"content-type": "text/plain"}
    )
    assert error_of(answer)["code"] == 415


def test_unknown_paths_and_methods_have_the_same_shape(server: Server) -> None:
    assert error_of(httpx.get(f"{server.url}/v1/nope"))["code"] == 404
    assert error_of(httpx.put(f"{server.url}/v1/rank"))["code"] == 405
    assert error_of(httpx.get(f"{server.url}/playground/..%2Fapp.py"))["code"] == 404


def test_errors_never_quote_texts(server: Server) -> None:
    secret = "swordfish"
    for body in ({"context": 5, "candidates": [secret]}, {"context": [secret, 7], "candidates": ["b"]}):
        assert secret not in server.post("/v1/rank", body).text
    assert secret not in server.log.read_text()


def test_answers_have_security_headers(server: Server) -> None:
    answer = server.post("/v1/rank", {"context": "a", "candidates": ["b"]})
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert answer.headers["cache-control"] == "no-store"
    assert "server" not in answer.headers
    assert (
        "access-control-allow-origin"
        not in httpx.get(f"{server.url}/v1/models", headers={"origin": "https://example.org"}).headers
    )
    page = httpx.get(server.url)
    assert "script-src 'self'" in page.headers["content-security-policy"]


def test_a_request_id_is_kept(server: Server) -> None:
    answer = httpx.get(f"{server.url}/health/live", headers={"x-request-id": "mine-7"})
    assert answer.headers["x-request-id"] == "mine-7"
    answer = httpx.get(f"{server.url}/health/live", headers={"x-request-id": "no spaces!"})
    assert answer.headers["x-request-id"] != "no spaces!"


def test_concurrent_and_lone_requests_get_equal_scores(server: Server) -> None:
    from concurrent.futures import ThreadPoolExecutor

    requests = [
        {"context": context, "candidates": SENTENCES, "model": model, "k": 20}
        for context in SENTENCES
        for model in ("bi", "poly", "cross")
    ]

    def scores(request: dict[str, object]) -> dict[int, float]:
        return {
            each["position"]: each["score"] for each in server.post("/v1/rank", request).json()["ranking"]
        }

    alone = [scores(request) for request in requests]
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(scores, requests))
    for one, other in zip(alone, together, strict=True):
        assert one == pytest.approx(other, abs=1e-5)


def test_the_log_has_a_line_per_request_without_texts(server: Server) -> None:
    server.post("/v1/rank", {"context": "a", "candidates": ["b"]}, headers={"x-request-id": "logged-1"})
    lines = [line for line in server.log.read_text().splitlines() if "logged-1" in line]
    assert len(lines) == 1
    assert "POST /v1/rank 200" in lines[0]


def test_the_openapi_document_is_the_one_in_the_docs(server: Server) -> None:
    shown = httpx.get(f"{server.url}/openapi.json").json()
    kept = json.loads((Path(__file__).parents[2] / "docs" / "openapi.json").read_text())
    assert shown == kept, "run make openapi"
