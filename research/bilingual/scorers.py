"""Train bi-, poly- and cross-encoders over the bilingual backbone, and make what they learn from.

python research/bilingual/scorers.py vectors --work WORK  # vectors of the backbone
python research/bilingual/scorers.py bi --work WORK --set 'name="bi_a"'
python research/bilingual/scorers.py poly --work WORK --set 'name="poly_a"'
python research/bilingual/scorers.py mine --work WORK  # hard negatives of the bi-encoder
python research/bilingual/scorers.py cross --work WORK --set 'name="cross_a"'
python research/bilingual/scorers.py lists --work WORK  # replies scored by the cross-encoder

WORK/backbone.safetensors and WORK/minilm.safetensors must be there, for mine and cross also
WORK/bi.safetensors, for cross and lists also WORK/poly.safetensors. If there is WORK/lists.npz, bi- and
poly-encoders learn from it. Word vectors are not trained. A run ends after the given time. It is measured
with several shares of what the training added to the weights it started from; the weights of each share are
saved as NAME-SHARE.safetensors.
"""

import argparse
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
import torch
from cross_lists import CONTEXTS, score_lists
from cross_training import CrossSettings, CrossTraining
from dual_training import DualSettings, DualTraining
from evaluation import Evaluator, means
from mining import mine
from model import DEVICE, Weights, build
from numpy.typing import NDArray
from pairs import GROUPS, PairSets
from poly_teacher import PolyTeacher, read_poly
from runs import LossLog, Schedule, add_settings, parse_settings, prefetched, seeded, steps, write_result
from safetensors.torch import load_file, save_file
from scorer_models import Bi, Cross, Poly, between, read_weights, teacher_vectors, trained_weights
from torch import Tensor, nn

Settings = DualSettings | CrossSettings
COMMANDS = ("vectors", "bi", "poly", "mine", "cross", "lists")
VECTORS, MINED, LISTS = "vectors.safetensors", "mined.npz", "lists.npz"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=COMMANDS)
    add_settings(parser)
    options = parser.parse_args()
    data = PairSets(options.work / "scorers.npz", small=options.small)
    if options.command in WRITERS:
        WRITERS[options.command](data, options.work)
        return
    settings = parse_settings(CrossSettings if options.command == "cross" else DualSettings, options.set)
    evaluator = Evaluator(options.work / "dev.npz", small=options.small)
    train(options.command, settings, data, options.work, evaluator)


@torch.no_grad()
def write_vectors(data: PairSets, work: Path) -> None:
    """Write MiniLM's vectors of English sets, and the backbone's of the others."""
    vectors: Weights = {}
    for teacher, names in (
        ("minilm", [name for name in data.names if name not in GROUPS["korean"]]),
        ("backbone", list(GROUPS["korean"])),
    ):
        vectors |= teacher_vectors(
            build(read_weights(work, teacher)),
            data,
            names,
            left_tokens=DualSettings.left_tokens,
            right_tokens=DualSettings.right_tokens,
        )
    save_file({key: value.cpu().contiguous() for key, value in vectors.items()}, work / VECTORS)


@torch.no_grad()
def write_mined(data: PairSets, work: Path) -> None:
    """Write hard negatives of the bi-encoder."""
    weights = read_weights(work, "bi")
    names = [name for name in data.names if name not in GROUPS["dialogue"]]
    tokens = {"left_tokens": CrossSettings.max_tokens, "right_tokens": DualSettings.right_tokens}
    vectors = teacher_vectors(build(weights), data, names, **tokens)
    np.savez(work / MINED, **mine(data, names, vectors, len(weights["word.weight"])))


def write_lists(data: PairSets, work: Path) -> None:
    """Write lists of replies with the scores of the cross-encoder."""
    cross = Cross(read_weights(work, "cross"), CrossSettings.cross_text_weight)
    cross.load_state_dict(load_file(work / "cross.safetensors"), strict=False)
    teacher = PolyTeacher(read_poly(work), data, [*CONTEXTS])
    np.savez(work / LISTS, **score_lists(cross, teacher, data))


WRITERS = {"vectors": write_vectors, "mine": write_mined, "lists": write_lists}


def make_model(command: str, settings: Settings, weights: Weights) -> Bi | Poly | Cross:
    if isinstance(settings, CrossSettings):
        cross = Cross(weights, settings.cross_text_weight)
        with torch.no_grad():  # the other models use one token type only
            cross.encoder.segment.weight[1] = cross.encoder.segment.weight[0]
        return cross
    if command == "bi":
        return Bi(weights)
    return Poly(
        weights,
        codes=settings.codes,
        seed=settings.seed,
        code_scale=settings.code_scale,
        candidate_scale=settings.candidate_scale,
    )


def make_training(
    model: Bi | Poly | Cross, settings: Settings, data: PairSets, work: Path
) -> DualTraining | CrossTraining:
    if isinstance(settings, CrossSettings):
        teacher = PolyTeacher(read_poly(work), data, data.names)
        mined = {name: rows.astype(np.int64) for name, rows in read_arrays(work / MINED).items()}
        return CrossTraining(model, data, teacher, mined, settings)
    teacher = load_file(work / VECTORS, device=str(DEVICE))
    lists = read_arrays(work / LISTS) if (work / LISTS).exists() else {}
    return DualTraining(model, data, teacher, lists, settings)


def read_arrays(path: Path) -> dict[str, NDArray]:
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def train(command: str, settings: Settings, data: PairSets, work: Path, evaluator: Evaluator) -> None:
    rng = seeded(settings.seed)
    weights = read_weights(work, "backbone" if settings.start == "poly" else settings.start)
    for texts in (data.file, evaluator.file):
        texts.check_rows(len(weights["word.weight"]), settings.start)
    model = make_model(command, settings, weights)
    for name, weight in model.named_parameters():
        weight.requires_grad_(not name.endswith("word.weight"))
    if settings.start == command:  # continue a scorer of this kind
        model.load_state_dict(load_file(work / f"{settings.start}.safetensors"), strict=False)
    training = make_training(model, settings, data, work)
    start = trained_weights(model)
    batches = prefetched(partial(training.prepare, rng))
    log = optimize(model, settings, lambda done: training.losses(next(batches), done))
    seconds = log.seconds
    end = trained_weights(model)
    mixed = {share: between(start, end, share) for share in settings.shares}
    for share, part in mixed.items():
        save_file(part, work / f"{settings.name}-{share}.safetensors")
    for share, part in mixed.items():
        model.load_state_dict(part, strict=False)
        results = evaluate(model, settings, evaluator)
        np.savez_compressed(work / f"hits-{settings.name}-{share}.npz", **evaluator.hits)
        write_result(
            work,
            kind=command,
            name=settings.name,
            share=share,
            steps=log.steps,
            seconds=round(seconds, 1),
            **means(results),
            settings=asdict(settings),
            results=results,
        )


def optimize(model: nn.Module, settings: Settings, losses: Callable[[float], dict[str, Tensor]]) -> LossLog:
    """Train until the time is used up."""
    named = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
    body = [weight for name, weight in named if name != "codes"]
    groups = [{"params": body, "lr": settings.lr}]
    if codes := [weight for name, weight in named if name == "codes"]:
        groups.append({"params": codes, "lr": settings.codes_lr})
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98), weight_decay=0.01, fused=DEVICE.type == "cuda")
    schedule = Schedule(optimizer, warmup=settings.warmup, min_steps=50)
    log = LossLog(settings.name)
    for step, done in steps(settings.seconds, settings.max_steps):
        schedule.update(step, done)
        found = losses(done)
        optimizer.zero_grad(set_to_none=True)
        sum(found.values()).backward()
        nn.utils.clip_grad_norm_(body, 1.0)
        optimizer.step()
        log.add(found)
    return log


@torch.no_grad()
def evaluate(model: Bi | Poly | Cross, settings: Settings, evaluator: Evaluator) -> dict[str, float]:
    if isinstance(model, Cross):
        return model.evaluate(evaluator, settings.max_queries)
    return model.evaluate(evaluator)


if __name__ == "__main__":
    main()
