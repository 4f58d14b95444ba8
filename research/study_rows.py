"""The rows of the study's tables: each is a recipe with some settings changed, trained with several seeds."""

import re
from pathlib import Path
from typing import NamedTuple

RUNS = Path("runs/study")

PRETRAINING_TEXTS = ("dialogue", "text")
SETS = ("ubuntu", "convai2", "self-dialogue", "dailydialog")
LONGER = {"ubuntu": 3, "self-dialogue": 2}
"""Epochs of the cross-encoders that are also trained for one epoch more than their recipe says."""
TEACHERS = {"ubuntu": "cross longer", "convai2": "cross again"}
"""The cross-encoder that teaches, for each set on which it is ahead of the poly-encoder."""
BASELINES = {"bm25": "bm25", "untrained": "bi"}
"""Scorers that are measured without training, by row name."""


class Row(NamedTuple):
    """One row of a table."""

    name: str
    recipe: str
    changes: tuple[str, ...] = ()
    """Assignments for ``--set``."""
    against: tuple[str, ...] = ()
    """Names of the rows it is compared with by a paired test."""
    same_seed: tuple[str, ...] = ()
    """Assignments that name models of other runs with the same seed, with ``{seed}`` in their path."""
    again: bool = False
    """A second training by the same command, in a folder of its own."""

    def run(self, seed: int | str) -> Path:
        """The run folder; rows with equal settings share it."""
        changes = (*self.changes, "run.again") if self.again else self.changes
        return RUNS / folder_name(self.recipe, changes, seed)

    def command(self, seed: int, shared: tuple[str, ...]) -> list[str]:
        """The training command of one seed.

        Args:
            shared: assignments that all runs of a machine have.
        """
        models = tuple(setting.format(seed=seed) for setting in self.same_seed)
        recipe = f"research/recipes/{self.recipe}.toml"
        return train_command(recipe, self.run(seed), (*self.changes, *models, *shared), seed)


def train_command(recipe: str, run: Path, changes: tuple[str, ...], seed: int) -> list[str]:
    """The command that trains a recipe with some settings changed, or resumes it."""
    words = ["tercet", "train", recipe, "-o", str(run)]
    for change in changes:
        words += ["--set", change]
    return [*words, "--seed", str(seed), "--resume"]


def folder_name(recipe: str, changes: tuple[str, ...], seed: int | str) -> str:
    """The name of a run folder: recipe, changed settings and seed."""
    changed = (re.sub(r"\W+", "-", change.partition(".")[2]).strip("-") for change in changes)
    return "-".join([recipe, *changed, str(seed)])


def main_rows() -> list[Row]:
    """The three scorers on the four sets; bi- and poly-encoder also with 255 negatives, in fewer steps."""
    return [row for name in SETS for row in _rows_of_set(name)]


def _rows_of_set(name: str) -> list[Row]:
    more = ("batches.batch_size=256", "training.warmup=25")
    bi, poly, bi_more, poly_more = (f"{name} {kind}" for kind in ("bi", "poly", "bi 255", "poly 255"))
    rows = [
        Row(bi, f"bi-{name}"),
        Row(poly, f"poly-{name}", against=(bi,)),
        Row(f"{name} poly first", f"poly-{name}", ('model.code_kind="first"',), against=(bi, poly)),
        Row(bi_more, f"bi-{name}", more, against=(bi,)),
        Row(poly_more, f"poly-{name}", more, against=(poly, bi_more)),
        Row(f"{name} cross", f"cross-{name}", against=(poly, bi, poly_more, bi_more)),
    ]
    if name in LONGER:
        epochs = (f"training.epochs={LONGER[name]}",)
        others = (f"{name} cross", poly, bi, poly_more, bi_more)
        rows.append(Row(f"{name} cross longer", f"cross-{name}", epochs, others))
    return rows


def again_rows() -> list[Row]:
    """The models that distillation starts from, trained a second time; they show how far a run repeats."""
    return [
        Row(f"{name} {kind} again", f"{kind}-{name}", against=(f"{name} {kind}", *others), again=True)
        for name in TEACHERS
        for kind, others in (
            ("bi", ()),
            ("poly", (f"{name} bi again", f"{name} cross")),
            ("cross", (f"{name} poly again",)),
        )
    ]


def distillation_rows() -> list[Row]:
    """Bi- and poly-encoders trained for two more epochs, with a cross-encoder as teacher or without one."""
    known = {row.name: row for row in (*main_rows(), *again_rows())}
    return [row for name, kind in TEACHERS.items() for row in _distillation_rows(name, kind, known)]


def _distillation_rows(name: str, teacher: str, known: dict[str, Row]) -> list[Row]:
    bi, poly, cross = (f"{name} {kind}" for kind in ("bi again", "poly again", teacher))
    bi_model, poly_model, cross_model = (f"{known[row].run('{seed}')}/model" for row in (bi, poly, cross))
    bi_source, poly_source = (f'model.source="{model}"' for model in (bi_model, poly_model))
    bi_taught, longer = f"{name} bi taught", f"{name} poly longer"
    setting = f'teacher="{cross_model}"'
    return [
        Row(bi_taught, f"taught-bi-{name}", against=(bi,), same_seed=(bi_source, setting)),
        Row(longer, f"longer-{name}", against=(poly,), same_seed=(poly_source,)),
        Row(
            f"{name} poly taught",
            f"taught-{name}",
            against=(poly, longer, bi_taught, f"{name} bi 255", f"{name} poly 255", cross),
            same_seed=(poly_source, setting),
        ),
    ]


def hard_rows() -> list[Row]:
    """Up to four mined negatives per example, beside in-batch negatives or eleven random ones.

    Mine them first: ``mkdir FOLDER/hard; tercet data negatives ubuntu_irc/train.jsonl.gz --column
    answer=response --by model -o FOLDER/hard/ubuntu.jsonl --data FOLDER``.
    """
    mined = ('data.train.files="hard/ubuntu.jsonl"', 'data.train.columns={negatives="negatives"}')
    return [
        Row("ubuntu bi hard", "bi-ubuntu", mined, ("ubuntu bi",)),
        Row("ubuntu poly hard", "poly-ubuntu", mined, ("ubuntu poly", "ubuntu bi hard")),
        Row(
            "ubuntu cross hard",
            "cross-ubuntu",
            (*mined, "batches.negatives=11"),
            ("ubuntu cross", "ubuntu poly hard", "ubuntu poly 255"),
        ),
    ]


def cross_text_rows() -> list[Row]:
    """Cross-encoders whose two texts attend to each other in full from the start."""
    return [
        Row(
            f"{name} cross weight 1",
            f"cross-{name}",
            ("model.cross_text_weight=1.0",),
            (f"{name} cross", f"{name} poly", f"{name} poly 255"),
        )
        for name in TEACHERS
    ]


def baseline_rows() -> list[Row]:
    """Scorers without training on the same sets; ``study_baselines.py`` measures them."""
    return [Row(f"{name} {baseline}", f"{baseline}-{name}") for name in SETS for baseline in BASELINES]


def code_rows() -> list[Row]:
    """Numbers and kinds of codes (the paper's table 5)."""
    kinds = {kind: (f'model.code_kind="{kind}"',) for kind in ("first", "last", "last_and_first")}
    counts = {
        1: ("model.codes=1",),
        4: ("model.codes=4",),
        16: ("model.codes=16",),
        64: (),
        360: ("model.codes=360", "model.max_tokens=360"),
    }
    return [
        Row(f"codes {kind} {count}", "poly-ubuntu", (*kinds.get(kind, ()), *changes), ("codes learnt 64",))
        for kind in ("learnt", *kinds)
        for count, changes in counts.items()
        if (kind, count) != ("last_and_first", 1)
    ]


def ablation_rows() -> list[Row]:
    """Reductions, negatives, trained layers and scales, each compared with the recipe's own value."""
    return [*_reduction_rows(), *_negatives_rows(), *_layer_rows(), *_scale_rows()]


def _reduction_rows() -> list[Row]:
    first_few = 'model.reduction="mean_first"'
    reductions = {
        "first": ('model.reduction="first"',),
        "mean_first 16": (first_few,),
        "mean_first 64": (first_few, "model.first_tokens=64"),
        "mean": (),
    }
    return [
        Row(f"reduction {name}", "poly-ubuntu", changes, ("reduction mean",))
        for name, changes in reductions.items()
    ]


def _negatives_rows() -> list[Row]:
    return [
        Row(f"negatives {size - 1}", "bi-ubuntu", _unless(64, size, "batches.batch_size"), ("negatives 63",))
        for size in (32, 64, 128, 256, 512)
    ]


def _layer_rows() -> list[Row]:
    frozen = "training.freeze_embeddings=true"
    layers = {
        "top": (frozen, "training.freeze_layers=5"),
        "top four": (frozen, "training.freeze_layers=2"),
        "all but embeddings": (frozen,),
        "all": (),
    }
    return [
        Row(f"layers {name} {kind}", f"{kind}-ubuntu", changes, (f"layers all {kind}",))
        for kind in ("bi", "cross")
        for name, changes in layers.items()
    ]


def _scale_rows() -> list[Row]:
    scales = (
        ("codes", "model.code_scale", 10, (1, 3, 10, 30)),
        ("candidate", "model.candidate_scale", 10, (1, 4, 10, 30, 100)),
        ("score", "objective.score_scale", 20, (5, 10, 20, 40)),
    )
    return [
        Row(
            f"scale {name} {value}",
            "poly-ubuntu",
            _unless(default, value, setting),
            (f"scale {name} {default}",),
        )
        for name, setting, default, values in scales
        for value in values
    ]


def pretraining_rows() -> list[Row]:
    """Further pre-training of the encoder (section 5.3): none, on dialogues, or on as much other text."""
    rows = []
    for kind in ("bi", "poly", "cross"):
        plain, *pretrained = (f"pretraining {text} {kind}" for text in ("none", *PRETRAINING_TEXTS))
        rows.append(Row(plain, f"{kind}-convai2"))
        others = ((plain, pretrained[1]), (plain,))
        for name, text, against in zip(pretrained, PRETRAINING_TEXTS, others, strict=True):
            source = f'model.source="{_pretrained(text)}/model"'
            rows.append(Row(name, f"{kind}-convai2", (source,), against))
    return rows


def distillation_inputs(shared: tuple[str, ...], seeds: range) -> dict[Path, list[str]]:
    """The commands that train teachers and students before distillation, by run folder."""
    wanted = {
        f"{name} {kind}" for name, cross in TEACHERS.items() for kind in ("bi again", "poly again", cross)
    }
    rows = [row for row in (*main_rows(), *again_rows()) if row.name in wanted]
    return {row.run(seed): row.command(seed, shared) for seed in seeds for row in rows}


def pretraining_inputs(shared: tuple[str, ...], _seeds: range) -> dict[Path, list[str]]:
    """The commands that pre-train encoders, by run folder."""
    changes = [word for change in shared for word in ("--set", change)]
    return {
        _pretrained(text): [
            *("tercet", "pretrain", f"research/recipes/pretrain-{text}.toml", "-o", str(_pretrained(text))),
            *(*changes, "--resume"),
        ]
        for text in PRETRAINING_TEXTS
    }


def _pretrained(text: str) -> Path:
    return RUNS / f"pretrain-{text}"


def _unless(default: int, value: int, setting: str) -> tuple[str, ...]:
    """The assignment of a setting, or none if the value is the recipe's own."""
    return () if value == default else (f"{setting}={value}",)


PARTS = {
    "main": main_rows,
    "codes": code_rows,
    "ablations": ablation_rows,
    "pretraining": pretraining_rows,
    "again": again_rows,
    "distillation": distillation_rows,
    "hard": hard_rows,
    "cross-text": cross_text_rows,
}
"""The parts of the study; each function lists its rows."""


def rows_by_name() -> dict[str, Row]:
    """Every trained row of all parts."""
    return {row.name: row for part in PARTS.values() for row in part()}


INPUTS = {"pretraining": pretraining_inputs, "distillation": distillation_inputs}
"""Commands that must run before a part."""
