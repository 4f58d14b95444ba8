"""Tasks: what is measured of a scorer, worked out by hand or equal to an outside library."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, v_measure_score

import tercet
from tercet.errors import DataError, InputError
from tercet.evaluate.baselines import Bm25, TfIdf, WordVectors
from tercet.evaluate.named import Named, check_different, open_scorer, parse_name
from tercet.evaluate.run import Evaluation, Row
from tercet.evaluate.tasks.config import TaskConfig, is_task, read_task
from tercet.evaluate.tasks.load import load_task
from tercet.models.scorer import Scorer
from tercet.records import Context, Floats, Scores

FolderOf = Callable[[str], Path]


class Table(Scorer):
    """A scorer that looks its scores up."""

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


def measured(config: TaskConfig, scorer: Scorer) -> dict[str, float]:
    result = load_task(config).run(scorer, "model")
    return {name: result.sample(name).value for name in result.measures}


def test_choices_worked_out_by_hand(tmp_path: Path) -> None:
    file = rows(
        tmp_path / "choices.jsonl",
        {"context": "a", "candidates": ["x", "y", "z"], "label": 1},
        {"context": "b", "candidates": ["x", "y"], "label": 0},
    )
    scorer = Table({("a", "x"): 3, ("a", "y"): 2, ("a", "z"): 1, ("b", "x"): 5, ("b", "y"): 5})
    found = measured(TaskConfig(name="t", kind="choices", files=(file,)), scorer)
    assert found == {"R@1/3": 0, "R@2/3": 1, "MRR": pytest.approx(1 / 2)}  # the tie is lost


def test_answers_are_ranked_among_all(tmp_path: Path) -> None:
    file = rows(tmp_path / "a.jsonl", {"context": "a", "answer": "x"}, {"context": "b", "answer": "y"})
    scorer = Table({("a", "x"): 2, ("a", "y"): 1, ("b", "x"): 2, ("b", "y"): 1})
    found = measured(TaskConfig(name="t", kind="choices", reader="answers", files=(file,)), scorer)
    assert found["R@1/2"] == 1 / 2


def test_the_worst_case_comes_first_with_what_was_chosen(tmp_path: Path) -> None:
    file = rows(tmp_path / "a.jsonl", {"context": "a", "answer": "x"}, {"context": "b", "answer": "y"})
    scorer = Table({("a", "x"): 2, ("a", "y"): 1, ("b", "x"): 2, ("b", "y"): 1})
    config = TaskConfig(name="t", kind="choices", reader="answers", files=(file,))
    worst = load_task(config).run(scorer, "model").worst(1)
    assert [(case.context, case.wanted, case.got) for case in worst] == [("b", "1.0000 y", "2.0000 x")]


def test_triplets_worked_out_by_hand(tmp_path: Path) -> None:
    file = rows(
        tmp_path / "t.jsonl",
        {"anchor": "a", "positive": "p", "negative": "n"},
        {"anchor": "b", "positive": "p", "negative": "n"},
    )
    scorer = Table({("a", "p"): 2, ("a", "n"): 1, ("b", "p"): 1, ("b", "n"): 1})
    assert measured(TaskConfig(name="t", kind="triplets", files=(file,)), scorer) == {"accuracy": 0.5}


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
    found = measured(retrieval, Table({pair: float(score) for pair, score in SCORES.items()}))
    gained = 1 / np.log2(3) + 2 / np.log2(4)
    best = 2 + 1 / np.log2(3)
    assert found["nDCG@10"] == pytest.approx((gained / best + 1) / 2)
    assert found["MAP@100"] == pytest.approx(((1 / 2 + 2 / 3) / 2 + 1) / 2)
    assert found["MRR@10"] == pytest.approx((1 / 2 + 1) / 2)
    assert found["R@100"] == 1


def test_rankings_are_read_again_in_another_order(retrieval: TaskConfig) -> None:
    task: Any = load_task(retrieval)
    first = task.rankings(Table({pair: float(score) for pair, score in SCORES.items()}))
    again = task.reranked(first, Table({pair: -float(score) for pair, score in SCORES.items()}))
    assert list(again["1"]) == list(reversed(first["1"]))


def test_fusion_of_a_ranking_with_itself_keeps_its_order(retrieval: TaskConfig) -> None:
    task: Any = load_task(retrieval)
    first = task.rankings(Table({pair: float(score) for pair, score in SCORES.items()}))
    fused = task.fused([first, first])
    assert [list(each) for each in fused.values()] == [list(each) for each in first.values()]


def test_a_cross_encoder_does_not_search_a_corpus(retrieval: TaskConfig, tiny_folder: FolderOf) -> None:
    cross = tercet.CrossEncoder.from_backbone(tiny_folder("bert"), device="cpu")
    with pytest.raises(InputError, match=r"6 pairs.*--rerank"):
        load_task(retrieval).run(cross, "cross")


PAIRS = [
    {"context": "a", "candidate": "x", "score": 3, "topic": "one"},
    {"context": "a", "candidate": "y", "score": 1, "topic": "one"},
    {"context": "b", "candidate": "x", "score": 1, "topic": "two"},
    {"context": "b", "candidate": "y", "score": 5, "topic": "two"},
]


def test_similarity_by_topic_is_the_mean_over_topics(tmp_path: Path) -> None:
    file = rows(tmp_path / "p.jsonl", *PAIRS)
    scorer = Table({("a", "x"): 2, ("a", "y"): 1, ("b", "x"): 9, ("b", "y"): 8})
    grouped = TaskConfig(name="t", kind="similarity", files=(file,), group="topic")
    assert measured(grouped, scorer)["spearman"] == pytest.approx((1 - 1) / 2)


def test_four_similarities_of_a_bi_encoder_equal_sentence_transformers(tiny_folder: FolderOf) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

    from tercet.data.sample import pairs
    from tercet.evaluate.tasks.pairs import Pairs, SimilarityTask
    from tercet.models.sources import find_folder

    sample = pairs()
    left, right = [str(pair.context) for pair in sample], [pair.candidate for pair in sample]
    gold = np.array([pair.score for pair in sample])
    ours = SimilarityTask("sample", Pairs(list(left), right, gold)).run(tercet.load("bi", device="cpu"), "bi")
    peer = SentenceTransformer(str(find_folder("bi")), device="cpu")
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
    scorer = Table({("a", "x"): 2, ("a", "y"): 1, ("b", "x"): 0, ("b", "y"): 8})
    config = TaskConfig(name="t", kind="pairs", files=(file,))
    assert measured(config, scorer) == {"average precision": 1, "F1": 1, "accuracy": 1}
    tercet.calibrate(scorer, [tercet.Pair("a", "x", 1), tercet.Pair("a", "y", 0)] * 4)
    assert "calibration error" in measured(config, scorer)


LABELLED = [
    *({"text": f"the cat sat on mat number {n}", "label": "cats"} for n in range(30)),
    *({"text": f"stocks fell by {n} percent", "label": "money"} for n in range(30)),
]


@pytest.mark.parametrize("model", ["bi", "wordllama"])
def test_a_probe_tells_cats_from_money(tmp_path: Path, model: str) -> None:
    file = rows(tmp_path / "l.jsonl", *LABELLED)
    scorer = open_scorer(model, device="cpu")
    assert measured(TaskConfig(name="t", kind="probe", files=(file,)), scorer) == {"accuracy": 1}
    split = TaskConfig(name="t", kind="probe", files=(file,), test=(file,))
    assert measured(split, scorer) == {"accuracy": 1}


def test_a_probe_of_pairs_sees_difference_and_product(tmp_path: Path) -> None:
    texts = [row["text"] for row in LABELLED]
    pairs = [
        {"one": texts[n], "two": texts[(n + shift) % 60], "label": int(shift == 0)}
        for n in range(0, 60, 2)
        for shift in (0, 30)
    ]
    file = rows(tmp_path / "p.jsonl", *pairs)
    config = TaskConfig(name="t", kind="probe", files=(file,), columns={"text": "one", "other": "two"})
    assert measured(config, open_scorer("bi", device="cpu")) == {"accuracy": 1}


def test_clusters_equal_scikit_learn(tmp_path: Path) -> None:
    file = rows(tmp_path / "l.jsonl", *LABELLED)
    result = load_task(TaskConfig(name="t", kind="clusters", files=(file,))).run(open_scorer("bi"), "bi")
    label, found = result.columns["label"], result.columns["found"]
    assert result.sample("V-measure").value == v_measure_score(label, found) == 1
    assert result.sample("adjusted Rand").value == adjusted_rand_score(label, found)


def test_a_scorer_without_vectors_is_told_so(tmp_path: Path, tiny_folder: FolderOf) -> None:
    file = rows(tmp_path / "l.jsonl", *LABELLED)
    cross = tercet.CrossEncoder.from_backbone(tiny_folder("bert"), device="cpu")
    for kind in ("probe", "clusters"):
        with pytest.raises(InputError, match="needs a vector"):
            load_task(TaskConfig(name="t", kind=kind, files=(file,))).run(cross, "cross")  # type: ignore[arg-type]


def test_rows_without_a_text_are_refused_or_left_out(tmp_path: Path) -> None:
    file = rows(tmp_path / "l.jsonl", *LABELLED, {"text": " ", "label": "cats"})
    with pytest.raises(DataError, match=r"line 61.*empty"):
        load_task(TaskConfig(name="t", kind="probe", files=(file,)))
    task = load_task(TaskConfig(name="t", kind="probe", files=(file,), skip_empty=True))
    assert len(task.texts()) == 60


def test_one_label_is_nothing_to_tell_apart(tmp_path: Path) -> None:
    file = rows(tmp_path / "l.jsonl", *LABELLED[:30])
    with pytest.raises(InputError, match="same label"):
        load_task(TaskConfig(name="t", kind="probe", files=(file,)))


def test_only_rows_that_were_asked_for_are_read(tmp_path: Path) -> None:
    file = rows(tmp_path / "p.jsonl", *PAIRS)
    config = TaskConfig(name="t", kind="similarity", files=(file,), where={"topic": "two"})
    assert load_task(config).run(Table({("b", "x"): 1, ("b", "y"): 2}), "m").cases == 2
    with pytest.raises(DataError, match="no rows"):
        load_task(TaskConfig(name="t", kind="similarity", files=(file,), where={"topic": "three"}))


def test_bm25_worked_out_by_hand() -> None:
    scorer = Bm25()
    scorer.fit(["red cat", "red red dog", "blue"])
    mean, length, count = 2.0, 3, 2  # of words in a text; of the second text; of red in it
    idf = np.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    weight = count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / mean))
    assert scorer.score("red", ["red red dog", "blue"]).tolist() == pytest.approx([idf * weight, 0])
    assert scorer.score_pairs(["red", "dog"], ["red red dog", "blue"])[0] == pytest.approx(idf * weight)


def test_baselines_find_the_text_itself() -> None:
    texts = ["how do I reset my password", "where is my parcel", "비밀번호를 잊었어요"]
    for kind in (Bm25, TfIdf, WordVectors):
        scorer = kind()
        scorer.fit(texts)
        scores = scorer.score_many(texts, texts)
        assert scores.argmax(axis=1).tolist() == [0, 1, 2]
        np.testing.assert_allclose(scorer.score_pairs(texts, texts), scores.diagonal(), rtol=1e-5)


def test_names_of_models() -> None:
    assert parse_name("bi") == Named("bi", ("bi",))
    assert parse_name("mine=runs/a/model,runs/b/model") == Named("mine", ("runs/a/model", "runs/b/model"))
    assert parse_name("runs/bi-ubuntu/model").label == "bi-ubuntu"
    for wrong in ("=a", "mine="):
        with pytest.raises(InputError, match="is no row"):
            parse_name(wrong)
    with pytest.raises(InputError, match="two models are called 'bi'"):
        check_different([parse_name("bi"), parse_name("bi")])


def test_names_of_tasks(tmp_path: Path) -> None:
    assert is_task("similarity:a.jsonl")
    assert is_task("tasks/stsb.toml")
    assert not is_task("bi")
    assert read_task("answers:a.jsonl").reader == "answers"
    with pytest.raises(InputError, match="is no task"):
        read_task("stsb")
    file = tmp_path / "t.toml"
    for text, said in (
        ('kind = "similarity"', "files is missing"),
        ('kind = "other"\nfiles = "a"', "kind must be one of"),
        ('kind = "pairs"\nfiles = "a"\ncolour = 1', "no setting 'colour'"),
        ('kind = "pairs"\nfiles = 3', "files must be"),
        ("kind = ", "cannot be read"),
    ):
        file.write_text(text)
        with pytest.raises(InputError, match=said):
            read_task(str(file))


def test_every_task_that_is_shipped_can_be_read() -> None:
    shipped = sorted((Path(__file__).parents[2] / "tasks").glob("*.toml"))
    assert len(shipped) > 20
    for file in shipped:
        assert read_task(str(file)).name == file.stem


def test_seeds_are_a_mean_and_a_deviation(tmp_path: Path) -> None:
    file = rows(tmp_path / "a.jsonl", {"context": "a", "answer": "x"}, {"context": "b", "answer": "y"})
    task = load_task(TaskConfig(name="t", kind="choices", reader="answers", files=(file,)))
    good = Table({("a", "x"): 2, ("a", "y"): 1, ("b", "x"): 0, ("b", "y"): 1})
    bad = Table({("a", "x"): 2, ("a", "y"): 1, ("b", "x"): 2, ("b", "y"): 1})
    row = Row("both", (task.run(good, "both"), task.run(bad, "both")))
    assert row.figures["R@1/2"].value == 0.75
    spread = row.spread("R@1/2")
    assert spread is not None
    assert spread.deviation == pytest.approx(np.std([1, 0.5], ddof=1))
    assert row.against(Row("bad", (task.run(bad, "bad"),))).value == 0.25


def test_rerank_is_for_retrieval_only(tmp_path: Path) -> None:
    file = rows(tmp_path / "a.jsonl", {"context": "a", "answer": "x"}, {"context": "b", "answer": "y"})
    task = load_task(TaskConfig(name="t", kind="choices", reader="answers", files=(file,)))
    with pytest.raises(InputError, match="for retrieval"):
        Evaluation([parse_name("bm25")], hybrid=True).table(task)


def test_scores_that_are_no_numbers_are_refused(tmp_path: Path, retrieval: TaskConfig) -> None:
    nothing = float("nan")
    pairs = rows(tmp_path / "p.jsonl", *PAIRS)
    triplets = rows(tmp_path / "t.jsonl", {"anchor": "a", "positive": "x", "negative": "y"})
    answers = rows(tmp_path / "a.jsonl", {"context": "a", "answer": "x"}, {"context": "b", "answer": "y"})
    scorer = Table({pair: nothing if pair == ("a", "x") else 1.0 for pair in SCORES})
    for config in (
        TaskConfig(name="t", kind="similarity", files=(pairs,)),
        TaskConfig(name="t", kind="triplets", files=(triplets,)),
        TaskConfig(name="t", kind="choices", reader="answers", files=(answers,)),
        retrieval,
    ):
        with pytest.raises(InputError, match="no finite numbers"):
            load_task(config).run(scorer, "model")


def test_equal_scores_at_the_end_of_a_ranking_leave_the_right_text_out(tmp_path: Path) -> None:
    texts = [{"_id": str(n), "text": f"text {n}"} for n in range(150)]
    parts = {
        "corpus": texts,
        "queries": [{"_id": "q", "text": "a"}],
        "qrels": [{"query-id": "q", "corpus-id": "0", "score": 1}],
    }
    files = tuple(rows(tmp_path / f"{name}.jsonl", *part) for name, part in parts.items())
    constant = Table({("a", each["text"]): 1.0 for each in texts})
    assert measured(TaskConfig(name="t", kind="retrieval", files=files), constant)["R@100"] == 0


def test_a_grade_below_zero_is_worth_nothing(retrieval: TaskConfig, tmp_path: Path) -> None:
    judged = [
        {"query-id": "1", "corpus-id": "x", "score": 1},
        {"query-id": "1", "corpus-id": "y", "score": -1},
    ]
    files = (*retrieval.files[:2], rows(tmp_path / "spam.jsonl", *judged))
    found = measured(
        TaskConfig(name="t", kind="retrieval", files=files),
        Table({pair: float(score) for pair, score in SCORES.items()}),
    )
    assert found["nDCG@10"] == pytest.approx(1 / np.log2(4))


def test_a_key_that_comes_twice_is_named(retrieval: TaskConfig, tmp_path: Path) -> None:
    twice = rows(tmp_path / "twice.jsonl", {"_id": "x", "text": "one"}, {"_id": "x", "text": "two"})
    with pytest.raises(DataError, match=r"line 2: the key 'x' is there a second time"):
        load_task(TaskConfig(name="t", kind="retrieval", files=(twice, *retrieval.files[1:])))


def test_one_candidate_is_no_choice(tmp_path: Path) -> None:
    file = rows(
        tmp_path / "c.jsonl",
        {"context": "a", "candidates": ["x", "y"], "label": 1},
        {"context": "b", "candidates": ["x"], "label": 0},
    )
    with pytest.raises(DataError, match=r"line 2.*no choice"):
        load_task(TaskConfig(name="t", kind="choices", files=(file,)))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"kind": "probe", "limit": 3}, "limit does nothing"),
        ({"kind": "clusters", "test": ("a",)}, "test does nothing"),
        ({"kind": "probe", "columns": {"colour": "x"}}, "a column of probe"),
        ({"kind": "similarity", "reader": "answers"}, "the reader of similarity"),
        ({"kind": "similarity", "seed": -1}, "seed"),
        ({"kind": "choices", "group": "topic"}, "group and folds"),
        ({"kind": "pairs", "group": "topic", "folds": 2}, "choose one"),
    ],
)
def test_settings_that_would_do_nothing_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        TaskConfig(name="t", files=("a",), **settings)


def test_a_label_of_few_texts_is_named(tmp_path: Path) -> None:
    file = rows(tmp_path / "l.jsonl", *LABELLED[:34])
    with pytest.raises(InputError, match=r"'money' has 4 texts; 10 are needed"):
        load_task(TaskConfig(name="t", kind="probe", files=(file,)))


def test_seeds_of_different_kinds_are_no_row(tmp_path: Path) -> None:
    task = load_task(TaskConfig(name="t", kind="similarity", files=(rows(tmp_path / "p.jsonl", *PAIRS),)))
    with pytest.raises(InputError, match="models of one kind"):
        Evaluation([parse_name("mixed=bm25,bi")], device="cpu").table(task)


def test_an_untrained_encoder_is_not_taken_for_the_model() -> None:
    assert parse_name("mean:/models/mini").label == "mean:mini"
    assert parse_name("runs/lr=1e-5/model").sources == ("runs/lr=1e-5/model",)


def test_words_are_fused_with_other_rankings_and_not_with_themselves(retrieval: TaskConfig) -> None:
    table = Evaluation([parse_name("words=bm25"), parse_name("tfidf")], hybrid=True).table(
        load_task(retrieval)
    )
    assert [row.label for row in table.rows] == ["words", "tfidf", "tfidf + bm25"]


def test_texts_without_words_are_told(tmp_path: Path) -> None:
    file = rows(tmp_path / "a.jsonl", {"context": "?", "answer": "!"}, {"context": "..", "answer": "-"})
    task = load_task(TaskConfig(name="t", kind="choices", reader="answers", files=(file,)))
    with pytest.raises(InputError, match="no words"):
        Evaluation([parse_name("bm25")]).table(task)


def test_a_right_text_that_was_not_found_counts_in_the_best_order(tmp_path: Path) -> None:
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
    falling = Table({(query, each["text"]): -float(n) for n, each in enumerate(texts) for query in "ab"})
    found = measured(TaskConfig(name="t", kind="retrieval", files=files), falling)
    assert found["nDCG@10"] == pytest.approx((1 / (1 + 1 / np.log2(3)) + 0) / 2)
    assert found["R@100"] == (1 / 2 + 1) / 2
    assert found["MRR@10"] == (1 + 0) / 2  # the eleventh is not among ten


def test_folds_are_of_equal_size(tmp_path: Path) -> None:
    file = rows(tmp_path / "p.jsonl", *PAIRS)
    task: Any = load_task(TaskConfig(name="t", kind="similarity", files=(file,), folds=2))
    assert np.bincount(task.pairs.groups).tolist() == [2, 2]


def test_candidates_that_a_row_does_not_have_are_behind_all_others(tmp_path: Path) -> None:
    file = rows(
        tmp_path / "c.jsonl",
        {"context": "a", "candidates": ["x", "y", "z"], "label": 0},
        {"context": "b", "candidates": ["x", "y"], "label": 0},
    )
    scorer = Table({(one, other): -float(ord(other)) for one in "ab" for other in "xyz"})
    assert measured(TaskConfig(name="t", kind="choices", files=(file,)), scorer)["R@1/3"] == 1
