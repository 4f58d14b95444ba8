"""Pre-training: the two tasks, the vocabulary, and a model that transformers can load."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

import tercet
from tercet.errors import DataError, InputError, ModelError
from tercet.settings.pretrain import read_pretrain_recipe
from tercet.settings.training import BatchConfig
from tercet.training.batches import LengthBatches
from tercet.training.masked_lm import NOT_MASKED, mask_tokens, swap_half
from tercet.training.pretrain import Alternating, run_pretraining
from tercet.training.tokenized import TokenizedExample
from tercet.training.vocabulary import make_tokenizer

FolderOf = Callable[[str], Path]

RECIPES = Path(__file__).parent.parent.parent / "recipes"
SPECIAL = torch.tensor([0, 1, 2])


def masked(ids: torch.Tensor, share: float = 0.15) -> Any:
    return mask_tokens(ids, special=SPECIAL, mask_id=2, vocabulary=1000, share=share)


def test_tokens_are_masked_as_in_bert() -> None:
    torch.manual_seed(0)
    ids = torch.randint(3, 1000, (100_000,))
    found = masked(ids)
    chosen = found.labels != NOT_MASKED
    assert chosen.float().mean() == pytest.approx(0.15, abs=0.005)
    assert torch.equal(found.labels[chosen], ids[chosen])
    assert torch.equal(found.ids[~chosen], ids[~chosen])
    assert (found.ids[chosen] == 2).float().mean() == pytest.approx(0.8, abs=0.02)
    kept = found.ids[chosen] == ids[chosen]
    assert kept.float().mean() == pytest.approx(0.1, abs=0.02)


def test_special_tokens_are_never_masked_and_one_other_token_always_is() -> None:
    torch.manual_seed(0)
    for _ in range(50):
        found = masked(torch.tensor([0, 7, 1, 8, 1]), share=1e-6)
        chosen = (found.labels != NOT_MASKED).nonzero().flatten().tolist()
        assert chosen in ([1], [3])


def test_a_batch_of_special_tokens_has_no_masks() -> None:
    assert bool((masked(torch.tensor([0, 1, 2, 1])).labels == NOT_MASKED).all())


def test_half_of_the_candidates_are_swapped() -> None:
    torch.manual_seed(0)
    texts = [[n] for n in range(20)]
    given, right = swap_half(texts)
    assert sorted(given) == texts
    assert right.sum() == 10
    assert [now == before for now, before in zip(given, texts, strict=True)] == right.bool().tolist()


def test_a_copy_of_the_candidate_counts_as_right() -> None:
    assert swap_half([[1], [1]])[1].tolist() == [1, 1]
    assert swap_half([[1], [2]])[1].tolist() == [0, 0]


def test_a_vocabulary_preserves_hangul_syllables() -> None:
    tokenizer = make_tokenizer(
        ["안녕하세요 반갑습니다", "The Cat"] * 5, size=120, lowercase=True, max_tokens=16
    )
    assert "안" in "".join(tokenizer.tokenize("안녕"))
    assert tokenizer.decode(tokenizer("the cat")["input_ids"], skip_special_tokens=True) == "the cat"
    assert tokenizer("a", "b")["token_type_ids"][-1] == 1


def test_a_vocabulary_needs_text() -> None:
    with pytest.raises(DataError, match="there is no text to learn a vocabulary from"):
        make_tokenizer([], size=100, lowercase=True, max_tokens=16)


def pretrain(folder: Path, *changes: str, **options: Any) -> dict[str, Any]:
    small = ["training.epochs=2", "model.width=32", "model.vocabulary=400", *changes]
    recipe = read_pretrain_recipe(RECIPES / "pretrain-sample.toml", small)
    return run_pretraining(recipe, folder, device="cpu", **options)


def test_a_new_model_learns_and_loads_as_backbone_and_as_masked_lm(tmp_path: Path) -> None:
    result = pretrain(tmp_path / "run", "training.epochs=6")
    lines = (tmp_path / "run" / "metrics.jsonl").read_text()
    assert lines.count("eval_loss") >= 6
    assert result["dev"]["loss"] < 3.5  # untrained, about 6 for masked tokens and 0.7 for next texts
    folder = tmp_path / "run" / "model"
    _, report = AutoModelForMaskedLM.from_pretrained(folder, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert AutoTokenizer.from_pretrained(folder).mask_token == "[MASK]"
    scorer = tercet.PolyEncoder.from_backbone(folder, config=tercet.PolyConfig(codes=4), device="cpu")
    assert len(scorer.rank("is it raining", ["yes", "take a coat"])) == 2


@pytest.mark.parametrize("architecture", ["bert", "roberta", "modernbert"])
def test_pretraining_continues_from_existing_weights(
    architecture: str, tiny_folder: FolderOf, tmp_path: Path
) -> None:
    source = tiny_folder(architecture)
    pretrain(tmp_path / "run", f"model.source={source}", "model.max_tokens=32")
    start, end = (
        tercet.BiEncoder.from_backbone(path, device="cpu") for path in (source, tmp_path / "run/model")
    )
    assert start.tokenizer.identity[2] == end.tokenizer.identity[2]
    before, after = (scorer.encode_candidates(["a dog ran"]) for scorer in (start, end))
    assert 0 < abs(before - after).max() < 2  # changed, but not initialized anew
    assert AutoModelForMaskedLM.from_pretrained(tmp_path / "run" / "model").config.model_type == architecture


def test_an_unsupported_architecture_is_refused(tiny_folder: FolderOf, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"pre-training supports bert, .*, got mpnet"):
        pretrain(tmp_path / "run", f"model.source={tiny_folder('mpnet')}", "model.max_tokens=32")


def test_the_tasks_alternate_and_are_exchanged_in_the_next_epoch() -> None:
    examples = [TokenizedExample([1] * 5, ([2],), ()) for _ in range(12)]
    inner = LengthBatches(examples, BatchConfig(batch_size=2), distinct_answers=False)
    batches = Alternating(inner)
    first = [batch[0][0] for batch in batches]
    assert first == ["masked", "next"] * 3
    inner.set_epoch(1)
    assert [batch[0][0] for batch in batches] == ["next", "masked"] * 3
    assert all(len({task for task, _ in batch}) == 1 for batch in batches)


def test_the_same_seed_yields_the_same_model(tmp_path: Path) -> None:
    for name in ("a", "b"):
        pretrain(tmp_path / name)
    left, right = (
        AutoModelForMaskedLM.from_pretrained(tmp_path / name / "model").state_dict() for name in ("a", "b")
    )
    assert all(torch.equal(left[name], right[name]) for name in left)


def test_documents_are_read_as_pairs_of_sentences(tmp_path: Path) -> None:
    lines = [f"Cat {n} sat. Dog {n} ran. Then it rained {n} days.\n" for n in range(30)]
    (tmp_path / "text.txt").write_text("".join(lines))
    result = pretrain(
        tmp_path / "run", f'data.train.files="{tmp_path / "text.txt"}"', "data.train.reader=documents"
    )
    assert result["train"]["examples"] > 20


def test_every_pretrain_recipe_uses_the_betas_of_humeau_et_al() -> None:
    for file in RECIPES.rglob("*pretrain*.toml"):
        assert read_pretrain_recipe(file).training.betas == (0.9, 0.98)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("model.vocabulary=1", "vocabulary must be at least 100"),
        ("data=3", r"\[data\] must be a table, got 3"),
        ("model.width=33", "width must be a multiple of heads"),
        ("model.mask_share=1", "mask_share must be between 0 and 1"),
        ("model.codes=3", "unknown setting 'codes'"),
        ("objective.kind=masked", "unknown setting 'objective'"),
    ],
)
def test_an_error_in_a_recipe_names_the_setting(change: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_pretrain_recipe(RECIPES / "pretrain-sample.toml", [change])
