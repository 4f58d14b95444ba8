"""Checks of an augment recipe that depend on the models and objectives of labeller and student."""

from tercet.errors import InputError
from tercet.formats.load import load
from tercet.scorers.cross import CrossEncoder
from tercet.settings.augment import AugmentRecipe
from tercet.settings.default_objective import scorer_kind
from tercet.settings.models import ModelSpec
from tercet.settings.recipe import Recipe
from tercet.training.objectives import OBJECTIVES
from tercet.training.targets import Targets


def check_recipe(recipe: AugmentRecipe) -> None:
    """Raise if labeller and student cannot work together, before anything is trained."""
    if recipe.labeller is not None:
        _check_labeller(recipe.labeller, recipe.student)
    _check_student(recipe)


def check_labeller_model(recipe: AugmentRecipe) -> None:
    """Raise unless the model that the labeller continues is a cross-encoder with scores from 0 to 1."""
    spec = None if recipe.labeller is None else _trained_spec(recipe.labeller)
    if spec is None or spec.kind != "model":
        return
    scorer = load(spec.source, device="cpu")
    if not isinstance(scorer, CrossEncoder):
        raise InputError(f"a labeller must be a cross-encoder, got the {scorer.kind}-encoder {spec.source}")
    _check_activation(scorer.config.activation, spec.source)


def distils(recipe: AugmentRecipe) -> bool:
    """Whether the student learns from a teacher's scores of several candidates."""
    return OBJECTIVES[recipe.student.objective.kind].targets is Targets.TEACHER


def _check_labeller(labeller: Recipe, student: Recipe) -> None:
    theirs, ours = labeller.objective, student.objective
    objective = OBJECTIVES[theirs.kind]
    if objective.targets is not Targets.SCORES or "cross" not in objective.trains:
        raise InputError(f"a labeller needs the objective bce or mse, got {theirs.kind}")
    if (ours.min_score, ours.max_score) != (theirs.min_score, theirs.max_score):
        raise InputError(
            f"the labeller's scores range from {theirs.min_score:g} to {theirs.max_score:g}, the student's "
            f"from {ours.min_score:g} to {ours.max_score:g}: set both to the range of the gold data in "
            "[objective]"
        )
    spec = _trained_spec(labeller)
    if spec.kind not in ("cross", "model"):
        raise InputError(f'a labeller must be a cross-encoder, got kind = "{spec.kind}" in its [model]')
    if spec.kind == "cross":
        _check_activation(spec.config().activation, "its [model]")
    if labeller.teachers:
        raise InputError("a labeller learns from gold data: remove teacher from its recipe")


def _check_activation(activation: str, where: str) -> None:
    if activation != "sigmoid":
        raise InputError(
            "a labeller's scores must be from 0 to 1, which only a sigmoid ensures, got activation = "
            f'"{activation}" in {where}: set activation = "sigmoid" in the labeller\'s [model]'
        )


def _trained_spec(recipe: Recipe) -> ModelSpec:
    """The spec of the scorer that a recipe trains, which may be that of an earlier recipe."""
    while recipe.model.kind == "model" and recipe.after is not None:
        recipe = recipe.after
    return recipe.model


def _check_student(recipe: AugmentRecipe) -> None:
    student = recipe.student
    kind = scorer_kind(_trained_spec(student))
    if kind is not None and kind not in OBJECTIVES[student.objective.kind].trains:
        raise InputError(
            f"{student.objective.kind} cannot train a {kind}-encoder: change kind in the [objective] or the "
            "[model] of the student"
        )
    learns_scores = [
        name for name, each in OBJECTIVES.items() if each.targets in (Targets.SCORES, Targets.TEACHER)
    ]
    if student.objective.kind not in learns_scores:
        raise InputError(
            f"a student needs an objective that learns from scores ({', '.join(learns_scores)}), got "
            f"{student.objective.kind}"
        )
    if student.teachers:
        raise InputError("a student learns from gold and silver data: remove teacher from its recipe")
    if distils(recipe):
        if student.train.both_directions:
            raise InputError("distillation uses both directions anyway: remove both_directions")
        if student.training.metric_for_best_model == "spearman":
            raise InputError(
                'distillation is measured by "loss", "recall_at_1" or "mrr": set metric_for_best_model'
            )
    if recipe.students.rounds > 1:
        _check_rounds(recipe)


def _check_rounds(recipe: AugmentRecipe) -> None:
    model = recipe.student.model
    if not (recipe.sampling and "semantic" in recipe.sampling.samplers):
        raise InputError("rounds above 1 need the sampler semantic, because the student searches its pairs")
    if model.kind == "poly" or model.settings.get("towers", 1) == 2:
        raise InputError("rounds above 1 need a bi-encoder with one tower as the student")
