"""``tercet pretrain``: text or dialogues to a backbone."""

import typer

from tercet.cli.options import DataOption, DeviceOption
from tercet.cli.progress import step_progress
from tercet.cli.train import OutOption, RecipeArgument, ResumeOption, SetOption, run_folder
from tercet.extras import require_torch


def pretrain(
    recipe: RecipeArgument,
    data: DataOption = None,
    out: OutOption = None,
    resume: ResumeOption = False,
    change: SetOption = None,
    device: DeviceOption = None,
) -> None:
    """Pre-train a backbone by masked language modelling and next-text prediction (Humeau et al., 2020).

    RUN/model is a backbone for tercet new and tercet train, and a masked language model for transformers.

    Example: tercet pretrain pretrain-sample --set model.layers=2
    """
    from tercet.data.sources import data_root
    from tercet.settings.pretrain import read_pretrain_recipe

    settings = read_pretrain_recipe(recipe, change or [])
    require_torch("pre-training", extra="train")
    from tercet.training.pretrain import run_pretraining

    folder = run_folder(out, recipe)
    with step_progress() as reporter:
        result = run_pretraining(
            settings, folder, root=data_root(data), resume=resume, device=device, reporter=reporter
        )
    typer.echo(f"{folder}: {result['train']['steps']} steps, dev loss {result['dev']['loss']:.4f}")
