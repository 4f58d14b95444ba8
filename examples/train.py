"""Train a bi-encoder on the sample questions, look at the result, and use it."""

from pathlib import Path
from tempfile import TemporaryDirectory

import tercet
from tercet.training.recipe import make_recipe

recipe = make_recipe(
    {
        "model": {"kind": "bi", "source": "bi"},
        "data": {"train": {"files": "sample:faq.en", "reader": "answers", "limit": 60}},
        "objective": {"kind": "in_batch", "score_scale": 20},
        "batches": {"examples": 16},
        "training": {"epochs": 1, "learning_rate": 2e-5},
    },
    name="example",
)
with TemporaryDirectory() as folder:
    result = tercet.run_recipe(recipe, Path(folder) / "run")
    print(result["train"]["lessons"], "lessons; dev before and after:")
    print({name: round(value, 3) for name, value in result["untrained"].items()})
    print({name: round(value, 3) for name, value in result["dev"].items()})
    scorer = tercet.load(Path(folder) / "run" / "model")
    print(scorer.rank("Where is my parcel?", ["With the driver.", "Water it weekly."], k=1)[0].candidate)
