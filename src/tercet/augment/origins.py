"""What a training or a change of words depends on beside its settings: models and data elsewhere."""

from pathlib import Path
from typing import Any

from tercet.augment.steps import hash_of
from tercet.augment.words import Change, WordConfig
from tercet.models.sources import find_folder
from tercet.training.recipe import Recipe, one_or_all


def origin_of(recipe: Recipe, root: Path | None) -> dict[str, Any]:
    """A recipe's settings, data, teacher and first model, and all that of the recipes it comes after."""
    files = [file for part in (recipe.train, recipe.dev) if part for file in part.files]
    found: dict[str, Any] = {
        "recipe": recipe.resolved(),
        "files": [_hash_of_data(file, root) for file in files],
        "teacher": one_or_all([hash_of(find_folder(teacher)) for teacher in recipe.teachers]),
    }
    if recipe.after is None:
        return found | {"model": hash_of(find_folder(recipe.model.source))}
    return found | {"after": origin_of(recipe.after, root)}


def origin_of_words(change: Change, config: WordConfig) -> dict[str, Any]:
    """The folders that a change looks into."""
    found = {}
    if change == "synonyms":
        found["wordnet"] = hash_of(Path(config.wordnet)) if Path(config.wordnet).is_dir() else None
    if change in ("substitution", "insertion") and config.language_model:
        found["language model"] = hash_of(find_folder(config.language_model))
    found["encoder"] = hash_of(find_folder(config.encoder))
    return found


def _hash_of_data(name: str, root: Path | None) -> str:
    """What is in a file; of a sample or a data set of a hub, its name."""
    path = Path(name) if root is None or Path(name).is_absolute() else root / name
    return hash_of(path) if path.is_file() else name
