"""Print how evenly poly-encoders attend, on the first cases of the study's four sets. 1 is uniform attention.

python research/attention_entropies.py --data FOLDER              # the packaged model, and untrained ones
python research/attention_entropies.py --data FOLDER runs/x/model # and others
"""

import argparse
import os
from itertools import islice
from pathlib import Path

import tercet
from tercet.data.readers import iter_examples
from tercet.settings.data import DataConfig

CASES = 64
SETS = ("ubuntu_irc/dev_10", "convai2/valid", "self_dialogue/valid", "dailydialog/valid")
SCALES = (1, 10, 30, 100)


def untrained(scale: float) -> tercet.PolyEncoder:
    """The model that the study's recipes start from, with another candidate_scale (10 in the recipes)."""
    config = tercet.PolyConfig(codes=64, similarity="cosine", candidate_scale=scale)
    return tercet.PolyEncoder.from_backbone("bi", config=config, max_tokens=256)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", help="folders of poly-encoders")
    parser.add_argument("--data", default=os.environ.get("TERCET_DATA", "."), type=Path)
    options = parser.parse_args()
    scorers = {f"untrained, candidate_scale {scale}": untrained(scale) for scale in SCALES}
    scorers |= {name: tercet.load(name) for name in ("poly", *options.models)}
    for name in SETS:
        config = DataConfig(files=(f"{name}.jsonl.gz",), reader="choices")
        cases = list(islice(iter_examples(config, root=options.data), CASES))
        contexts, answers = [case.context for case in cases], [case.candidates[0] for case in cases]
        for title, scorer in scorers.items():
            entropies = scorer.attention_entropies(contexts, answers)
            values = ", ".join(f"{key} {value:.2f}" for key, value in entropies.items())
            print(f"{name}, {title}: {values}")


if __name__ == "__main__":
    main()
