"""How evenly poly-encoders attend, on the first cases of the study's four sets: 1 is flat.

python benchmarks/attention_entropies.py --data FOLDER              # the packaged one, and untrained ones
python benchmarks/attention_entropies.py --data FOLDER runs/x/model # and others
"""

import argparse
import os
from itertools import islice
from pathlib import Path

import tercet
from tercet.config import PolyConfig
from tercet.data.readers import DataConfig, read_lessons

CASES = 64
SETS = ("ubuntu_irc/dev_10", "convai2/valid", "self_dialogue/valid", "dailydialog/valid")
SCALES = (1, 10, 30, 100)


def untrained(scale: float) -> tercet.PolyEncoder:
    """What the study's recipes begin with, but for the scale of candidates, which is 10 there."""
    config = PolyConfig(codes=64, similarity="cosine", candidate_scale=scale)
    return tercet.PolyEncoder.from_backbone("bi", config=config, max_tokens=256)


def main() -> None:
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    parser.add_argument("models", nargs="*", help="folders of poly-encoders")
    parser.add_argument("--data", default=os.environ.get("TERCET_DATA", "."), type=Path)
    given = parser.parse_args()
    scorers = {f"untrained, candidate_scale {scale}": untrained(scale) for scale in SCALES}
    scorers |= {name: tercet.load(name) for name in ("poly", *given.models)}
    for name in SETS:
        config = DataConfig(files=(f"{name}.jsonl.gz",), reader="choices")
        cases = list(islice(read_lessons(config, root=given.data), CASES))
        contexts, answers = [each.context for each in cases], [each.candidates[0] for each in cases]
        for title, scorer in scorers.items():
            found = scorer.attention_entropies(contexts, answers)
            print(f"{name}, {title}:", ", ".join(f"{key} {value:.2f}" for key, value in found.items()))


if __name__ == "__main__":
    main()
