"""Jobs in one process: shards equal what the scorer computes, and a restart keeps what is done."""

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conftest import SENTENCES

import tercet
from tercet.data.remote import list_url, open_url, shown
from tercet.errors import DataError, InputError, OutputError
from tercet.interchange.files import open_vector_files
from tercet.retrieve import Retriever
from tercet.scale.job import Rows, run_job
from tercet.scale.parts import parts_of
from tercet.scale.records import input_files, input_rows, pair_records, text_records
from tercet.scale.shards import FINISHED_SHARDS, MANIFEST
from tercet.scale.work import Record, Task, Work
from tercet.settings.bulk import EncodeConfig, WorkersConfig
from tercet.vector_files import import_vectors


class Doubled(Work):
    """Doubles a number; stops where it is told to."""

    calls: list[int] = []  # noqa: RUF012

    def __init__(self, config: Any, device: str) -> None:
        self.stop_at = config

    def facts(self) -> dict[str, Any]:
        return {"model": "doubled"}

    def run(self, records: Sequence[Record]) -> Any:
        if self.stop_at is not None and records[0]["n"] >= self.stop_at:
            raise KeyboardInterrupt
        self.calls.append(records[0]["n"])
        return pa.table({"n": [2 * record["n"] for record in records]})


def rows(count: int, *, changed: int | None = None, **description: Any) -> Rows:
    def read() -> Iterable[Record]:
        return ({"n": n, "changed": n == changed} for n in range(count))

    return Rows(read, {"command": "double", "input": "x", "options": {}, **description}, 10)


def numbers(folder: Path) -> list[int]:
    tables = [pq.read_table(file) for file in sorted(folder.glob("*.parquet"))]
    return [n for table in tables for n in table["n"].to_pylist()]


@pytest.fixture(autouse=True)
def no_calls() -> None:
    Doubled.calls.clear()


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """A job of five parts that was interrupted after three."""
    with pytest.raises(KeyboardInterrupt):
        run_job(Task(Doubled, 30), rows(45), tmp_path / "out")
    assert Doubled.calls == [0, 10, 20]
    Doubled.calls.clear()
    return tmp_path / "out"


def test_a_restarted_job_does_only_what_is_missing(stopped: Path) -> None:
    seen: list[int] = []
    run_job(Task(Doubled, None), rows(45), stopped, on_progress=seen.append)
    assert Doubled.calls == [30, 40]
    assert numbers(stopped) == [2 * n for n in range(45)]
    assert sum(seen) == 45
    manifest = json.loads((stopped / MANIFEST).read_text())
    assert manifest["finished"]
    assert manifest["rows"] == 45
    assert [shard["file"] for shard in manifest["shards"]] == [f"shard-{n:06}.parquet" for n in range(5)]


def test_a_damaged_or_missing_shard_is_made_again(stopped: Path) -> None:
    (stopped / "shard-000001.parquet").write_bytes(b"damaged")
    (stopped / "shard-000002.parquet").unlink()
    run_job(Task(Doubled, None), rows(45), stopped)
    assert Doubled.calls == [10, 20, 30, 40]
    assert numbers(stopped) == [2 * n for n in range(45)]


def test_a_shard_without_its_line_is_made_again(stopped: Path) -> None:
    lines = (stopped / FINISHED_SHARDS).read_bytes().splitlines(keepends=True)
    (stopped / FINISHED_SHARDS).write_bytes(b"".join(lines[:2]) + lines[2][:20])
    run_job(Task(Doubled, None), rows(45), stopped)
    assert Doubled.calls == [20, 30, 40]
    recorded = [json.loads(line)["number"] for line in (stopped / FINISHED_SHARDS).read_text().splitlines()]
    assert recorded == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (rows(45, changed=15), "rows 10 to 19 differ"),
        (rows(15), "rows 10 to 14 differ"),
        (rows(20), "more rows than the input"),
    ],
)
def test_another_input_is_refused(other: Rows, message: str, stopped: Path) -> None:
    before = {file.name: file.read_bytes() for file in stopped.glob("*.parquet")}
    with pytest.raises(InputError, match=message):
        run_job(Task(Doubled, None), other, stopped)
    assert {file.name: file.read_bytes() for file in stopped.glob("*.parquet")} == before


def test_rows_that_are_not_done_yet_may_change(stopped: Path) -> None:
    run_job(Task(Doubled, None), rows(50, changed=44), stopped)
    assert len(numbers(stopped)) == 50


def test_another_command_is_refused_and_so_is_a_finished_job(stopped: Path) -> None:
    with pytest.raises(OutputError, match='unfinished job, started with input "x"'):
        run_job(Task(Doubled, None), rows(45, input="y"), stopped)
    run_job(Task(Doubled, None), rows(45), stopped)
    with pytest.raises(OutputError, match="finished job"):
        run_job(Task(Doubled, None), rows(45), stopped)
    run_job(Task(Doubled, None), rows(45), stopped, reuse=True)
    assert Doubled.calls == [30, 40]


def test_another_model_is_refused(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Doubled, "facts", lambda self: {"model": "another"})
    with pytest.raises(InputError, match="begun with"):
        run_job(Task(Doubled, None), rows(45), stopped)


def test_folders_of_others_are_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(OutputError, match="not the folder of a bulk job"):
        run_job(Task(Doubled, None), rows(45), tmp_path)
    with pytest.raises(OutputError, match="is a file"):
        run_job(Task(Doubled, None), rows(45), tmp_path / "mine.txt")
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_two_jobs_do_not_share_a_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def read() -> Iterator[Record]:
        with pytest.raises(OutputError, match="another process is writing"):
            run_job(Task(Doubled, None), rows(5), out)
        yield {"n": 1}

    run_job(Task(Doubled, None), rows(5)._replace(read=read), out)


def test_a_job_without_rows_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no rows"):
        run_job(Task(Doubled, None), rows(0), tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_parts_are_the_same_each_time() -> None:
    records = [{"n": n} for n in range(25)]
    first, second = (list(parts_of(iter(records), 10)) for _ in range(2))
    assert first == second
    assert [(part.number, part.first_row, len(part.records)) for part in first] == [
        (0, 0, 10),
        (1, 10, 10),
        (2, 20, 5),
    ]
    assert len({part.digest for part in first}) == 3


def test_workers_are_checked() -> None:
    for wrong in ({"workers": -1}, {"workers": 0}, {"attempts": 0}, {"cpus_per_worker": 0}):
        with pytest.raises(InputError):
            WorkersConfig(**wrong)
    assert not WorkersConfig().needs_ray
    assert all(
        WorkersConfig(**each).needs_ray for each in ({"workers": 2}, {"address": "auto"}, {"gpu_workers": 1})
    )


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """A folder with one text in each of several formats."""
    folder = tmp_path / "in"
    (folder / "b").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    (folder / "a.jsonl").write_text('{"id": "a", "text": "a dog", "n": 1}\n')
    (folder / "b" / "b.csv.gz").write_bytes(gzip.compress(b"id,text,n\nb,old house,2\n"))
    pq.write_table(pa.table({"id": ["c"], "text": ["never"], "n": [3]}), folder / "b" / "c.parquet")
    for name in ("notes.md", ".hidden/d.jsonl", "manifest.json"):
        (folder / name).write_text("no data")
    return folder


@pytest.mark.parametrize("as_url", [False, True])
def test_a_folder_is_read_file_by_file(as_url: bool, inputs: Path) -> None:
    name = f"file://{inputs}" if as_url else str(inputs)
    (inputs / ".hidden" / "d.jsonl").unlink()
    read = text_records(
        input_rows(input_files(name)), column=None, id_column=None, contexts=False, skip_empty=False
    )
    assert [(each["id"], each["text"], int(each["metadata"]["n"])) for each in read] == [
        ("a", "a dog", 1),
        ("b", "old house", 2),
        ("c", "never", 3),
    ]


def test_urls_are_named_without_secrets(inputs: Path) -> None:
    assert shown("s3://me:secret@bucket/x?region=y") == "s3://bucket/x"
    with pytest.raises(DataError, match="must not contain a password") as caught:
        open_url("s3://me:secret@bucket/x.jsonl")
    assert "secret" not in str(caught.value)
    with pytest.raises(DataError, match="there is no file"):
        open_url(f"file://{inputs}/nothing.jsonl")
    assert list_url(f"file://{inputs}/a.jsonl") == [f"file://{inputs}/a.jsonl"]


def test_a_folder_without_data_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no data files"):
        input_files(str(tmp_path))


def test_rows_without_ids_get_their_number_and_problems_are_named(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"context": "a", "candidate": "b"}\n{"context": ["c"], "candidate": "d"}\n')
    options = {"context": "context", "candidate": "candidate", "id_column": None, "skip_empty": False}
    with pytest.raises(DataError, match="line 2: contexts must be of one kind"):
        list(pair_records(input_rows([str(file)]), **options))
    file.write_text('{"text": "a"}\n\n{"text": "b"}\n{"text": ""}\n')
    text = {"column": None, "id_column": None, "contexts": False}
    found = text_records(input_rows([str(file)]), **text, skip_empty=True)
    with pytest.warns(UserWarning, match="skipped"):
        assert [each["id"] for each in found] == ["0", "1"]
    with pytest.raises(DataError, match="line 4"):
        list(text_records(input_rows([str(file)]), **text, skip_empty=False))


def test_encoded_shards_are_the_vectors_and_become_an_index(
    tiny: tercet.BiEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tercet.scale.encode import Encode

    saved = tiny.save(tmp_path / "model")
    monkeypatch.setattr("tercet.scale.encode.load_on", lambda *_: tercet.load(saved, device="cpu"))
    records = [{"id": f"t{n}", "text": text, "metadata": {"n": n}} for n, text in enumerate(SENTENCES)]
    given = Rows(lambda: records, {"command": "encode"}, 3)
    run_job(Task(Encode, EncodeConfig(model=str(saved))), given, tmp_path / "shards")
    source = open_vector_files(tmp_path / "shards")
    vectors = np.concatenate([batch.vectors for batch in source.read()])
    np.testing.assert_allclose(vectors, tiny.encode(SENTENCES, normalize=True), atol=1e-6)
    with Retriever(tiny) as retriever:
        import_vectors(source, retriever)
        assert [hit.id for hit in retriever.search("a dog", 3)] == [
            f"t{ranked.position}" for ranked in tiny.rank("a dog", SENTENCES, 3)
        ]
        assert retriever.get("t3").metadata == {"n": 3}
