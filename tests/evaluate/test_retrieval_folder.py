"""Retrieval sets in a folder: which files are read, what is skipped, and what is an error."""

import gzip
import json
from pathlib import Path

import pytest

from tercet.data.problems import MAX_LISTED
from tercet.errors import DataError, InputError
from tercet.evaluate.model_names import parse_model_name
from tercet.evaluate.run import Evaluation
from tercet.evaluate.tasks.load import load_task
from tercet.evaluate.tasks.retrieval import RetrievalTask
from tercet.settings.tasks import TaskConfig, is_task, read_task

CORPUS = '{"_id": "a", "text": "red cats"}\n{"_id": "b", "title": "Dogs", "text": "They bark."}\n'
QUERIES = '{"_id": "1", "text": "red"}\n{"_id": "2", "text": "dogs"}\n'
QRELS = "query-id\tcorpus-id\tscore\n1\ta\t2\n2\tb\t1\n"
JUDGED = {"1": {"a": 2.0}, "2": {"b": 1.0}}


def write(folder: Path, **files: str) -> Path:
    """A folder with the three files; ``files`` has other contents by the name before the suffix."""
    contents = {"corpus.jsonl": CORPUS, "queries.jsonl": QUERIES, "qrels.tsv": QRELS}
    folder.mkdir()
    for name, content in contents.items():
        (folder / name).write_text(files.get(name.partition(".")[0], content))
    return folder


def load(folder: Path, **settings: object) -> RetrievalTask:
    config = TaskConfig(name="t", kind="retrieval", files=(str(folder),), **settings)  # type: ignore[arg-type]
    task = load_task(config)
    assert isinstance(task, RetrievalTask)
    return task


def test_a_folder_is_a_task(tmp_path: Path) -> None:
    folder = write(tmp_path / "set")
    assert is_task(str(folder))
    task = load_task(read_task(str(folder)))
    assert isinstance(task, RetrievalTask)
    assert task.data.documents == {"a": "red cats", "b": "Dogs\nThey bark."}
    assert task.data.queries == {"1": "red", "2": "dogs"}
    assert task.data.relevance == JUDGED
    assert task.size == "2 queries"


def test_a_folder_with_a_model_is_not_a_task(tmp_path: Path) -> None:
    folder = write(tmp_path / "set")
    (folder / "config.json").write_text("{}")
    assert not is_task(str(folder))


def test_a_folder_is_looked_up_in_the_data_folder(tmp_path: Path) -> None:
    write(tmp_path / "some-set")
    assert not is_task("some-set")
    assert is_task("some-set", root=tmp_path)
    config = read_task("some-set", root=tmp_path)
    assert load_task(config, root=tmp_path).texts()[0] == "red cats"


def test_a_toml_task_may_name_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "set")
    (tmp_path / "t.toml").write_text('kind = "retrieval"\nfiles = "set"\n')
    assert len(load_task(read_task(str(tmp_path / "t.toml")), root=tmp_path).texts()) == 2


@pytest.mark.parametrize(
    "qrels",
    [
        QRELS,
        "query_id\tdoc_id\trelevance\n1\ta\t2\n2\tb\t1\n",
        "1 0 a 2\n2 0 b 1\n",
        "1\t0\ta\t2\n\n2\t0\tb\t1\n",
        "1  Q0   a  2\r\n2  Q0   b  1\r\n",
        "1\ta\t2\n2\tb\t1\n",
        "QID\tDocID\tGrade\n1\ta\t2\n2\tb\t1\n",
        "qid\tdocid\tLabel\n1\ta\t2\n2\tb\t1\n",
    ],
)
def test_judgements_with_and_without_a_header_are_equal(qrels: str, tmp_path: Path) -> None:
    assert load(write(tmp_path / "set", qrels=qrels)).data.relevance == JUDGED


def test_files_may_have_other_formats(tmp_path: Path) -> None:
    (tmp_path / "corpus.tsv.gz").write_bytes(gzip.compress(b"id\ttext\na\tred cats\nb\tDogs\n"))
    (tmp_path / "queries.csv").write_text("id,text\n1,red\n2,dogs\n")
    (tmp_path / "qrels.txt").write_text("1 0 a 2\n2 0 b 1\n")
    (tmp_path / "README.md").write_text("ignored")
    data = load(tmp_path).data
    assert data.documents == {"a": "red cats", "b": "Dogs"}
    assert data.relevance == JUDGED


def test_a_judgement_without_relevance_is_relevant_and_counted(tmp_path: Path) -> None:
    task = load(write(tmp_path / "set", qrels="query-id\tcorpus-id\n1\ta\n2\tb\n"))
    assert task.data.relevance == {"1": {"a": 1.0}, "2": {"b": 1.0}}
    assert task.notes == ("judgements without a relevance, counted as relevant: 2",)


@pytest.mark.parametrize(
    "qrels",
    [
        "1,a,2\n2,b,1\n",
        '1,0,"a",2\n2,0,"b",1\n',
        "1;a;2\n2;b;1\n",
        "query-id,corpus-id,score\n1,a,2\n2,b,1\n",
        "Query_ID;Doc_ID;Relevance\n1;a;2\n2;b;1\n",
    ],
)
def test_judgements_may_be_csv_with_and_without_a_header(qrels: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "set")
    (folder / "qrels.tsv").unlink()
    (folder / "qrels.csv").write_text(qrels)
    assert load(folder).data.relevance == JUDGED


def test_ids_between_tabs_may_contain_spaces(tmp_path: Path) -> None:
    corpus = '{"_id": "doc a", "text": "red cats"}\n'
    queries = '{"_id": "query 1", "text": "red"}\n'
    for number, qrels in enumerate(("query 1\t0\tdoc a\t2\n", "query 1\tdoc a\t2\n")):
        folder = write(tmp_path / str(number), corpus=corpus, queries=queries, qrels=qrels)
        assert load(folder).data.relevance == {"query 1": {"doc a": 2.0}}


def test_a_third_column_that_is_not_a_relevance_is_an_error(tmp_path: Path) -> None:
    folder = write(tmp_path / "set", qrels="query-id\tcorpus-id\tgain\n1\ta\t2\n2\tb\t0\n")
    message = (
        "line 2: column 'score' is missing; the columns are 'query-id', 'corpus-id', 'gain': rename one, or "
        "use --column relevance=NAME"
    )
    with pytest.raises(DataError, match=message):
        load(folder)
    assert load(folder, columns={"relevance": "gain"}).data.relevance == {"1": {"a": 2.0}}


@pytest.mark.parametrize(
    ("columns", "count"),
    [({"relevance": "gain"}, 1), ({"title": "headline"}, 1), ({"text": "body"}, 2), ({"id": "docno"}, 2)],
)
def test_a_column_that_the_user_names_must_exist(columns: dict[str, str], count: int, tmp_path: Path) -> None:
    ((role, name),) = columns.items()
    folder = write(tmp_path / "set", qrels="query-id\tcorpus-id\n1\ta\n2\tb\n")
    with pytest.raises(DataError) as caught:
        load(folder, columns=columns)
    assert str(caught.value).count(f"column {name!r} is missing; the columns are ") == count
    assert str(caught.value).count(f"use --column {role}=NAME (columns in TOML)") == count


def test_ids_may_have_the_given_name_in_one_file_and_the_default_in_the_other(tmp_path: Path) -> None:
    corpus = CORPUS.replace("_id", "docno")
    assert load(write(tmp_path / "set", corpus=corpus), columns={"id": "docno"}).data.relevance == JUDGED


def test_a_named_title_may_be_missing_in_some_rows(tmp_path: Path) -> None:
    folder = write(tmp_path / "set", corpus=CORPUS.replace("title", "headline"))  # only the second row has it
    assert load(folder, columns={"title": "headline"}).data.documents["b"] == "Dogs\nThey bark."


def test_default_columns_are_found_in_upper_and_lower_case(tmp_path: Path) -> None:
    corpus = '{"ID": "a", "Text": "red cats"}\n{"ID": "b", "Title": "Dogs", "Text": "They bark."}\n'
    data = load(write(tmp_path / "set", corpus=corpus)).data
    assert data.documents == {"a": "red cats", "b": "Dogs\nThey bark."}


def test_one_judgement_without_a_relevance_among_others_is_an_error(tmp_path: Path) -> None:
    folder = write(tmp_path / "set")
    (folder / "qrels.tsv").unlink()
    rows = [{"qid": "1", "docid": "a"}, {"qid": "2", "docid": "b", "rel": 0}, {"qid": "2", "docid": "a"}]
    (folder / "qrels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=r"lines 1 and 3: the judgement has no 'score', and others have one"):
        load(folder)


def test_a_judgement_with_too_few_columns_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"qrels\.tsv, line 2: a judgement must have 4 columns .* got 3"):
        load(write(tmp_path / "set", qrels="1 0 a 2\n2 b 1\n"))


def test_a_first_judgement_with_a_wrong_relevance_is_not_a_header(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"qrels\.tsv, line 1: column 'score' must be a number, got 'high'"):
        load(write(tmp_path / "set", qrels="1 0 a high\n2 0 b 1\n"))


def split_folder(folder: Path, *names: str) -> Path:
    write(folder)
    (folder / "qrels.tsv").unlink()
    (folder / "qrels").mkdir()
    for number, name in enumerate(names):
        (folder / "qrels" / f"{name}.tsv").write_text(f"1 0 a {number + 1}\n")
    return folder


def test_the_split_is_test_the_only_one_or_the_chosen_one(tmp_path: Path) -> None:
    both = split_folder(tmp_path / "both", "dev", "test")
    assert load(both).data.relevance == {"1": {"a": 2.0}}
    assert load(both).notes[0] == "judgements: qrels/test.tsv (other splits: dev)"
    assert load(both, split="dev").data.relevance == {"1": {"a": 1.0}}
    only = split_folder(tmp_path / "only", "dev")
    assert load(only).notes[0] == "judgements: qrels/dev.tsv (the only split)"


def test_an_unknown_split_lists_the_existing_ones(tmp_path: Path) -> None:
    folder = split_folder(tmp_path / "set", "dev", "train")
    with pytest.raises(DataError, match="no split 'other': choose one of dev, train"):
        load(folder, split="other")
    with pytest.raises(DataError, match="choose one with --split: dev, train"):
        load(folder)
    with pytest.raises(DataError, match="no splits: remove --split"):
        load(write(tmp_path / "plain"), split="dev")


def test_a_split_needs_a_folder() -> None:
    with pytest.raises(InputError, match="split has no effect on similarity"):
        TaskConfig(name="t", kind="similarity", files=("a",), split="dev")


def test_all_problems_are_listed_at_once(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "set",
        corpus=CORPUS + '{"_id": "a", "text": "again"}\n{"_id": "c", "text": " "}\n{"_id": "d", "text": 5}\n',
        queries=QUERIES
        + '{"_id": "2", "text": "again"}\n{"_id": "3", "text": ""}\n{"_id": "", "text": "x"}\n',
        qrels="1 0 a 2\n1 0 b high\n9 0 a 1\n9 0 b 1\n1 0 z 1\n1 0 c 1\n3 0 a 1\n1 0 a 1\n",
    )
    with pytest.raises(DataError) as caught:
        load(folder)
    first, *listed = str(caught.value).splitlines()
    assert first == "10 problems in the data: correct these rows"
    assert [line.strip().removeprefix(f"{folder}/") for line in listed] == [
        "corpus.jsonl, line 3: the id 'a' occurs twice: ids must be unique",
        "corpus.jsonl, line 5: column 'text' must be a string, got int 5",
        "queries.jsonl, line 3: the id '2' occurs twice: ids must be unique",
        "queries.jsonl, line 5: column '_id' is empty: fill it or remove the row",
        "qrels.tsv, line 2: column 'score' must be a number, got 'high'",
        "qrels.tsv, line 3: there is no query with the id '9'",
        "qrels.tsv, line 5: there is no document with the id 'z'",
        f"qrels.tsv, line 6: the document 'c' is judged and has no text ({folder}/corpus.jsonl, line 4)",
        f"qrels.tsv, line 7: the query '3' is judged and has no text ({folder}/queries.jsonl, line 4)",
        "qrels.tsv, line 8: the document 'a' has another relevance for the query '1' in an earlier row: "
        "keep one",
    ]


def test_many_problems_are_counted(tmp_path: Path) -> None:
    qrels = "".join(f"1 0 x{number} 1\n" for number in range(MAX_LISTED + 7))
    with pytest.raises(DataError, match=f"{MAX_LISTED + 7} problems") as caught:
        load(write(tmp_path / "set", qrels=qrels))
    assert str(caught.value).splitlines()[-1] == "  and 7 more"
    assert str(caught.value).count("there is no document") == MAX_LISTED


def test_missing_columns_of_all_files_are_listed_at_once(tmp_path: Path) -> None:
    row = '{"key": "a", "text": "x"}\n'
    with pytest.raises(DataError) as caught:
        load(write(tmp_path / "set", corpus=row, queries=row, qrels="query-id\tdocument\n1\ta\n"))
    assert str(caught.value).count("column '_id' is missing; the columns are 'key', 'text'") == 2
    missing = "column 'corpus-id' is missing; the columns are 'query-id', 'document'"
    assert f"{missing}: rename one, or use --column document_id=NAME" in str(caught.value)


def test_rows_that_change_no_result_are_skipped_and_counted(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "set",
        corpus=CORPUS + '{"_id": "c", "text": ""}\n{"_id": "d", "title": "only a title", "text": ""}\n',
        queries=QUERIES + "".join(f'{{"_id": "{n}", "text": "more"}}\n' for n in "3456"),
        qrels=QRELS + "3\ta\t0\n1\tz\t0\n1\ta\t2\n2\tc\t-1\n",
    )
    task = load(folder)
    assert task.data.relevance == JUDGED
    assert list(task.data.documents) == ["a", "b", "d"]
    assert task.data.skipped == {
        "documents without a text": 1,
        "judgements of missing documents as irrelevant": 2,
        "repeated judgements": 1,
        "queries without a relevant document": 1,
        "queries without a judgement": 3,
    }
    assert "skipped queries without a judgement: 3" in task.notes


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("corpus", "", "corpus.jsonl has no rows"),
        ("queries", "\n", "queries.jsonl has no rows"),
        ("qrels", "", "qrels.tsv has no rows"),
        ("qrels", "query-id\tcorpus-id\tscore\n", "qrels.tsv has no rows"),
        ("qrels", "1 0 a 0\n", "qrels.tsv: no query has a relevant document"),
    ],
)
def test_a_set_without_cases_is_rejected(name: str, content: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        load(write(tmp_path / "set", **{name: content}))


def test_a_missing_file_is_named_with_the_files_that_are_there(tmp_path: Path) -> None:
    folder = write(tmp_path / "set")
    (folder / "qrels.tsv").unlink()
    with pytest.raises(
        DataError, match=r"no qrels: .*qrels/test\.tsv.*contains corpus\.jsonl, queries\.jsonl"
    ):
        load(folder)


def test_two_files_of_a_kind_are_rejected(tmp_path: Path) -> None:
    folder = write(tmp_path / "set")
    (folder / "corpus.csv").write_text("_id,text\na,b\n")
    with pytest.raises(DataError, match=r"has both corpus\.csv and corpus\.jsonl: remove all but one"):
        load(folder)


def test_a_folder_that_is_neither_model_nor_set_is_explained(tmp_path: Path) -> None:
    for content in ("the folder is empty", r"the folder contains notes\.md"):
        with pytest.raises(InputError, match=rf"neither .* config\.json, .* corpus\.jsonl, .*{content}"):
            read_task(str(tmp_path))
        (tmp_path / "notes.md").write_text("x")


def test_a_limit_samples_queries_and_keeps_the_corpus() -> None:
    config = read_task("sample:abstracts.en")
    samples = [load_task(TaskConfig(**vars(config) | {"limit": 5, "seed": seed})) for seed in (0, 0, 1)]
    first, again, other = (task.data for task in samples if isinstance(task, RetrievalTask))
    assert len(first.documents) == 40
    assert len(first.queries) == len(first.relevance) == 5
    assert first == again
    assert set(first.queries) != set(other.queries)
    assert set(first.queries) != {"q01", "q02", "q03", "q04", "q05"}
    table = Evaluation([parse_model_name("bm25")]).table(samples[0])
    assert (table.size, table.sampled_from, table.rows[0].first.cases) == ("5 of 18 queries", 18, 5)


def test_a_limit_above_the_number_of_queries_uses_all() -> None:
    config = read_task("sample:abstracts.en")
    task = load_task(TaskConfig(**vars(config) | {"limit": 500}))
    assert isinstance(task, RetrievalTask)
    assert task.size == "18 queries"


def test_only_the_first_documents_are_reranked() -> None:
    task = load_task(read_task("sample:abstracts.en"))
    assert isinstance(task, RetrievalTask)
    evaluation = Evaluation([parse_model_name("bm25")], reranker="tfidf", rerank_depth=3)
    plain, reranked = (row.first.rankings for row in evaluation.table(task).rows)
    tfidf = Evaluation([parse_model_name("tfidf")]).table(task).rows[0].first.rankings
    for query, before in plain.items():
        after = list(reranked[query])
        assert after[:3] == sorted(list(before)[:3], key=lambda name: -tfidf[query][name])
        assert after[3:] == list(before)[3:]
        scores = list(reranked[query].values())
        assert scores == sorted(scores, reverse=True)


def test_reranking_deeper_than_100_keeps_the_metrics_at_100(tmp_path: Path) -> None:
    corpus = "".join(f'{{"_id": "d{n}", "text": "{"red " * (n + 1)}"}}\n' for n in range(150))
    folder = write(tmp_path / "set", corpus=corpus, qrels="1 0 d0 1\n")  # the last one by BM25
    plain = Evaluation([parse_model_name("bm25")], reranker="tfidf", rerank_depth=150).table(load(folder))
    assert [len(row.first.rankings["1"]) for row in plain.rows] == [150, 150]
    assert plain.rows[0].estimates["R@100"].value == 0
    assert plain.rows[0].estimates["MAP@100"].value == 0


@pytest.mark.parametrize("depth", [10**18, 10**26])
def test_a_rerank_depth_beyond_the_corpus_means_all_documents(depth: int) -> None:
    task = load_task(read_task("sample:abstracts.en"))
    models = [parse_model_name("bm25")]
    table = Evaluation(models, reranker="tfidf", rerank_depth=depth).table(task)
    whole = Evaluation(models, reranker="tfidf", rerank_depth=len(task.data.documents)).table(task)
    assert [row.first.rankings for row in table.rows] == [row.first.rankings for row in whole.rows]
    assert table.notes == whole.notes


def test_a_rerank_depth_below_one_is_rejected() -> None:
    with pytest.raises(InputError, match="rerank_depth must be at least 1, got 0"):
        Evaluation([parse_model_name("bm25")], reranker="tfidf", rerank_depth=0)
