"""Vectors of an index as files: nothing changes on the way there and back, and damaged files are refused."""

import json
from collections.abc import Callable
from pathlib import Path

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conftest import SENTENCES

import tercet
from tercet.errors import DataError, InputError, OutputError, StaleIndexError
from tercet.index.protocol import CandidateStore
from tercet.interchange.batches import VectorBatch, after, regrouped
from tercet.interchange.files import KINDS, open_vector_files
from tercet.retrieve import Retriever
from tercet.settings.index import Storage
from tercet.vector_files import export_vectors, import_vectors

FolderOf = Callable[[str], Path]
ITEMS = [
    {"id": f"t{n}", "text": text, "metadata": {"n": n, "tags": ["a", "ü"], "deep": {"x": 0.5}}}
    for n, text in enumerate(SENTENCES)
]


@pytest.fixture
def retriever(tiny: tercet.BiEncoder) -> Retriever:
    made = Retriever(tiny)
    made.add(ITEMS)
    return made


def stored(store: CandidateStore) -> tuple[list[tuple[str, str, object]], np.ndarray]:
    with_vectors = store_batches(store)
    items = [item for batch in with_vectors for item in batch.items]
    return [(item.id, item.text, item.metadata) for item in items], np.concatenate(
        [batch.vectors for batch in with_vectors]
    )


def store_batches(store: CandidateStore) -> list[VectorBatch]:
    return [VectorBatch(*batch) for batch in store.batches(with_vectors=True)]


@pytest.mark.parametrize("suffix", KINDS)
@pytest.mark.parametrize("storage", ["float32", "bfloat16", "int8"])
def test_an_import_equals_the_index_to_the_last_bit(
    suffix: str, storage: Storage, tiny: tercet.BiEncoder, tmp_path: Path
) -> None:
    with Retriever(tiny, storage=storage) as one, Retriever(tiny, storage=storage) as two:
        one.add(ITEMS)
        one.remove(["t3"])
        one.compact()
        assert export_vectors(one.store, tmp_path / f"v{suffix}") == len(ITEMS) - 1
        import_vectors(open_vector_files(tmp_path / f"v{suffix}"), two)
        two.compact()
        (items, vectors), (new_items, new_vectors) = stored(one.store), stored(two.store)
        assert new_items == items
        np.testing.assert_array_equal(new_vectors, vectors)
        assert one.search(SENTENCES[0], 5) == two.search(SENTENCES[0], 5)


def test_other_programs_read_the_parquet_columns(retriever: Retriever, tmp_path: Path) -> None:
    export_vectors(retriever.store, tmp_path / "v.parquet")
    table = pq.read_table(tmp_path / "v.parquet")
    assert table.column_names == ["id", "text", "metadata", "vector"]
    assert table.schema.field("vector").type == pa.list_(pa.float32(), retriever.scorer.width)
    assert json.loads(table["metadata"][1].as_py()) == ITEMS[1]["metadata"]
    np.testing.assert_allclose(
        np.array(table["vector"].to_pylist()), retriever.scorer.encode(SENTENCES, normalize=True), atol=1e-6
    )


def test_other_programs_read_the_faiss_file(retriever: Retriever, tmp_path: Path) -> None:
    export_vectors(retriever.store, tmp_path / "v.faiss")
    index = faiss.read_index(str(tmp_path / "v.faiss"))
    query = retriever.scorer.encode([SENTENCES[2]], side="context", normalize=True)
    _, rows = index.search(query, 3)
    ids = [json.loads(line)["id"] for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    assert [ids[row] for row in rows[0]] == [hit.id for hit in retriever.search(SENTENCES[2], 3)]


def foreign(path: Path, vectors: np.ndarray, **columns: list[object]) -> Path:
    lists = pa.array(vectors.tolist(), pa.list_(pa.float64()))
    given = {"id": [*range(len(vectors))], "text": SENTENCES[: len(vectors)], **columns}
    pq.write_table(pa.table({**given, "vector": lists}), path)
    return path


def test_a_file_of_another_program_is_normalized_and_said_to_be_unchecked(
    tiny: tercet.BiEncoder, tmp_path: Path
) -> None:
    vectors = 3 * tiny.encode(SENTENCES)
    source = open_vector_files(foreign(tmp_path / "f.parquet", vectors, topic=["x"] * len(SENTENCES)))
    with Retriever(tiny) as retriever:
        with pytest.warns(UserWarning, match="cannot be checked"):
            import_vectors(source, retriever)
        assert retriever.search("a dog", 3)[0].score == pytest.approx(
            tiny.rank("a dog", SENTENCES, 1)[0].score, abs=1e-5
        )
        assert retriever.get("2").metadata == {"topic": "x"}


def test_vectors_of_another_model_are_refused(
    retriever: Retriever, tiny_folder: FolderOf, tmp_path: Path
) -> None:
    export_vectors(retriever.store, tmp_path / "v.parquet")
    other = tercet.BiEncoder.from_backbone(tiny_folder("electra"), device="cpu")
    with Retriever(other) as wrong, pytest.raises(StaleIndexError, match="made by the bi-encoder"):
        import_vectors(open_vector_files(tmp_path / "v.parquet"), wrong)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda v: v[:, :-1], "dimensions"),
        (lambda v: np.where(np.arange(len(v))[:, None] == 2, np.nan, v), "row 2.*'2'.*finite"),
        (lambda v: v * 1e39, "row 0.*finite"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*cannot be checked")
def test_vectors_of_a_wrong_width_or_size_are_refused(
    damage: object, message: str, tiny: tercet.BiEncoder, tmp_path: Path
) -> None:
    vectors = damage(tiny.encode(SENTENCES).astype(np.float64))  # type: ignore[operator]
    with Retriever(tiny) as retriever, pytest.raises(DataError, match=message):
        import_vectors(open_vector_files(foreign(tmp_path / "f.parquet", vectors)), retriever)
    assert not (tmp_path / "x").exists()


@pytest.mark.filterwarnings("ignore:.*cannot be checked")
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": ["a", None, "c"]}, "row 1: column 'id' is empty"),
        ({"id": ["a", "b", "a"]}, "'a' is repeated"),
        ({"text": ["x", "", "y"]}, "candidate 'a1'"),
        ({"metadata": ["{}", "[1]", "{}"]}, "row 1: column 'metadata' must be a JSON object"),
        ({"metadata": ["{}", "{", "{}"]}, "row 1: column 'metadata' is not valid JSON"),
    ],
)
def test_rows_without_ids_texts_or_metadata_are_named(
    columns: dict[str, list[object]], message: str, tiny: tercet.BiEncoder, tmp_path: Path
) -> None:
    columns = {"id": ["a0", "a1", "a2"], **columns}
    source = open_vector_files(foreign(tmp_path / "f.parquet", tiny.encode(SENTENCES[:3]), **columns))
    with Retriever(tiny) as retriever, pytest.raises((DataError, InputError), match=message):
        import_vectors(source, retriever)


def test_missing_columns_and_vectors_that_are_no_lists_are_named(
    tiny: tercet.BiEncoder, tmp_path: Path
) -> None:
    file = tmp_path / "f.parquet"
    for table, message in (
        ({"id": ["1"], "text": ["a"]}, "no column 'vector'.*--vector-column"),
        ({"id": ["1"], "text": ["a"], "vector": ["b"]}, "lists of numbers, got string"),
        ({"id": ["1"], "vector": [[1.0]]}, "column 'text' is missing"),
        ({"id": ["1", "2"], "text": ["a", "b"], "vector": [[1.0], [1.0, 2.0]]}, "one width, got 1 to 2"),
        ({"id": ["1"], "text": ["a"], "vector": [[1.0, None]]}, "number is missing"),
    ):
        pq.write_table(pa.table(table), file)
        with pytest.raises(DataError, match=message):
            list(open_vector_files(file).read())


def test_arrays_need_as_many_candidates_beside_them(retriever: Retriever, tmp_path: Path) -> None:
    export_vectors(retriever.store, tmp_path / "v.npy")
    lines = (tmp_path / "v.jsonl").read_text().splitlines(keepends=True)
    for changed, message in ((lines[:-1], "fewer than the vectors"), ([*lines, lines[0]], "more lines")):
        (tmp_path / "v.jsonl").write_text("".join(changed))
        with pytest.raises(DataError, match=message):
            list(open_vector_files(tmp_path / "v.npy").read())
    (tmp_path / "v.jsonl").unlink()
    with pytest.raises(DataError, match="write their ids and texts to"):
        list(open_vector_files(tmp_path / "v.npy").read())


def test_a_graph_is_no_file_of_vectors(retriever: Retriever, tmp_path: Path) -> None:
    faiss.write_index(faiss.IndexHNSWFlat(8, 4), str(tmp_path / "g.faiss"))
    with pytest.raises(DataError, match="IndexFlatIP"):
        open_vector_files(tmp_path / "g.faiss")


def test_an_interrupted_import_goes_on_without_doubles(
    retriever: Retriever, tiny: tercet.BiEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tercet.vector_files.ROWS_AT_ONCE", 3)
    export_vectors(retriever.store, tmp_path / "v.parquet")
    source, target = open_vector_files(tmp_path / "v.parquet"), Retriever(tiny)

    def stop(count: int) -> None:
        if len(target) == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_vectors(source, target, name="one", on_progress=stop)
    with pytest.raises(InputError, match="other candidates"):
        import_vectors(source, target, name="two")
    import_vectors(source, target, name="one")
    assert stored(target.store)[0] == stored(retriever.store)[0]


def test_nothing_is_overwritten_unless_asked(retriever: Retriever, tmp_path: Path) -> None:
    (tmp_path / "v.jsonl").write_text("mine")
    with pytest.raises(OutputError, match=r"v\.jsonl exists"):
        export_vectors(retriever.store, tmp_path / "v.npy")
    assert not (tmp_path / "v.npy").exists()
    export_vectors(retriever.store, tmp_path / "v.npy", overwrite=True)


def test_batches_are_regrouped_and_skipped_by_rows() -> None:
    batches = [
        VectorBatch([f"i{n}" for n in range(a, b)], np.arange(a, b)[:, None])
        for a, b in ((0, 2), (2, 7), (7, 8))  # type: ignore[list-item]
    ]
    for skipped in range(9):
        found = list(regrouped(after(batches, skipped), 3))
        assert [row for batch in found for row in batch.items] == [f"i{n}" for n in range(skipped, 8)]
        assert [int(v) for batch in found for v in batch.vectors[:, 0]] == list(range(skipped, 8))
        assert all(len(batch.items) == 3 for batch in found[:-1])
