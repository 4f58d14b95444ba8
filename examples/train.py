"""Train a bi-encoder on the sample FAQ, compare it with the untrained model, and use it."""

from pathlib import Path
from tempfile import TemporaryDirectory

import tercet
from tercet.settings.recipe import make_recipe

recipe = make_recipe(  # or tercet.read_recipe("recipe.toml")
    {
        "model": {"kind": "bi", "source": "bi"},
        "data": {"train": {"files": "sample:faq.en", "reader": "answers", "limit": 60}},
        "objective": {"kind": "in_batch", "score_scale": 20},
        "batches": {"batch_size": 16},
        "training": {"epochs": 1, "learning_rate": 2e-5},
    },
    name="example",
)
with TemporaryDirectory() as folder:
    result = tercet.run_recipe(recipe, Path(folder) / "run")
    print(result["train"]["examples"], "training examples; dev metrics before and after training:")
    print({name: round(value, 3) for name, value in result["untrained"].items()})
    print({name: round(value, 3) for name, value in result["dev"].items()})
    scorer = tercet.load(Path(folder) / "run" / "model")
    best = scorer.rank("Where is my parcel?", ["With the driver.", "Water it weekly."], k=1)[0]
    print(best.text)
