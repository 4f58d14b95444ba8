"""The inputs of a training or of changed words that are not settings: models and data files."""

from pathlib import Path
from typing import Any

from tercet.augment.wordnet import wordnet_folder
from tercet.files.digest import path_digest
from tercet.formats.sources import resolve_model
from tercet.settings.augment import WordChange, WordsConfig
from tercet.settings.recipe import Recipe, one_or_list


def training_provenance(recipe: Recipe, root: Path | None) -> dict[str, Any]:
    """The settings, data, teachers and base model of a recipe, and of the recipes before it."""
    files = [file for part in (recipe.train, recipe.dev) if part for file in part.files]
    inputs: dict[str, Any] = {
        "recipe": recipe.resolved(),
        "files": [data_digest(file, root) for file in files],
        "teacher": one_or_list([path_digest(resolve_model(teacher)) for teacher in recipe.teachers]),
    }
    if recipe.after is None:
        return inputs | {"model": path_digest(resolve_model(recipe.model.source))}
    return inputs | {"after": training_provenance(recipe.after, root)}


def words_provenance(change: WordChange, config: WordsConfig) -> dict[str, Any]:
    """The digests of the folders that a word change uses."""
    inputs = {}
    if change == "synonyms":
        wordnet = wordnet_folder(config.wordnet)
        inputs["wordnet"] = path_digest(wordnet) if wordnet.is_dir() else None
    if change in ("substitution", "insertion") and config.language_model:
        inputs["language model"] = path_digest(resolve_model(config.language_model))
    inputs["encoder"] = path_digest(resolve_model(config.encoder))
    return inputs


def data_digest(name: str, root: Path | None) -> str:
    """The digest of a file; samples and hub data sets are identified by their names."""
    path = Path(name) if root is None or Path(name).is_absolute() else root / name
    return path_digest(path) if path.is_file() else name
