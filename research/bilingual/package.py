"""Write the packaged models from trained weights.

python research/bilingual/package.py --work WORK --out src/tercet/weights

``bi-ko`` is the backbone, as an extension of ``bi``. ``poly`` and ``cross`` are 4-bit deltas to ``bi-ko``.
The model cards in OUT stay. WORK must contain the tokenizer and the weights that ``assemble.py`` needs.
"""

import argparse
import shutil
import tempfile
from pathlib import Path

from assemble import load_cross, load_poly, write_folder
from cross_training import CrossSettings
from dual_training import DualSettings
from scorer_models import read_weights

import tercet
from tercet.formats.delta import save_delta
from tercet.formats.extended import save_extension
from tercet.formats.from_spec import make_scorer
from tercet.settings.models import ModelSpec

POLY = ModelSpec(
    kind="poly",
    source="bi-ko",
    settings={
        "codes": 64,
        "similarity": "cosine",
        "code_scale": DualSettings.code_scale,
        "candidate_scale": DualSettings.candidate_scale,
    },
    max_tokens=256,
)
CROSS = ModelSpec(
    kind="cross",
    source="bi-ko",
    settings={
        "head": "compare",
        "cross_text_weight": CrossSettings.cross_text_weight,
        "candidate_segment": True,
    },
    max_tokens=512,
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="folder of the trained weights")
    parser.add_argument("--out", type=Path, required=True, help="folder of the packaged models")
    options = parser.parse_args()
    work, out = options.work, options.out
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "backbone"
        write_folder(read_weights(work, "backbone"), work / "tokenizer", whole)
        replace(out / "bi-ko", lambda path: save_extension(tercet.BiEncoder.load(whole), "bi", path))
    for name, spec, fill in (("poly", POLY, load_poly), ("cross", CROSS, load_cross)):
        scorer = make_scorer(spec, device="cpu")
        fill(scorer, work)
        replace(out / name, lambda path, scorer=scorer, spec=spec: save_delta(scorer, spec, path))


def replace(path: Path, save) -> None:
    """Write a folder anew; its model card stays."""
    card = path / "README.md"
    text = card.read_text(encoding="utf-8") if card.is_file() else None
    shutil.rmtree(path, ignore_errors=True)
    save(path)
    if text is not None:
        card.write_text(text, encoding="utf-8")
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    print(f"{path.name}: {size / 1e6:.1f} MB, fingerprint {tercet.load(path, device='cpu').fingerprint}")


if __name__ == "__main__":
    main()
