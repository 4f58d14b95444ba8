"""Model folders and indexes to damage. Importing this takes seconds, because it imports torch."""

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.conftest import make_folder
from tests.fuzz.mutations import damaged, damaged_json

import tercet
from tercet.retrieve import Retriever
from tercet.scorers.bi import BiEncoder
from tercet.scorers.cross import CrossEncoder
from tercet.scorers.poly import PolyEncoder
from tercet.settings.models import PolyConfig

TEXTS = ["How do I open the door?", "Turn the key.", "문을 열어요", "The cat sat on the mat."]


def make_folders(folder: Path) -> dict[str, tuple[Path, Callable[[Path], object]]]:
    """Valid folders by name, each with a function that reads a damaged copy."""
    backbone = make_folder(folder / "backbone")
    bi = BiEncoder.from_backbone(backbone)
    saved = {
        "bi": bi.save(folder / "bi"),
        "poly": PolyEncoder.from_backbone(backbone, config=PolyConfig(codes=4)).save(folder / "poly"),
        "cross": CrossEncoder.from_backbone(backbone).save(folder / "cross"),
        "backbone": backbone,
    }
    retriever = Retriever(bi, path=folder / "index")
    retriever.add([{"id": str(n), "text": text, "n": n} for n, text in enumerate(TEXTS * 20)])
    del retriever
    models = {name: (path, load_and_score) for name, path in saved.items()}
    return {**models, "index": (folder / "index", lambda path: search(path, bi))}


def load_and_score(folder: Path) -> None:
    """Load a model and score two texts."""
    tercet.load(folder, device="cpu").rank(TEXTS[0], TEXTS[1:])


def search(folder: Path, scorer: BiEncoder) -> None:
    """Open an index, verify it, search it, and read its candidates."""
    retriever = Retriever(scorer, path=folder)
    retriever.search(TEXTS[0], k=3)
    retriever.search(TEXTS[0], k=3, where={"n": 1})
    list(retriever)


def damage_folder(folder: Path, copy: Path, random: Random) -> None:
    """Copy a folder and damage one or two of its files."""
    shutil.copytree(folder, copy)
    files = sorted(path for path in copy.rglob("*") if path.is_file())
    for file in random.sample(files, random.randint(1, 2)):
        content = file.read_bytes()
        if not content or random.random() < 0.05:
            file.unlink()
        else:
            file.write_bytes((damaged_json if file.suffix == ".json" else damaged)(content, random))
