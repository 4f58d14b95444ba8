"""Train a bilingual MiniLM: Korean learns the vectors of its English translation, English keeps its vectors.

python research/bilingual/distil.py --work WORK --set 'name="a"' --set seconds=420

English word vectors are not trained. The run ends after the given time; its results go to results.jsonl.
"""

import argparse
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from evaluation import Evaluator, means
from losses import cosent, cosine_distance, in_batch_softmax
from model import DEVICE, UNKNOWN, WIDTH, Packed, Weights, build, embed, from_bert, mean_vectors
from numpy.typing import NDArray
from runs import LossLog, Schedule, add_settings, parse_settings, seeded, steps, write_result
from safetensors.torch import load_file, save_file
from texts import Spans, TokenFile, drop_tokens
from torch import Tensor, nn
from torch.nn import functional
from vocabulary import ENGLISH_PIECES, MINILM

MAX_TOKENS = 126
PARALLEL = ("docs", "general", "korsts", "joined")
KOREAN_PAIRS = {
    "stylekqc": 2,
    "parakqc": 1,
    "kluenli": 2,
    "docs_ko_faq": 1,
    "docs_ko_headings": 3,
    "ko_chatbot": 2,
    "qpair_ko": 1,
}
"""Sets of Korean pairs, and how often each is drawn."""
SYMMETRIC = ("stylekqc", "parakqc", "qpair_ko")


@dataclass(frozen=True, kw_only=True)
class Settings:
    name: str = "a"
    seed: int = 0
    seconds: float = 420.0
    max_steps: int = 10**9
    table_lr: float = 2e-3
    body_lr: float = 3e-4
    warmup: float = 0.05
    docs: int = 400
    """This and the next five are numbers of texts in a batch."""
    general: int = 400
    korsts: int = 128
    joined: int = 96
    english: int = 512
    pairs: int = 256
    sts: int = 96
    token_dropout: float = 0.1
    cosine_weight: float = 5.0
    softmax_weight: float = 0.5
    english_weight: float = 5.0
    pairs_weight: float = 0.15
    sts_weight: float = 0.15
    scale: float = 20.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_settings(parser)
    options = parser.parse_args()
    train(parse_settings(Settings, options.set), options.work, small=options.small)


def starting_weights(work: Path) -> tuple[Weights, Weights]:
    """Weights of the teacher and of the student, both with a word vector for every piece.

    New pieces are [UNK] to the teacher. The student starts with means of English vectors (``align.py``).
    The random part does not depend on the seed of a run, so that runs can be averaged.
    """
    weights = from_bert(load_file(MINILM / "model.safetensors"))
    rows = weights["word.weight"]
    with np.load(work / "align.npz", allow_pickle=False) as file:
        pieces = torch.from_numpy(file["pieces"].astype(np.int64))
        shares = torch.from_numpy(file["weights"].astype(np.float32))
    new = torch.randn(len(pieces), WIDTH, generator=torch.Generator().manual_seed(0)) * rows.std()
    means_of_rows = (rows[pieces] * shares.unsqueeze(-1)).sum(dim=1)
    aligned = functional.normalize(means_of_rows, dim=-1) * rows.norm(dim=-1).mean()
    seen = shares.sum(dim=1) > 0
    new[seen] = aligned[seen] + 0.2 * new[seen]
    unknown = rows[UNKNOWN].expand(len(new), -1)
    teacher = {**weights, "word.weight": torch.cat([rows, unknown])}
    return teacher, {**weights, "word.weight": torch.cat([rows, new])}


class Batches:
    """Draws texts of all kinds, with the teacher's vectors of English."""

    def __init__(
        self, file: TokenFile, teacher: nn.Module, settings: Settings, rng: np.random.Generator
    ) -> None:
        self.file, self.columns, self.settings, self.rng = file, file.columns, settings, rng
        self.targets = {
            name: embed(teacher, file, self.columns[f"parallel/{name}/en"], max_tokens=MAX_TOKENS).half()
            for name in PARALLEL
        }
        self.english = embed(teacher, file, self.columns["english/texts"], max_tokens=MAX_TOKENS).half()
        self.names = list(KOREAN_PAIRS)
        self.shares = np.array(list(KOREAN_PAIRS.values())) / sum(KOREAN_PAIRS.values())

    def pick(self, count: int, size: int) -> NDArray[np.int64]:
        return self.rng.integers(0, count, size)

    def parallel(self) -> tuple[Spans, Tensor]:
        """Korean spans and the vectors ``[N, D]`` of their translations."""
        spans, targets = [], []
        for name in PARALLEL:
            korean = self.columns[f"parallel/{name}/ko"]
            chosen = self.pick(len(korean), getattr(self.settings, name))
            spans.append(korean[chosen])
            targets.append(self.targets[name][torch.from_numpy(chosen).to(DEVICE)])
        return np.concatenate(spans), torch.cat(targets).float()

    def kept(self) -> tuple[Spans, Tensor]:
        """English spans and their vectors."""
        chosen = self.pick(len(self.english), self.settings.english)
        return self.columns["english/texts"][chosen], self.english[
            torch.from_numpy(chosen).to(DEVICE)
        ].float()

    def pairs(self) -> tuple[Spans, Spans, Spans, Tensor]:
        """Left, right and wrong spans of one set, and which rights are right for other rows too."""
        name = self.names[self.rng.choice(len(self.names), p=self.shares)]
        count = len(self.columns[f"pair/{name}/left"])
        chosen = self.rng.choice(count, min(self.settings.pairs, count), replace=False)
        left, right, group = (
            self.columns[f"pair/{name}/{part}"][chosen] for part in ("left", "right", "group")
        )
        wrong = np.empty((0, 2), np.int32)
        if f"pair/{name}/wrong" in self.columns:
            wrong = self.columns[f"pair/{name}/wrong"][chosen]
            wrong = wrong[wrong[:, 0] >= 0]
        same = (group[:, None] == group[None]) | (right[:, 0][:, None] == right[:, 0][None])
        if name in SYMMETRIC and self.rng.random() < 0.5:
            left, right = right, left
        return left, right, wrong, torch.from_numpy(same).to(DEVICE)

    def sts(self) -> tuple[Spans, Spans, Tensor]:
        """Pairs of STSb and KorSTS, a quarter of them across languages, and their scores."""
        size = self.settings.sts
        chosen = self.pick(len(self.columns["sts/score"]), size)
        language = (self.rng.random(size) < 0.75).astype(int)  # 0 English, 1 Korean
        other = np.where(self.rng.random(size) < 0.75, language, 1 - language)
        left, right = (
            np.stack([self.columns[f"sts/en/{side}"], self.columns[f"sts/ko/{side}"]])
            for side in ("left", "right")
        )
        scores = torch.from_numpy(self.columns["sts/score"][chosen]).to(DEVICE)
        return left[language, chosen], right[other, chosen], scores


def step_losses(student: nn.Module, batches: Batches) -> dict[str, Tensor]:
    """The weighted losses of one batch; all of its texts are encoded at once."""
    settings = batches.settings
    parallel, parallel_targets = batches.parallel()
    english, english_targets = batches.kept()
    parts = [english]
    if settings.pairs_weight:
        left, right, wrong, same = batches.pairs()
        parts += [left, np.concatenate([right, wrong])]
    if settings.sts_weight:
        *sts, scores = batches.sts()
        parts += sts
    korean = batches.file.sequences(parallel, MAX_TOKENS)
    korean = drop_tokens(*korean, settings.token_dropout, batches.rng)
    rest = batches.file.sequences(np.concatenate(parts), MAX_TOKENS)
    packed = Packed(*(np.concatenate(both) for both in zip(korean, rest, strict=True)))
    vectors = mean_vectors(student(packed), packed)
    korean_vectors, *others = vectors.split([len(parallel), *map(len, parts)])
    close = parallel_targets @ parallel_targets.T > 0.95  # translations of nearly the same sentence
    losses = {
        "cosine": settings.cosine_weight * cosine_distance(korean_vectors, parallel_targets),
        "softmax": settings.softmax_weight
        * in_batch_softmax(settings.scale * korean_vectors @ parallel_targets.T, close),
        "english": settings.english_weight * cosine_distance(others[0], english_targets),
    }
    if settings.pairs_weight:
        logits = settings.scale * others[1] @ others[2].T
        backward = logits[:, : len(left)].T
        both = in_batch_softmax(logits, same) + in_batch_softmax(backward, same)
        losses["pairs"] = settings.pairs_weight * both
    if settings.sts_weight:
        cosines = (others[-2] * others[-1]).sum(dim=-1)
        losses["sts"] = settings.sts_weight * cosent(settings.scale * cosines, scores)
    return losses


def train(settings: Settings, work: Path, *, small: bool) -> None:
    rng = seeded(settings.seed)
    teacher_weights, student_weights = starting_weights(work)
    file, evaluator = TokenFile(work / "backbone.npz"), Evaluator(work / "dev.npz", small=small)
    for texts in (file, evaluator.file):
        texts.check_rows(len(teacher_weights["word.weight"]), "teacher")
        texts.check_rows(len(student_weights["word.weight"]), "student")
    if small:
        file.columns = {name: column[:200] for name, column in file.columns.items()}
    student, batches = build(student_weights), Batches(file, build(teacher_weights), settings, rng)
    body = [weight for name, weight in student.named_parameters() if name != "word.weight"]
    optimizer = torch.optim.AdamW(
        [
            {"params": [student.word.weight], "lr": settings.table_lr},
            {"params": body, "lr": settings.body_lr},
        ],
        betas=(0.9, 0.98),
        weight_decay=0.0,
        fused=DEVICE.type == "cuda",
    )
    schedule = Schedule(optimizer, warmup=settings.warmup, min_steps=100)
    log = LossLog(settings.name)
    for step, done in steps(settings.seconds, settings.max_steps):
        schedule.update(step, done)
        losses = step_losses(student, batches)
        optimizer.zero_grad(set_to_none=True)
        sum(losses.values()).backward()
        student.word.weight.grad[:ENGLISH_PIECES] = 0
        nn.utils.clip_grad_norm_(body, 1.0)
        optimizer.step()
        log.add(losses)
    seconds = log.seconds
    save_file(student.state_dict(), work / f"backbone-{settings.name}.safetensors")
    results = evaluator.bi(student)
    write_result(
        work,
        kind="backbone",
        name=settings.name,
        steps=log.steps,
        seconds=round(seconds, 1),
        **means(results),
        settings=asdict(settings),
        results=results,
    )


if __name__ == "__main__":
    main()
