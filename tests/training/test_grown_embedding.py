"""A word table whose known rows are frozen and whose new rows are trained."""

import torch
from torch import nn

import tercet
from tercet.settings.training import TrainingConfig
from tercet.training.grown_embedding import GrownEmbedding, grow, merge
from tercet.training.optimizers import make_optimizer

IDS = torch.tensor([[0, 4, 5], [6, 1, 5]])


def grown() -> GrownEmbedding:
    generator = torch.Generator().manual_seed(0)
    known = nn.Embedding.from_pretrained(torch.randn(5, 3, generator=generator), freeze=False)
    return GrownEmbedding(known, torch.randn(2, 3, generator=generator))


def test_known_and_new_tokens_have_their_rows() -> None:
    table = grown()
    assert torch.equal(table(IDS), table.weight[IDS])


def test_only_new_rows_have_gradients() -> None:
    table = grown()
    table(IDS).sum().backward()
    assert table.known.weight.grad is None
    assert table.new.grad is not None
    assert table.new.grad.tolist() == [[2.0] * 3, [1.0] * 3]


def test_training_does_not_change_known_words(tiny: tercet.BiEncoder) -> None:
    transformer = tiny.backbone.transformer
    before = transformer.get_input_embeddings().weight.detach().clone()
    grow(transformer, torch.ones(2, before.shape[1]))
    optimizer = make_optimizer(tiny, TrainingConfig(learning_rate=0.1, weight_decay=0.5))
    tiny.train()
    for _ in range(3):
        tiny.context_codes([[0, 5, len(before), 6, 2]]).vectors.sum().backward()
        optimizer.step()
    merge(transformer)
    after = transformer.get_input_embeddings().weight
    assert isinstance(transformer.get_input_embeddings(), nn.Embedding)
    assert torch.equal(after[: len(before)], before)
    assert not torch.equal(after[len(before)], torch.ones(before.shape[1]))
    assert torch.equal(after[len(before) + 1], torch.ones(before.shape[1]))  # no decay either
    assert transformer.config.vocab_size == len(after) == len(before) + 2


def test_merging_does_not_change_the_vectors(tiny: tercet.BiEncoder) -> None:
    transformer = tiny.backbone.transformer
    count = len(transformer.get_input_embeddings().weight)
    grow(transformer, torch.ones(1, tiny.width))
    ids = [[0, 5, count, 2]]
    before = tiny.candidate_vectors(ids)
    merge(transformer)
    assert torch.equal(tiny.candidate_vectors(ids), before)


def test_new_words_have_their_own_learning_rate(tiny: tercet.BiEncoder) -> None:
    grow(tiny.backbone.transformer, torch.ones(1, tiny.width))
    config = TrainingConfig(learning_rate=1e-4, vocabulary_learning_rate=3e-3)
    optimizer = make_optimizer(tiny, config)
    rates = {id(weight): group["lr"] for group in optimizer.param_groups for weight in group["params"]}
    for name, weight in tiny.named_parameters():
        if weight.requires_grad:
            assert rates[id(weight)] == (3e-3 if name.endswith("word_embeddings.new") else 1e-4), name
