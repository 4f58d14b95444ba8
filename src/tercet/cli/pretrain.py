"""``tercet pretrain``: from text or dialogues to a backbone."""

import typer

from tercet.cli.progress import step_progress
from tercet.cli.train import (
    DataOption,
    DeviceOption,
    OutOption,
    RecipeArgument,
    ResumeOption,
    SetOption,
    run_folder,
)


def pretrain(
    recipe: RecipeArgument,
    data: DataOption = None,
    out: OutOption = None,
    resume: ResumeOption = False,
    change: SetOption = None,
    device: DeviceOption = None,
) -> None:
    """Pre-train a backbone: masked words, and which text follows which, in turn (Humeau et al., 2020).

    The run's folder has the model in its folder "model": a backbone for tercet new and tercet train, and a
    masked LM for transformers.

    Example: tercet pretrain recipes/pretrain-sample.toml --set model.layers=2
    """
    from tercet.data.sources import data_root
    from tercet.training.pretrain import read_pretrain_recipe, run_pretraining

    read = read_pretrain_recipe(recipe, change or [])
    folder = run_folder(out, recipe)
    with step_progress() as teller:
        result = run_pretraining(
            read, folder, root=data_root(data), resume=resume, device=device, teller=teller
        )
    typer.echo(f"{folder}: {result['train']['steps']} steps, dev loss {result['dev']['loss']:.4f}")
