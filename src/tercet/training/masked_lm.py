"""A transformer that guesses hidden tokens and whether two texts follow each other (pre-training)."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from transformers import AutoModelForMaskedLM, BertConfig, BertForMaskedLM, PreTrainedModel

from tercet.errors import ModelError
from tercet.models.encoder import Encoder, check_tensors, read_transformer
from tercet.models.pairs import PairIds, PairTokenizer
from tercet.models.tokenizer import Tokenizer
from tercet.training.examples import Example
from tercet.training.learner import rows_of

Task: TypeAlias = Literal["masked", "next"]
TASKS: tuple[Task, Task] = ("masked", "next")

HEADS: dict[str, Callable[[Any], Callable[[Tensor], Tensor]]] = {
    "bert": lambda model: model.cls,
    "camembert": lambda model: model.lm_head,
    "modernbert": lambda model: nn.Sequential(model.head, model.decoder),
    "roberta": lambda model: model.lm_head,
    "xlm-roberta": lambda model: model.lm_head,
}
"""Where each architecture turns states into tokens."""

NOT_MASKED = -100
"""The label that cross entropy leaves out."""

SEED_OF_LOOKS = 0


class Masks(NamedTuple):
    """Token ids ``[N]`` of which some are hidden, and what was hidden: ``NOT_MASKED`` elsewhere."""

    ids: Tensor
    labels: Tensor


class MaskedLanguageModel(nn.Module):
    """The two tasks of Humeau et al. (2020) over pairs of texts, for one batch of each in turn."""

    def __init__(
        self, transformer: PreTrainedModel, tokenizer: Tokenizer, *, mask_share: float, seed: int
    ) -> None:
        super().__init__()
        if transformer.config.model_type not in HEADS:
            raise ModelError(f"pre-training knows {', '.join(HEADS)}, not {transformer.config.model_type}")
        self.transformer = transformer
        self.encoder = Encoder(body_of(transformer))
        self.tokenizer = tokenizer
        self.pair_tokenizer = PairTokenizer(tokenizer, floor=tokenizer.max_tokens // 2)
        self.mask_share = mask_share
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.follows = nn.Linear(self.encoder.width, 1)
        self._head = HEADS[transformer.config.model_type](transformer)
        known = tokenizer.pretrained
        self._special = torch.tensor(sorted({*known.all_special_ids} - {known.unk_token_id}))

    def forward(self, task: Task, examples: Sequence[Example]) -> dict[str, Tensor]:
        """The loss of a batch."""
        if self.training:
            return {"loss": self._loss(task, examples)}
        with torch.random.fork_rng():  # every look hides the same tokens
            torch.manual_seed(SEED_OF_LOOKS)
            return {"loss": self._loss(task, examples)}

    def rows(self, task: Task, examples: Sequence[Example]) -> str:
        """Where the examples of a batch come from."""
        return rows_of(examples)

    def _loss(self, task: Task, examples: Sequence[Example]) -> Tensor:
        if task == "masked":
            pairs = [self._pair(example, example.candidates[0]) for example in examples]
            return self._masked_loss(pairs)
        candidates, right = half_swapped([example.candidates[0] for example in examples])
        pairs = [self._pair(*each) for each in zip(examples, candidates, strict=True)]
        states = self.encoder([pair.ids for pair in pairs], self._segments(pairs)).states
        return binary_cross_entropy_with_logits(
            self.follows(states[:, 0].float())[:, 0], right.to(states.device)
        )

    def _masked_loss(self, pairs: Sequence[PairIds]) -> Tensor:
        lengths = [len(pair.ids) for pair in pairs]
        ids = torch.tensor([token for pair in pairs for token in pair.ids])
        hidden = mask_tokens(
            ids,
            special=self._special,
            mask_id=int(self.tokenizer.pretrained.mask_token_id),
            vocabulary=self.encoder.vocabulary,
            share=self.mask_share,
        )
        read = [part.tolist() for part in hidden.ids.split(lengths)]
        states, mask = self.encoder.forward(read, self._segments(pairs))
        labels = hidden.labels.to(states.device)
        wanted = labels != NOT_MASKED
        if not bool(wanted.any()):
            return (0 * states).sum()  # nothing but special tokens
        logits = self._head(states[mask][wanted])  # only where something is hidden: a seventh of the work
        return cross_entropy(logits.float(), labels[wanted])

    def _pair(self, example: Example, candidate: Sequence[int]) -> PairIds:
        return self.pair_tokenizer.pair(example.context, candidate)

    def _segments(self, pairs: Sequence[PairIds]) -> list[list[int]] | None:
        used = self.pair_tokenizer.has_segments and self.encoder.segments > 1
        return [pair.segments for pair in pairs] if used else None


def body_of(transformer: PreTrainedModel) -> PreTrainedModel:
    """The transformer without its head."""
    body: Any = transformer.base_model
    return cast("PreTrainedModel", body)


def mask_tokens(ids: Tensor, *, special: Tensor, mask_id: int, vocabulary: int, share: float) -> Masks:
    """Hide a share of the tokens that are not special, at least one if there is any.

    Of ten, eight are behind the mask, one behind another token, one behind itself (Devlin et al., 2019).
    """
    free = ~torch.isin(ids, special)
    chosen = free & (torch.rand(len(ids)) < share)
    if bool(free.any()) and not bool(chosen.any()):
        chosen[int(free.float().multinomial(1))] = True
    labels = ids.where(chosen, NOT_MASKED)
    chance = torch.rand(len(ids))
    shown = ids.masked_fill(chosen & (chance < 0.8), mask_id)
    other = chosen & (chance >= 0.8) & (chance < 0.9)
    return Masks(torch.randint(vocabulary, ids.shape).where(other, shown), labels)


def half_swapped(candidates: Sequence[Sequence[int]]) -> tuple[list[Sequence[int]], Tensor]:
    """The candidates, half of them by chance given to another row, and ``[B]``: 1 for those in their place.

    A text that is handed a copy of itself is in its place.
    """
    order = torch.randperm(len(candidates)).tolist()
    moved = order[: len(candidates) // 2] if len(candidates) > 3 else order
    given = list(candidates)
    for place, other in zip(moved, [*moved[1:], *moved[:1]], strict=True):
        given[place] = candidates[other]
    same = [list(now) == list(before) for now, before in zip(given, candidates, strict=True)]
    return given, torch.tensor(same, dtype=torch.float32)


def read_masked_lm(folder: Path, *, seed: int) -> PreTrainedModel:
    """The transformer in a folder with its masked-LM head, which is new where the folder has none."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        transformer, report = read_transformer(folder, AutoModelForMaskedLM)
    body = [name for name in report.missing if name.startswith(f"{transformer.base_model_prefix}.")]
    check_tensors(folder, missing=[name for name in body if ".pooler." not in name])
    return transformer


def new_masked_lm(
    *, vocabulary: int, width: int, layers: int, heads: int, positions: int, padding: int, seed: int
) -> PreTrainedModel:
    """A BERT with random weights."""
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        max_position_embeddings=positions,
        pad_token_id=padding,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return BertForMaskedLM(config)
