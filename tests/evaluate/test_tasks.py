"""Results of tasks, worked out by hand or equal to another library."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, v_measure_score

import tercet
from tercet.errors import DataError, InputError, ModelError
from tercet.evaluate.baselines import BM25, TfIdf, WordVectors
from tercet.evaluate.model_names import ModelEntry, check_distinct_labels, open_scorer, parse_model_name
from tercet.evaluate.run import Evaluation, Row
from tercet.evaluate.tasks.load import BUILDERS, load_task
from tercet.records import Context, Floats, Pair, Scores
from tercet.scorers.scorer import Scorer
from tercet.settings.tasks import TASK_KINDS, TaskConfig, is_task, read_task

FolderOf = Callable[[str], Path]


class Lookup(Scorer):
    """A scorer with a table of scores."""

    def __init__(self, scores: dict[tuple[str, str], float]) -> None:
        self.table = scores

    def _scores(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Scores:
        none = np.zeros((1, 1), dtype=np.int64)
        values = [[self.table[str(one), other] for other in candidates] for one in contexts]
        return Scores(np.array(values, dtype=np.float32), none, none)

    def _pair_scores(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Floats:
        return np.array(
            [self.table[str(one), other] for one, other in zip(contexts, candidates, strict=True)],
            dtype=np.float32,
        )


def rows(path: Path, *given: dict[str, Any]) -> str:
    path.write_text("\n".join(map(json.dumps, given)))
    return str(path)


def metrics_of(config: TaskConfig, scorer: Scorer) -> dict[str, float]:
    result = load_task(config).run(scorer, "model")
    return {name: result.sample(name).value for name in result.metrics}


def test_choices_worked_out_by_hand(tmp_path: Path) -> None:
    file = rows(
        tmp_path / "choices.jsonl",
        {"context": "a", "candidates": ["x", "y", "z"], "label": 1},
        {"context": "b", "candidates": ["x", "y"], "label": 0},
    )
    scorer = Lookup({("a", "x"): 3, ("a", "y"): 2, ("a", "z"): 1, ("b", "x"): 5, ("b", "y"): 5})
    found = metrics_of(TaskConfig(name="t", kind="choices", files=(file,)), scorer)
    assert found == {"R@1/3": 0, "R@2/3": 1, "MRR": pytest.approx(1 / 2)}  # the tie counts against the model


def test_answers_are_ranked_among_all_answers(tmp_path: Path) -> None:
    file = rows(tmp_path / "a.jsonl", {"context": "a", "answer": "x"}, {"context": "b", "answer": "y"})
    scorer = Lookup({("a", "x"): 2, ("a", "y"): 1, ("b", "x"): 2, ("b", "y"): 1})
    found = metrics_of(TaskConfig(name="t", kind="choices", reader="answers", files=(file,)), scorer)
    assert found["R@1/2"] == 1 / 2


def test_the_worst_case_comes_first_with_the_chosen_candidate(tmp_path: Path) -> None:
    file = rows(tmp_path / "a.jsonl", {"context": "a", "answer": "x"}, {"context": "b", "answer": "y"})
    scorer = Lookup({("a", "x"): 2, ("a", "y"): 1, ("b", "x"): 2, ("b", "y"): 1})
    config = TaskConfig(name="t", kind="choices", reader="answers", files=(file,))
    worst = load_task(config).run(scorer, "model").worst(1)
    assert [(case.context, case.wanted, case.got) for case in worst] == [("b", "1.0000 y", "2.0000 x")]


def test_triplets_worked_out_by_hand(tmp_path: Path) -> None:
    file = rows(
        tmp_path / "t.jsonl",
        {"anchor": "a", "positive": "p", "negative": "n"},
        {"anchor": "b", "positive": "p", "negative": "n"},
    )
    scorer = Lookup({("a", "p"): 2, ("a", "n"): 1, ("b", "p"): 1, ("b", "n"): 1})
    assert metrics_of(TaskConfig(name="t", kind="triplets", files=(file,)), scorer) == {"accuracy": 0.5}


@pytest.fixture
def retrieval(tmp_path: Path) -> TaskConfig:
    texts = [{"_id": key, "title": "", "text": key} for key in "xyz"]
    queries = [{"_id": "1", "text": "a"}, {"_id": "2", "text": "b"}, {"_id": "3", "text": "unjudged"}]
    judged = [
        {"query-id": "1", "corpus-id": "x", "score": 2},
        {"query-id": "1", "corpus-id": "z", "score": 1},
        {"query-id": "2", "corpus-id": "y", "score": 1},
        {"query-id": "2", "corpus-id": "x", "score": 0},
    ]
    parts = {"corpus": texts, "queries": queries, "qrels": judged}
    files = tuple(rows(tmp_path / f"{name}.jsonl", *part) for name, part in parts.items())
    return TaskConfig(name="t", kind="retrieval", files=files)


SCORES = {("a", "x"): 1, ("a", "y"): 3, ("a", "z"): 2, ("b", "x"): 1, ("b", "y"): 2, ("b", "z"): 0}


def test_retrieval_worked_out_by_hand(retrieval: TaskConfig) -> None:
    found = metrics_of(retrieval, Lookup({pair: float(score) for pair, score in SCORES.items()}))
    dcg = 1 / np.log2(3) + 2 / np.log2(4)
    ideal = 2 + 1 / np.log2(3)
    assert found["nDCG@10"] == pytest.approx((dcg / ideal + 1) / 2)
    assert found["MAP@100"] == pytest.approx(((1 / 2 + 2 / 3) / 2 + 1) / 2)
    assert found["MRR@10"] == pytest.approx((1 / 2 + 1) / 2)
    assert found["R@100"] == 1


def test_reranking_uses_the_order_of_the_other_scorer(retrieval: TaskConfig) -> None:
    task: Any = load_task(retrieval)
    first = task.rankings(Lookup({pair: float(score) for pair, score in SCORES.items()}))
    reranked = task.reranked(first, Lookup({pair: -float(score) for pair, score in SCORES.items()}))
    assert list(reranked["1"]) == list(reversed(first["1"]))


def test_fusion_of_a_ranking_with_itself_keeps_its_order(retrieval: TaskConfig) -> None:
    task: Any = load_task(retrieval)
    first = task.rankings(Lookup({pair: float(score) for pair, score in SCORES.items()}))
    fused = task.fused([first, first])
    assert [list(each) for each in fused.values()] == [list(each) for each in first.values()]


def test_a_cross_encoder_is_rejected_for_retrieval(retrieval: TaskConfig, tiny_folder: FolderOf) -> None:
    cross = tercet.CrossEncoder.from_backbone(tiny_folder("bert"), device="cpu")
    with pytest.raises(InputError, match=r"6 pairs.*--rerank"):
        load_task(retrieval).run(cross, "cross")


PAIRS = [
    {"context": "a", "candidate": "x", "score": 3, "topic": "one"},
    {"context": "a", "candidate": "y", "score": 1, "topic": "one"},
    {"context": "b", "candidate": "x", "score": 1, "topic": "two"},
    {"context": "b", "candidate": "y", "score": 5, "topic": "two"},
]


def test_similarity_by_group_is_the_mean_over_groups(tmp_path: Path) -> None:
    file = rows(tmp_path / "p.jsonl", *PAIRS)
    scorer = Lookup({("a", "x"): 2, ("a", "y"): 1, ("b", "x"): 9, ("b", "y"): 8})
    grouped = TaskConfig(name="t", kind="similarity", files=(file,), group="topic")
    assert metrics_of(grouped, scorer)["spearman"] == pytest.approx((1 - 1) / 2)


def test_four_similarities_of_a_bi_encoder_equal_sentence_transformers(tiny_folder: FolderOf) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

    from tercet.data.sample import pairs
    from tercet.evaluate.tasks.pairs import Pairs, SimilarityTask
    from tercet.formats.sources import resolve_model

    sample = pairs()
    left, right = [str(pair.context) for pair in sample], [pair.candidate for pair in sample]
    gold = np.array([pair.score for pair in sample])
    ours = SimilarityTask("sample", Pairs(list(left), right, gold)).run(tercet.load("bi", device="cpu"), "bi")
    peer = SentenceTransformer(str(resolve_model("bi")), device="cpu")
    functions = ["cosine", "dot", "euclidean", "manhattan"]
    theirs = EmbeddingSimilarityEvaluator(
        left, right, gold.tolist(), similarity_fn_names=functions, name="s", main_similarity="cosine"
    )(peer)
    assert ours.sample("pearson").value == pytest.approx(theirs["s_pearson_cosine"], abs=1e-4)
    assert ours.sample("spearman").value == pytest.approx(theirs["s_spearman_cosine"], abs=1e-4)
    for name in functions[1:]:
        assert ours.sample(f"{name} ρ").value == pytest.approx(theirs[f"s_spearman_{name}"], abs=1e-4)


def test_pairs_need_both_labels(tmp_path: Path) -> None:
    file = rows(tmp_path / "p.jsonl", *PAIRS)
    with pytest.raises(InputError, match=r"0 .no match. and 1"):
        load_task(TaskConfig(name="t", kind="pairs", files=(file,)))


def test_a_calibrated_scorer_has_a_calibration_error(tmp_path: Path) -> None:
    matches = [{**row, "score": int(row["score"] > 2)} for row in PAIRS]
    file = rows(tmp_path / "p.jsonl", *matches)
    scorer = Lookup({("a", "x"): 2, ("a", "y"): 1, ("b", "x"): 0, ("b", "y"): 8})
    config = TaskConfig(name="t", kind="pairs", files=(file,))
    assert metrics_of(config, scorer) == {"average precision": 1, "F1": 1, "accuracy": 1}
    tercet.calibrate(scorer, [Pair("a", "x", 1), Pair("a", "y", 0)] * 4)
    assert "calibration error" in metrics_of(config, scorer)


LABELLED = [
    *({"text": f"the cat sat on mat number {n}", "label": "cats"} for n in range(30)),
    *({"text": f"stocks fell by {n} percent", "label": "money"} for n in range(30)),
]


@pytest.mark.parametrize("model", ["bi", "wordllama"])
def test_a_probe_separates_cats_from_money(tmp_path: Path, model: str) -> None:
    file = rows(tmp_path / "l.jsonl", *LABELLED)
    scorer = open_scorer(model, device="cpu")
    assert metrics_of(TaskConfig(name="t", kind="probe", files=(file,)), scorer) == {"accuracy": 1}
    split = TaskConfig(name="t", kind="probe", files=(file,), test=(file,))
    assert metrics_of(split, scorer) == {"accuracy": 1}


def test_a_probe_of_pairs_uses_difference_and_product(tmp_path: Path) -> None:
    texts = [row["text"] for row in LABELLED]
    pairs = [
        {"one": texts[n], "two": texts[(n + shift) % 60], "label": int(shift == 0)}
        for n in range(0, 60, 2)
        for shift in (0, 30)
    ]
    file = rows(tmp_path / "p.jsonl", *pairs)
    config = TaskConfig(name="t", kind="probe", files=(file,), columns={"text": "one", "other": "two"})
    assert metrics_of(config, open_scorer("bi", device="cpu")) == {"accuracy": 1}


def test_clusters_equal_scikit_learn(tmp_path: Path) -> None:
    file = rows(tmp_path / "l.jsonl", *LABELLED)
    result = load_task(TaskConfig(name="t", kind="clusters", files=(file,))).run(open_scorer("bi"), "bi")
    label, cluster = result.columns["label"], result.columns["cluster"]
    assert result.sample("V-measure").value == v_measure_score(label, cluster) == 1
    assert result.sample("adjusted Rand").value == adjusted_rand_score(label, cluster)


def test_a_scorer_without_vectors_is_rejected(tmp_path: Path, tiny_folder: FolderOf) -> None:
    file = rows(tmp_path / "l.jsonl", *LABELLED)
    cross = tercet.CrossEncoder.from_backbone(tiny_folder("bert"), device="cpu")
    for kind in ("probe", "clusters"):
        with pytest.raises(InputError, match="needs a vector"):
            load_task(TaskConfig(name="t", kind=kind, files=(file,))).run(cross, "cross")  # type: ignore[arg-type]


def test_rows_without_a_text_are_rejected_or_skipped(tmp_path: Path) -> None:
    file = rows(tmp_path / "l.jsonl", *LABELLED, {"text": " ", "label": "cats"})
    with pytest.raises(DataError, match=r"line 61.*empty"):
        load_task(TaskConfig(name="t", kind="probe", files=(file,)))
    task = load_task(TaskConfig(name="t", kind="probe", files=(file,), skip_empty=True))
    assert len(task.texts()) == 60


def test_a_single_label_is_rejected(tmp_path: Path) -> None:
    file = rows(tmp_path / "l.jsonl", *LABELLED[:30])
    with pytest.raises(InputError, match="same label"):
        load_task(TaskConfig(name="t", kind="probe", files=(file,)))


def test_only_rows_with_the_given_values_are_read(tmp_path: Path) -> None:
    file = rows(tmp_path / "p.jsonl", *PAIRS)
    config = TaskConfig(name="t", kind="similarity", files=(file,), where={"topic": "two"})
    assert load_task(config).run(Lookup({("b", "x"): 1, ("b", "y"): 2}), "m").cases == 2
    with pytest.raises(DataError, match="no row has topic = 'three'"):
        load_task(TaskConfig(name="t", kind="similarity", files=(file,), where={"topic": "three"}))


def test_bm25_worked_out_by_hand() -> None:
    scorer = BM25()
    scorer.fit(["red cat", "red red dog", "blue"])
    mean, length, count = 2.0, 3, 2  # mean words per text; words of the second text; count of red in it
    idf = np.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    weight = count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / mean))
    assert scorer.score("red", ["red red dog", "blue"]).tolist() == pytest.approx([idf * weight, 0])
    assert scorer.score_pairs(["red", "dog"], ["red red dog", "blue"])[0] == pytest.approx(idf * weight)


def test_baselines_find_the_text_itself() -> None:
    texts = ["how do I reset my password", "where is my parcel", "비밀번호를 잊었어요"]
    for kind in (BM25, TfIdf, WordVectors):
        scorer = kind()
        scorer.fit(texts)
        scores = scorer.score_many(texts, texts)
        assert scores.argmax(axis=1).tolist() == [0, 1, 2]
        np.testing.assert_allclose(scorer.score_pairs(texts, texts), scores.diagonal(), rtol=1e-5)


def test_model_names_are_parsed() -> None:
    assert parse_model_name("bi") == ModelEntry("bi", ("bi",))
    assert parse_model_name("mine=runs/a/model,runs/b/model") == ModelEntry(
        "mine", ("runs/a/model", "runs/b/model")
    )
    assert parse_model_name("runs/bi-ubuntu/model").label == "bi-ubuntu"
    for wrong in ("=a", "mine="):
        with pytest.raises(InputError, match="a model must be MODEL, or LABEL=MODEL"):
            parse_model_name(wrong)
    with pytest.raises(InputError, match="two models are called 'bi'"):
        check_distinct_labels([parse_model_name("bi"), parse_model_name("bi")])


def test_task_names_are_parsed(tmp_path: Path) -> None:
    assert is_task("similarity:a.jsonl")
    assert is_task("tasks/stsb.toml")
    assert not is_task("bi")
    assert read_task("answers:a.jsonl").reader == "answers"
    with pytest.raises(InputError, match="is not a task"):
        read_task("stsb")
    file = tmp_path / "t.toml"
    for text, message in (
        ('kind = "similarity"', "the setting files is missing"),
        ('kind = "other"\nfiles = "a"', "kind must be one of"),
        ('kind = "pairs"\nfiles = "a"\ncolour = 1', "unknown setting 'colour'"),
        ('kind = "pairs"\nfiles = 3', "files must be"),
        ("kind = ", "is not valid TOML"),
    ):
        file.write_text(text)
        with pytest.raises(InputError, match=message):
            read_task(str(file))


def test_every_kind_of_task_has_a_builder() -> None:
    assert set(BUILDERS) == set(TASK_KINDS)


def test_every_shipped_task_can_be_read() -> None:
    shipped = sorted((Path(__file__).parents[2] / "tasks").glob("*.toml"))
    assert len(shipped) > 20
    for file in shipped:
        assert read_task(str(file)).name == file.stem


def test_seeds_have_a_mean_and_a_standard_deviation(tmp_path: Path) -> None:
    file = rows(tmp_path / "a.jsonl", {"context": "a", "answer": "x"}, {"context": "b", "answer": "y"})
    task = load_task(TaskConfig(name="t", kind="choices", reader="answers", files=(file,)))
    good = Lookup({("a", "x"): 2, ("a", "y"): 1, ("b", "x"): 0, ("b", "y"): 1})
    bad = Lookup({("a", "x"): 2, ("a", "y"): 1, ("b", "x"): 2, ("b", "y"): 1})
    row = Row("both", (task.run(good, "both"), task.run(bad, "both")))
    assert row.estimates["R@1/2"].value == 0.75
    spread = row.seed_spread("R@1/2")
    assert spread is not None
    assert spread.deviation == pytest.approx(np.std([1, 0.5], ddof=1))
    assert row.against(Row("bad", (task.run(bad, "bad"),))).value == 0.25


def test_rerank_is_for_retrieval_only(tmp_path: Path) -> None:
    file = rows(tmp_path / "a.jsonl", {"context": "a", "answer": "x"}, {"context": "b", "answer": "y"})
    task = load_task(TaskConfig(name="t", kind="choices", reader="answers", files=(file,)))
    with pytest.raises(InputError, match="for retrieval"):
        Evaluation([parse_model_name("bm25")], hybrid=True).table(task)


def test_nan_scores_are_rejected(tmp_path: Path, retrieval: TaskConfig) -> None:
    pairs = rows(tmp_path / "p.jsonl", *PAIRS)
    triplets = rows(tmp_path / "t.jsonl", {"anchor": "a", "positive": "x", "negative": "y"})
    answers = rows(tmp_path / "a.jsonl", {"context": "a", "answer": "x"}, {"context": "b", "answer": "y"})
    scorer = Lookup({pair: float("nan") if pair == ("a", "x") else 1.0 for pair in SCORES})
    for config in (
        TaskConfig(name="t", kind="similarity", files=(pairs,)),
        TaskConfig(name="t", kind="triplets", files=(triplets,)),
        TaskConfig(name="t", kind="choices", reader="answers", files=(answers,)),
        retrieval,
    ):
        with pytest.raises(ModelError, match="the scores of a model must be finite"):
            load_task(config).run(scorer, "model")


def test_ties_at_the_end_of_a_ranking_exclude_the_relevant_document(tmp_path: Path) -> None:
    texts = [{"_id": str(n), "text": f"text {n}"} for n in range(150)]
    parts = {
        "corpus": texts,
        "queries": [{"_id": "q", "text": "a"}],
        "qrels": [{"query-id": "q", "corpus-id": "0", "score": 1}],
    }
    files = tuple(rows(tmp_path / f"{name}.jsonl", *part) for name, part in parts.items())
    constant = Lookup({("a", each["text"]): 1.0 for each in texts})
    assert metrics_of(TaskConfig(name="t", kind="retrieval", files=files), constant)["R@100"] == 0


def test_negative_relevance_counts_as_irrelevant(retrieval: TaskConfig, tmp_path: Path) -> None:
    judged = [
        {"query-id": "1", "corpus-id": "x", "score": 1},
        {"query-id": "1", "corpus-id": "y", "score": -1},
    ]
    files = (*retrieval.files[:2], rows(tmp_path / "spam.jsonl", *judged))
    found = metrics_of(
        TaskConfig(name="t", kind="retrieval", files=files),
        Lookup({pair: float(score) for pair, score in SCORES.items()}),
    )
    assert found["nDCG@10"] == pytest.approx(1 / np.log2(4))


def test_a_duplicate_id_is_named(retrieval: TaskConfig, tmp_path: Path) -> None:
    twice = rows(tmp_path / "twice.jsonl", {"_id": "x", "text": "one"}, {"_id": "x", "text": "two"})
    with pytest.raises(DataError, match=r"line 2: the id 'x' occurs twice"):
        load_task(TaskConfig(name="t", kind="retrieval", files=(twice, *retrieval.files[1:])))


def test_a_single_candidate_is_rejected(tmp_path: Path) -> None:
    file = rows(
        tmp_path / "c.jsonl",
        {"context": "a", "candidates": ["x", "y"], "label": 1},
        {"context": "b", "candidates": ["x"], "label": 0},
    )
    with pytest.raises(DataError, match=r"line 2: a choice needs at least 2 candidates, got 1"):
        load_task(TaskConfig(name="t", kind="choices", files=(file,)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "probe", "limit": 3}, "limit has no effect"),
        ({"kind": "clusters", "test": ("a",)}, "test has no effect"),
        ({"kind": "probe", "columns": {"colour": "x"}}, "a column of probe"),
        ({"kind": "similarity", "reader": "answers"}, "the reader of similarity"),
        ({"kind": "similarity", "seed": -1}, "seed"),
        ({"kind": "choices", "group": "topic"}, "group and folds"),
        ({"kind": "pairs", "group": "topic", "folds": 2}, "give either group or folds"),
    ],
)
def test_settings_without_effect_are_rejected(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TaskConfig(name="t", files=("a",), **settings)


def test_a_label_with_few_texts_is_named(tmp_path: Path) -> None:
    file = rows(tmp_path / "l.jsonl", *LABELLED[:34])
    with pytest.raises(InputError, match=r"each label needs at least 10 texts, and 'money' has 4"):
        load_task(TaskConfig(name="t", kind="probe", files=(file,)))


def test_seeds_of_different_kinds_are_rejected(tmp_path: Path) -> None:
    task = load_task(TaskConfig(name="t", kind="similarity", files=(rows(tmp_path / "p.jsonl", *PAIRS),)))
    with pytest.raises(InputError, match="models of one kind"):
        Evaluation([parse_model_name("mixed=bm25,bi")], device="cpu").table(task)


def test_an_untrained_encoder_has_a_label_of_its_own() -> None:
    assert parse_model_name("mean:/models/mini").label == "mean:mini"
    assert parse_model_name("runs/lr=1e-5/model").sources == ("runs/lr=1e-5/model",)


def test_bm25_is_fused_with_other_rankings_and_not_with_itself(retrieval: TaskConfig) -> None:
    table = Evaluation([parse_model_name("words=bm25"), parse_model_name("tfidf")], hybrid=True).table(
        load_task(retrieval)
    )
    assert [row.label for row in table.rows] == ["words", "tfidf", "tfidf + bm25"]


def test_texts_without_words_are_rejected_by_baselines(tmp_path: Path) -> None:
    file = rows(tmp_path / "a.jsonl", {"context": "?", "answer": "!"}, {"context": "..", "answer": "-"})
    task = load_task(TaskConfig(name="t", kind="choices", reader="answers", files=(file,)))
    with pytest.raises(InputError, match="have no words"):
        Evaluation([parse_model_name("bm25")]).table(task)


def test_a_relevant_document_that_is_not_retrieved_counts_in_the_ideal_order(tmp_path: Path) -> None:
    texts = [{"_id": str(n), "text": f"text {n}"} for n in range(150)]
    judged = [
        {"query-id": "q", "corpus-id": "0", "score": 1},
        {"query-id": "q", "corpus-id": "149", "score": 1},
        {"query-id": "r", "corpus-id": "10", "score": 1},
    ]
    parts = {
        "corpus": texts,
        "queries": [{"_id": "q", "text": "a"}, {"_id": "r", "text": "b"}],
        "qrels": judged,
    }
    files = tuple(rows(tmp_path / f"{name}.jsonl", *part) for name, part in parts.items())
    falling = Lookup({(query, each["text"]): -float(n) for n, each in enumerate(texts) for query in "ab"})
    found = metrics_of(TaskConfig(name="t", kind="retrieval", files=files), falling)
    assert found["nDCG@10"] == pytest.approx((1 / (1 + 1 / np.log2(3)) + 0) / 2)
    assert found["R@100"] == (1 / 2 + 1) / 2
    assert found["MRR@10"] == (1 + 0) / 2  # rank 11 is beyond 10


def test_folds_are_of_equal_size(tmp_path: Path) -> None:
    file = rows(tmp_path / "p.jsonl", *PAIRS)
    task: Any = load_task(TaskConfig(name="t", kind="similarity", files=(file,), folds=2))
    assert np.bincount(task.pairs.groups).tolist() == [2, 2]


def test_missing_candidates_rank_last(tmp_path: Path) -> None:
    file = rows(
        tmp_path / "c.jsonl",
        {"context": "a", "candidates": ["x", "y", "z"], "label": 0},
        {"context": "b", "candidates": ["x", "y"], "label": 0},
    )
    scorer = Lookup({(one, other): -float(ord(other)) for one in "ab" for other in "xyz"})
    assert metrics_of(TaskConfig(name="t", kind="choices", files=(file,)), scorer)["R@1/3"] == 1
