"""What the study trains: rows of tables, each a recipe with some settings changed, for several seeds."""

import re
from pathlib import Path
from typing import NamedTuple

RUNS = Path("runs/study")

READ_BEFORE = ("dialogue", "text")
SETS = ("ubuntu", "convai2", "self-dialogue", "dailydialog")
LONGER = {"ubuntu": 3, "self-dialogue": 2}
"""Epochs of the cross-encoders that are also trained for one more than their recipe says."""
TEACHERS = {"ubuntu": "cross longer", "convai2": "cross again"}
"""Cross-encoders that teach, on the sets where one is ahead of the poly-encoder."""
AS_THEY_ARE = {"bm25": "bm25", "untrained": "bi"}
"""Scorers that are measured without training."""


class Row(NamedTuple):
    """One row of a table: a recipe with some settings changed, for several seeds."""

    name: str
    recipe: str
    changes: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    """The rows that it is tested against."""
    same_seed: tuple[str, ...] = ()
    """Settings that name models of other runs of the same seed, as ``{seed}``."""
    again: bool = False
    """Trained a second time, by the same command into another folder."""

    def run(self, seed: int | str) -> Path:
        """Its folder; rows of equal settings share it."""
        changes = (*self.changes, "run.again") if self.again else self.changes
        return RUNS / folder_name(self.recipe, changes, seed)

    def command(self, seed: int, shared: tuple[str, ...]) -> list[str]:
        """The training of one seed."""
        begins = tuple(setting.format(seed=seed) for setting in self.same_seed)
        return training(f"study/{self.recipe}", self.run(seed), (*self.changes, *begins, *shared), seed)


def training(recipe: str, run: Path, changes: tuple[str, ...], seed: int) -> list[str]:
    """The command that trains a recipe with some settings changed, or goes on with it."""
    words = ["tercet", "train", f"recipes/{recipe}.toml", "-o", str(run)]
    for change in changes:
        words += ["--set", change]
    return [*words, "--seed", str(seed), "--resume"]


def folder_name(recipe: str, changes: tuple[str, ...], seed: int | str) -> str:
    """A name that says what is trained."""
    changed = (re.sub(r"\W+", "-", change.partition(".")[2]).strip("-") for change in changes)
    return "-".join([recipe, *changed, str(seed)])


def main_rows() -> list[Row]:
    """The three scorers on the four sets; bi- and poly-encoder also with more negatives, in fewer steps."""
    rows, more = [], ("batches.examples=256", "training.warmup=25")
    for each in SETS:
        bi, poly, bi_more, poly_more = (f"{each} {kind}" for kind in ("bi", "poly", "bi 255", "poly 255"))
        rows += [
            Row(bi, f"bi-{each}"),
            Row(poly, f"poly-{each}", against=(bi,)),
            Row(f"{each} poly first", f"poly-{each}", ('model.code_kind="first"',), against=(bi, poly)),
            Row(bi_more, f"bi-{each}", more, against=(bi,)),
            Row(poly_more, f"poly-{each}", more, against=(poly, bi_more)),
            Row(f"{each} cross", f"cross-{each}", against=(poly, bi, poly_more, bi_more)),
        ]
        if each in LONGER:
            others = (f"{each} cross", poly, bi, poly_more, bi_more)
            rows.append(
                Row(f"{each} cross longer", f"cross-{each}", (f"training.epochs={LONGER[each]}",), others)
            )
    return rows


def again_rows() -> list[Row]:
    """What distillation begins with, trained a second time: which also shows how far a training repeats."""
    return [
        Row(f"{each} {kind} again", f"{kind}-{each}", against=(f"{each} {kind}", *others), again=True)
        for each in TEACHERS
        for kind, others in (
            ("bi", ()),
            ("poly", (f"{each} bi again", f"{each} cross")),
            ("cross", (f"{each} poly again",)),
        )
    ]


def distillation_rows() -> list[Row]:
    """Bi- and poly-encoders that go on with what a cross-encoder says, or for as long without it."""
    rows, known = [], {row.name: row for row in (*main_rows(), *again_rows())}
    for each, kind in TEACHERS.items():
        bi, poly, cross = (f"{each} {it}" for it in ("bi again", "poly again", kind))
        of_bi, of_poly, teacher = (f"{known[name].run('{seed}')}/model" for name in (bi, poly, cross))
        begin_bi, begin_poly = (f'model.source="{model}"' for model in (of_bi, of_poly))
        bi_taught, longer = f"{each} bi taught", f"{each} poly longer"
        more = (f"{each} bi 255", f"{each} poly 255")
        asked = f'teacher="{teacher}"'
        rows += [
            Row(bi_taught, f"taught-bi-{each}", against=(bi,), same_seed=(begin_bi, asked)),
            Row(longer, f"longer-{each}", against=(poly,), same_seed=(begin_poly,)),
            Row(
                f"{each} poly taught",
                f"taught-{each}",
                against=(poly, longer, bi_taught, *more, cross),
                same_seed=(begin_poly, asked),
            ),
        ]
    return rows


def hard_rows() -> list[Row]:
    """Mined negatives, up to four a lesson: beside those of the batch, or beside eleven that are drawn.

    The data folder must have them: ``mkdir FOLDER/hard; tercet data negatives ubuntu_irc/train.jsonl.gz
    --column answer=response --by model -o FOLDER/hard/ubuntu.jsonl --data FOLDER``.
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


def reading_rows() -> list[Row]:
    """How much the two texts of a cross-encoder's row see of each other from the start."""
    return [
        Row(
            f"{each} cross weight 1",
            f"cross-{each}",
            ("model.other_weight=1.0",),
            (f"{each} cross", f"{each} poly", f"{each} poly 255"),
        )
        for each in TEACHERS
    ]


def plain_rows() -> list[Row]:
    """What needs no training, on the same sets; ``study_plain.py`` measures it."""
    return [Row(f"{each} {name}", f"{name}-{each}") for each in SETS for name in AS_THEY_ARE]


def code_rows() -> list[Row]:
    """How many codes, and of which kind (the paper's table 5)."""
    kinds = {kind: (f'model.code_kind="{kind}"',) for kind in ("first", "last", "last_and_first")}
    counts = {
        1: ("model.codes=1",),
        4: ("model.codes=4",),
        16: ("model.codes=16",),
        64: (),
        360: ("model.codes=360", "model.max_tokens=360"),
    }
    usual = ("codes learnt 64",)
    return [
        Row(f"codes {kind} {count}", "poly-ubuntu", (*kinds.get(kind, ()), *changes), usual)
        for kind in ("learnt", *kinds)
        for count, changes in counts.items()
        if (kind, count) != ("last_and_first", 1)
    ]


def other_rows() -> list[Row]:
    """Reductions, negatives, layers and scales, each tested against what the recipe has."""
    first_few = 'model.reduction="mean_first"'
    reductions = {
        "first": ('model.reduction="first"',),
        "mean_first 16": (first_few,),
        "mean_first 64": (first_few, "model.first_tokens=64"),
        "mean": (),
    }
    rows = [
        Row(f"reduction {name}", "poly-ubuntu", changes, ("reduction mean",))
        for name, changes in reductions.items()
    ]
    rows += [
        Row(f"negatives {size - 1}", "bi-ubuntu", _unless(64, size, "batches.examples"), ("negatives 63",))
        for size in (32, 64, 128, 256, 512)
    ]
    fast = "training.freeze_embeddings=true"
    layers = {
        "top": (fast, "training.freeze_layers=5"),
        "top four": (fast, "training.freeze_layers=2"),
        "all but embeddings": (fast,),
        "all": (),
    }
    rows += [
        Row(f"layers {name} {kind}", f"{kind}-ubuntu", changes, (f"layers all {kind}",))
        for kind in ("bi", "cross")
        for name, changes in layers.items()
    ]
    scales = (
        ("codes", "model.code_scale", 10, (1, 3, 10, 30)),
        ("candidate", "model.candidate_scale", 10, (1, 4, 10, 30, 100)),
        ("score", "objective.score_scale", 20, (5, 10, 20, 40)),
    )
    return rows + [
        Row(
            f"scale {name} {value}", "poly-ubuntu", _unless(usual, value, setting), (f"scale {name} {usual}",)
        )
        for name, setting, usual, values in scales
        for value in values
    ]


def pretraining_rows() -> list[Row]:
    """What the encoder has read before (section 5.3): nothing more, dialogues, or as much other text."""
    rows = []
    for kind in ("bi", "poly", "cross"):
        plain, *read = (f"pretraining {text} {kind}" for text in ("none", *READ_BEFORE))
        rows.append(Row(plain, f"{kind}-convai2"))
        for name, text, others in zip(read, READ_BEFORE, ((plain, read[1]), (plain,)), strict=True):
            start = f'model.source="{_read(text)}/model"'
            rows.append(Row(name, f"{kind}-convai2", (start,), others))
    return rows


def teachings(shared: tuple[str, ...], seeds: range) -> dict[Path, list[str]]:
    """The trainings of teachers and pupils, by their folders."""
    wanted = {
        f"{each} {kind}" for each, cross in TEACHERS.items() for kind in ("bi again", "poly again", cross)
    }
    rows = [row for row in (*main_rows(), *again_rows()) if row.name in wanted]
    return {row.run(seed): row.command(seed, shared) for seed in seeds for row in rows}


def pretrainings(shared: tuple[str, ...], _seeds: range) -> dict[Path, list[str]]:
    """The commands that the rows of pre-training come after, by their folders."""
    changes = [word for change in shared for word in ("--set", change)]
    return {
        _read(text): [
            *("tercet", "pretrain", f"recipes/study/pretrain-{text}.toml", "-o", str(_read(text))),
            *(*changes, "--resume"),
        ]
        for text in READ_BEFORE
    }


def _read(text: str) -> Path:
    return RUNS / f"pretrain-{text}"


def _unless(usual: int, value: int, setting: str) -> tuple[str, ...]:
    return () if value == usual else (f"{setting}={value}",)


PARTS = {
    "main": main_rows,
    "codes": code_rows,
    "others": other_rows,
    "pretraining": pretraining_rows,
    "again": again_rows,
    "distillation": distillation_rows,
    "hard": hard_rows,
    "reading": reading_rows,
}


def rows_by_name() -> dict[str, Row]:
    """Every row that is trained, of all parts."""
    return {row.name: row for part in PARTS.values() for row in part()}


BEFORE = {"pretraining": pretrainings, "distillation": teachings}
"""What has to be trained before a part."""
