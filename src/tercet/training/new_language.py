"""A bi-encoder that reads a new language: what its recipe needs, new word pieces and their first vectors."""

from collections.abc import Sequence

from tercet.errors import InputError
from tercet.formats.manifest import EXTENDS, read_manifest
from tercet.formats.sources import resolve_model
from tercet.records import Example, as_text
from tercet.scorers.bi import BiEncoder
from tercet.scorers.kinds import AnyScorer
from tercet.settings.recipe import Recipe
from tercet.settings.vocabulary import VocabularyConfig
from tercet.training.alignment import align, first_vectors
from tercet.training.grown_embedding import grow, word_vectors
from tercet.training.new_pieces import extend_tokenizer
from tercet.training.objectives import OBJECTIVES
from tercet.training.targets import Targets


def with_new_pieces(
    scorer: AnyScorer, examples: Sequence[Example], config: VocabularyConfig, *, seed: int
) -> BiEncoder:
    """The bi-encoder with word pieces learnt from the contexts, which are translations of the candidates.

    The towers are those of ``scorer``. Their word vectors are frozen, apart from the new ones.
    """
    if not isinstance(scorer, BiEncoder) or scorer.context_tower is not scorer.candidate_tower:
        raise InputError("[vocabulary] needs a bi-encoder with one tower, and this model is another")
    words = word_vectors(scorer.backbone.transformer)
    sources = [example.candidates[0] for example in examples]
    targets = [as_text(example.context) for example in examples]
    first = len(words.weight)
    tokenizer = extend_tokenizer(scorer.tokenizer, targets, config, first_id=first)
    count = tokenizer.highest_id() + 1 - first
    alignment = align(tokenizer.bare_ids(sources), tokenizer.bare_ids(targets), first_new=first, count=count)
    grow(scorer.backbone.transformer, first_vectors(words.weight.detach().cpu(), alignment, seed=seed))
    return BiEncoder(scorer.parts()._replace(tokenizer=tokenizer)).to(scorer.device)


def learns_vectors(recipe: Recipe) -> bool:
    """Whether the student learns a teacher's vectors rather than its scores."""
    return OBJECTIVES[recipe.objective.kind].targets is Targets.VECTORS


def wants_extension(recipe: Recipe) -> bool:
    """Whether the model is also saved as what it adds to its base."""
    return recipe.vocabulary is not None and recipe.vocabulary.extension


def check_translation(recipe: Recipe) -> None:
    """Raise if an objective that learns vectors, or ``[vocabulary]``, lacks what it needs."""
    if learns_vectors(recipe):
        if len(recipe.teachers) != 1 or recipe.teacher_lexical_weight:
            raise InputError(
                f'{recipe.objective.kind} learns the vectors of one teacher: set teacher = "NAME", and no '
                "teacher_lexical_weight"
            )
    elif recipe.vocabulary is not None:
        raise InputError(f"[vocabulary] needs the objective translation, got {recipe.objective.kind}")
    if wants_extension(recipe) and recipe.after is None:
        base = recipe.model.source
        if EXTENDS in (read_manifest(resolve_model(base)) or {}):
            raise InputError(
                f"{base} is an extension itself, and cannot be the base of another: remove extension = true "
                "(--extension)"
            )
