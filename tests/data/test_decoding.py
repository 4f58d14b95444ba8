"""Files in other encodings than UTF-8."""

import gzip
from pathlib import Path

import pytest

from tercet.data.rows import count_rows, read_rows
from tercet.errors import DataError, InputError
from tercet.settings.files import FileConfig

KOREAN = "id,질문\n1,몇 시에 열어요?\n2,똠방각하 펲시콜라\n"
ROWS = [{"id": "1", "질문": "몇 시에 열어요?"}, {"id": "2", "질문": "똠방각하 펲시콜라"}]


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_a_given_encoding_is_used(tmp_path: Path) -> None:
    file = written(tmp_path / "a.csv", KOREAN.encode("cp949"))
    assert [row.columns for row in read_rows(file, FileConfig(encoding="cp949"))] == ROWS


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
def test_a_byte_order_mark_names_the_encoding(encoding: str, suffix: str, tmp_path: Path) -> None:
    content = KOREAN.replace("\n", "\r\n").encode(encoding)
    file = written(tmp_path / f"a.{suffix}", gzip.compress(content) if suffix.endswith("gz") else content)
    assert [row.columns for row in read_rows(file)] == ROWS


def test_lines_end_at_line_feeds_of_two_bytes(tmp_path: Path) -> None:
    text = "ਊ one\n\n둘 ఊ"  # U+0A0A and U+0C0A contain the byte of a line feed
    file = written(tmp_path / "a.txt", text.encode("utf-16"))
    assert [(row.location.rpartition(", ")[2], row.columns["text"]) for row in read_rows(file)] == [
        ("line 1", "ਊ one"),
        ("line 3", "둘 ఊ"),
    ]
    assert count_rows(file) is None  # bytes do not tell
    file = written(tmp_path / "b.txt", text.encode("utf-16-be"))
    assert len(list(read_rows(file, FileConfig(encoding="utf-16-be")))) == 2


@pytest.mark.timeout(60)
def test_a_wide_line_of_characters_with_the_byte_of_a_line_feed_takes_linear_time(tmp_path: Path) -> None:
    line = "ਊ" * 500_000  # U+0A0A: the bytes are split after each byte 0A
    file = written(tmp_path / "a.txt", f"{line}\nend".encode("utf-16"))
    assert [row.columns["text"] for row in read_rows(file)] == [line, "end"]


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        (
            "질문\n".encode("cp949"),
            "line 1: byte 1 is not UTF-8: the line is valid cp949: give --encoding cp949",
        ),
        ("ok\nÄrger im Café\n".encode("latin-1"), "line 2: byte 1 is not UTF-8: give the encoding .*latin-1"),
        ("Äpfel\n".encode("latin-1"), "line 1: byte 1 is not UTF-8: give the encoding"),  # also valid cp949
        (
            "Hello\n".encode("utf-16-le"),
            "the file looks like UTF-16 without a byte order mark: .*--encoding utf-16-le",
        ),
    ],
)
def test_undecodable_bytes_advise_on_the_encoding(content: bytes, advice: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"a\.txt[,:] {advice}"):
        list(read_rows(written(tmp_path / "a.txt", content)))


def test_bytes_that_are_not_in_the_given_encoding_are_named(tmp_path: Path) -> None:
    for encoding, content in (
        ("cp949", b"fine\n\xff\n"),
        ("utf-16-le", "fine\n".encode("utf-16-le") + b"\x00"),
    ):
        file = written(tmp_path / "a.txt", content)
        with pytest.raises(DataError, match=rf"(?i)a\.txt, line 2: byte 1 is not {encoding}"):
            list(read_rows(file, FileConfig(encoding=encoding)))


@pytest.mark.parametrize("name", ["cp94", "hex", "rot13", "a\0b"])
def test_an_unknown_encoding_lists_some(name: str) -> None:
    with pytest.raises(
        InputError, match="encoding must be one that Python knows, such as utf-8, utf-16, cp949"
    ):
        FileConfig(encoding=name)


@pytest.mark.parametrize("encoding", ["utf-16", "UTF16", "utf-32"])
def test_a_wide_encoding_without_an_order_of_bytes_needs_a_mark(encoding: str, tmp_path: Path) -> None:
    known = "utf-32" if "32" in encoding else "utf-16"
    file = written(tmp_path / "a.txt", "one line\n".encode(f"{known}-le"))
    advice = f"give {known}-le or {known}-be, or leave out --encoding"
    with pytest.raises(DataError, match=rf"a\.txt does not start with a byte order mark: {advice}"):
        list(read_rows(file, FileConfig(encoding=encoding)))
