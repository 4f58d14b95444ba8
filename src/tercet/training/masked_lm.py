"""Pre-training tasks: masked language modelling and next-text prediction."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from transformers import AutoModelForMaskedLM, BertConfig, BertForMaskedLM, PreTrainedModel

from tercet.encoders.encoder import Encoder
from tercet.errors import ModelError
from tercet.formats.transformer import check_tensors, read_transformer
from tercet.text.pairs import PairIds, PairTokenizer
from tercet.text.tokenizer import Tokenizer
from tercet.training.learner import locations_of
from tercet.training.tokenized import TokenizedExample

Task: TypeAlias = Literal["masked", "next"]
TASKS: tuple[Task, Task] = ("masked", "next")

HEADS: dict[str, Callable[[Any], Callable[[Tensor], Tensor]]] = {
    "bert": lambda model: model.cls,
    "camembert": lambda model: model.lm_head,
    "modernbert": lambda model: nn.Sequential(model.head, model.decoder),
    "roberta": lambda model: model.lm_head,
    "xlm-roberta": lambda model: model.lm_head,
}
"""The masked-LM head of each architecture."""

NOT_MASKED = -100
"""The label that cross-entropy ignores."""

EVAL_SEED = 0


class Masks(NamedTuple):
    """Token ids ``[N]`` with masks, and the original ids of masked tokens, ``NOT_MASKED`` elsewhere."""

    ids: Tensor
    labels: Tensor


class MaskedLanguageModel(nn.Module):
    """The two tasks of Humeau et al. (2020) over pairs of texts, in alternating batches."""

    def __init__(
        self, transformer: PreTrainedModel, tokenizer: Tokenizer, *, mask_share: float, seed: int
    ) -> None:
        super().__init__()
        if transformer.config.model_type not in HEADS:
            raise ModelError(f"pre-training supports {', '.join(HEADS)}, got {transformer.config.model_type}")
        self.transformer = transformer
        self.encoder = Encoder(body_of(transformer))
        self.tokenizer = tokenizer
        self.pair_tokenizer = PairTokenizer(tokenizer, min_context_tokens=tokenizer.max_tokens // 2)
        self.mask_share = mask_share
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.follows = nn.Linear(self.encoder.width, 1)
        self._head = HEADS[transformer.config.model_type](transformer)
        known = tokenizer.pretrained
        self._special = torch.tensor(sorted({*known.all_special_ids} - {known.unk_token_id}))

    def forward(self, task: Task, examples: Sequence[TokenizedExample]) -> dict[str, Tensor]:
        """The loss of a batch."""
        if self.training:
            return {"loss": self._loss(task, examples)}
        with torch.random.fork_rng():  # every evaluation masks the same tokens
            torch.manual_seed(EVAL_SEED)
            return {"loss": self._loss(task, examples)}

    def locations(self, task: Task, examples: Sequence[TokenizedExample]) -> str:
        """The rows that the examples of a batch come from."""
        return locations_of(examples)

    def _loss(self, task: Task, examples: Sequence[TokenizedExample]) -> Tensor:
        if task == "masked":
            pairs = [self._pair(example, example.candidates[0]) for example in examples]
            return self._masked_loss(pairs)
        candidates, right = swap_half([example.candidates[0] for example in examples])
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
            return (0 * states).sum()  # only special tokens
        logits = self._head(states[mask][wanted])  # only for masked tokens: a seventh of the work
        return cross_entropy(logits.float(), labels[wanted])

    def _pair(self, example: TokenizedExample, candidate: Sequence[int]) -> PairIds:
        return self.pair_tokenizer.pair(example.context, candidate)

    def _segments(self, pairs: Sequence[PairIds]) -> list[list[int]] | None:
        used = self.pair_tokenizer.has_segments and self.encoder.segments > 1
        return [pair.segments for pair in pairs] if used else None


def body_of(transformer: PreTrainedModel) -> PreTrainedModel:
    """The transformer without its head."""
    body: Any = transformer.base_model
    return cast("PreTrainedModel", body)


def mask_tokens(ids: Tensor, *, special: Tensor, mask_id: int, vocabulary: int, share: float) -> Masks:
    """Mask a share of the tokens that are not special, at least one.

    80% are replaced by the mask token, 10% by a random token, 10% stay as they are (Devlin et al., 2019).
    """
    free = ~torch.isin(ids, special)
    chosen = free & (torch.rand(len(ids)) < share)
    if bool(free.any()) and not bool(chosen.any()):
        chosen[int(free.float().multinomial(1))] = True
    labels = ids.where(chosen, NOT_MASKED)
    draw = torch.rand(len(ids))
    shown = ids.masked_fill(chosen & (draw < 0.8), mask_id)
    other = chosen & (draw >= 0.8) & (draw < 0.9)
    return Masks(torch.randint(vocabulary, ids.shape).where(other, shown), labels)


def swap_half(candidates: Sequence[Sequence[int]]) -> tuple[list[Sequence[int]], Tensor]:
    """The candidates, a random half of them exchanged between rows, and ``[B]``: 1 for those that are right.

    A row that receives a copy of its own candidate counts as right.
    """
    order = torch.randperm(len(candidates)).tolist()
    moved = order[: len(candidates) // 2] if len(candidates) > 3 else order
    given = list(candidates)
    for position, other in zip(moved, [*moved[1:], *moved[:1]], strict=True):
        given[position] = candidates[other]
    same = [list(now) == list(before) for now, before in zip(given, candidates, strict=True)]
    return given, torch.tensor(same, dtype=torch.float32)


def read_masked_lm(folder: Path, *, seed: int) -> PreTrainedModel:
    """The transformer in a folder with its masked-LM head, or with a new one if the folder has none."""
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
