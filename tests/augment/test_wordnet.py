"""Synonyms from a small folder in WordNet's format, and from the real one if it is installed."""

from pathlib import Path

import pytest

from tercet.augment.proposers import Synonyms
from tercet.augment.wordnet import PARTS_OF_SPEECH, WordNet
from tercet.errors import DataError

REAL = Path("/usr/share/wordnet")
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
    wordnet = WordNet(write_wordnet(tmp_path / "wn"))
    assert wordnet.synonyms("car") == ("auto", "motor car")
    assert wordnet.synonyms("Car", senses=2) == ("auto", "motor car", "railcar")
    assert wordnet.synonyms("motor car") == ("car", "auto")
    assert wordnet.synonyms("happy") == ("glad",)
    assert wordnet.synonyms("goa") == tuple(f"go{letter}" for letter in "bcdefghijkl")
    assert wordnet.synonyms("zebra") == ()


def test_a_folder_without_wordnet_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is not a WordNet folder, index\.noun, data\.noun"):
        WordNet(tmp_path)


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    folder = write_wordnet(tmp_path / "wn")
    (folder / "data.noun").write_text(LICENCE * 3 + (folder / "data.noun").read_text())
    with pytest.raises(DataError, match="do not belong together"):
        WordNet(folder).synonyms("car")


def test_an_invalid_index_line_is_named(tmp_path: Path) -> None:
    folder = write_wordnet(tmp_path / "wn")
    (folder / "index.verb").write_text("hello world what\n")
    with pytest.raises(DataError, match=r"index\.verb, line 1: not a line of a WordNet index"):
        WordNet(folder).synonyms("car")


def test_synonyms_replace_words_but_are_not_inserted(tmp_path: Path) -> None:
    proposer = Synonyms(write_wordnet(tmp_path / "wn"))
    assert proposer.replacements(["", "car", ""], 1) == ("auto", "motor car")
    assert proposer.insertions(["", "car", ""], 1) == ()


@pytest.mark.skipif(not REAL.is_dir(), reason="Debian's wordnet-base is not installed")
def test_the_installed_wordnet_has_synonyms() -> None:
    wordnet = WordNet(REAL)
    assert "auto" in wordnet.synonyms("car")
    assert "begin" in wordnet.synonyms("start", senses=3)
    assert "chase" not in wordnet.synonyms("dog")
