"""Cross-encoders exchanged with transformers and sentence-transformers have equal scores."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder
from tests.conftest import ARCHITECTURES, PADDED_ARCHITECTURES, SENTENCES, make_tokenizer
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

import tercet
from tercet.errors import TruncationWarning
from tercet.formats.native_head import HEAD_LAYERS

FolderOf = Callable[[str], Path]

TOLERANCE = 1e-5
PAIRS = [*zip(SENTENCES, SENTENCES[::-1], strict=True), (SENTENCES[0], SENTENCES[0])]
CONTEXTS, CANDIDATES = ([pair[side] for pair in PAIRS] for side in (0, 1))


def their_folder(folder: Path, architecture: str, *, labels: int = 1, **settings: Any) -> Path:
    """The folder of a random sequence classifier with large weights, so that pairs have different scores."""
    tokenizer = make_tokenizer()
    sizes: dict[str, Any] = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    if architecture == "distilbert":
        sizes = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}
    if architecture in ("electra", "albert"):
        sizes["embedding_size"] = 8
    config = AutoConfig.for_model(
        architecture,
        vocab_size=len(tokenizer),
        pad_token_id=1,
        initializer_range=0.5,
        max_position_embeddings=50,
        num_labels=labels,
        **sizes,
        **settings,
    )
    if architecture in ("albert", "bert", "electra"):
        tokenizer.init_kwargs["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    torch.manual_seed(3)
    model = AutoModelForSequenceClassification.from_config(config)
    with torch.no_grad():  # biases start at 0 and norms at 1, so a test would not notice that they are lost
        for weight in model.parameters():
            weight += 0.1 * torch.randn_like(weight)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def their_logits(folder: Path) -> np.ndarray:
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(CONTEXTS, CANDIDATES, padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        return model(**inputs).logits.numpy()


def test_every_architecture_with_a_native_head_is_tested() -> None:
    assert set(HEAD_LAYERS) == {*ARCHITECTURES, *PADDED_ARCHITECTURES, "albert"}


@pytest.mark.parametrize("labels", [1, 3])
@pytest.mark.parametrize("architecture", sorted(HEAD_LAYERS))
def test_classifiers_of_every_architecture_load_and_save_with_equal_scores(
    architecture: str, labels: int, tmp_path: Path
) -> None:
    theirs = their_folder(tmp_path / "theirs", architecture, labels=labels)
    ours = tercet.load(theirs, device="cpu")
    assert isinstance(ours, tercet.CrossEncoder)
    assert ours.config.activation == ("sigmoid" if labels == 1 else "identity")
    logits = their_logits(theirs)
    expected = 1 / (1 + np.exp(-logits)) if labels == 1 else logits
    np.testing.assert_allclose(ours.classify(CONTEXTS, CANDIDATES), expected, rtol=TOLERANCE, atol=TOLERANCE)
    peer = CrossEncoder(str(theirs), device="cpu").predict(PAIRS).reshape(len(PAIRS), labels)
    np.testing.assert_allclose(ours.classify(CONTEXTS, CANDIDATES), peer, rtol=TOLERANCE, atol=TOLERANCE)
    back = ours.save(tmp_path / "ours")
    loaded = tercet.load(back, device="cpu")
    np.testing.assert_array_equal(loaded.classify(CONTEXTS, CANDIDATES), ours.classify(CONTEXTS, CANDIDATES))
    np.testing.assert_allclose(their_logits(back), logits, rtol=TOLERANCE, atol=TOLERANCE)
    reloaded = CrossEncoder(str(back), device="cpu").predict(PAIRS).reshape(len(PAIRS), labels)
    np.testing.assert_allclose(reloaded, peer, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_classifiers_with_both_poolings_of_modernbert_load(pooling: str, tmp_path: Path) -> None:
    theirs = their_folder(tmp_path / "theirs", "modernbert", labels=3, classifier_pooling=pooling)
    ours = tercet.load(theirs, device="cpu").classify(CONTEXTS, CANDIDATES)
    np.testing.assert_allclose(ours, their_logits(theirs), rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("activation", ["Identity", "Sigmoid", "Tanh"])
@pytest.mark.parametrize("labels", [1, 3])
def test_folders_of_sentence_transformers_load_with_equal_scores(
    activation: str, labels: int, tmp_path: Path
) -> None:
    bare = their_folder(tmp_path / "bare", "bert", labels=labels)
    theirs = CrossEncoder(str(bare), activation_fn=getattr(torch.nn, activation)(), device="cpu")
    theirs.save(str(tmp_path / "theirs"))
    ours = tercet.load(tmp_path / "theirs", device="cpu")
    assert ours.config.activation == activation.lower()
    expected = theirs.predict(PAIRS).reshape(len(PAIRS), labels)
    np.testing.assert_allclose(ours.classify(CONTEXTS, CANDIDATES), expected, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize(
    "settings",
    [
        {"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"},
        {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}},
    ],
)
def test_activations_in_folders_of_older_sentence_transformers_are_found(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    theirs = their_folder(tmp_path / "theirs", "bert", **settings)
    ours = tercet.load(theirs, device="cpu").score_pairs(CONTEXTS, CANDIDATES)
    peer = CrossEncoder(str(theirs), device="cpu").predict(PAIRS)
    np.testing.assert_allclose(ours, peer, rtol=TOLERANCE, atol=TOLERANCE)
    np.testing.assert_allclose(ours, their_logits(theirs)[:, 0], rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("head", ["linear", "dense", "native"])
@pytest.mark.parametrize("labels", [1, 3])
@pytest.mark.parametrize("architecture", ["bert", "distilbert", "roberta"])
def test_our_folders_load_in_sentence_transformers_with_equal_scores(
    head: str, labels: int, architecture: str, tiny_folder: FolderOf, tmp_path: Path
) -> None:
    config = tercet.CrossConfig(head=head, num_labels=labels, activation="sigmoid")  # type: ignore[arg-type]
    ours = tercet.CrossEncoder.from_backbone(tiny_folder(architecture), config=config, device="cpu")
    with torch.no_grad():
        for weight in ours.head.parameters():
            weight += torch.randn_like(weight)
    theirs = CrossEncoder(str(ours.save(tmp_path / "ours")), device="cpu")
    expected = theirs.predict(PAIRS).reshape(len(PAIRS), labels)
    np.testing.assert_allclose(ours.classify(CONTEXTS, CANDIDATES), expected, rtol=TOLERANCE, atol=TOLERANCE)


def test_names_of_classes_are_loaded_and_saved(tmp_path: Path) -> None:
    names = {0: "contradiction", 1: "entailment", 2: "neutral"}
    theirs = their_folder(tmp_path / "theirs", "bert", labels=3, id2label=names)
    ours = tercet.load(theirs, device="cpu")
    assert ours.config.labels == tuple(names.values())
    back = AutoConfig.from_pretrained(ours.save(tmp_path / "ours"))
    assert back.id2label == names


def test_a_pair_with_a_long_candidate_is_truncated_as_in_sentence_transformers(tmp_path: Path) -> None:
    theirs = their_folder(tmp_path / "theirs", "bert")
    long = " ".join(SENTENCES * 3)
    with pytest.warns(TruncationWarning):
        ours = tercet.load(theirs, device="cpu").score_pairs(["a dog ran"], [long])
    peer = CrossEncoder(str(theirs), device="cpu").predict([("a dog ran", long)])
    np.testing.assert_allclose(ours, peer, rtol=TOLERANCE, atol=TOLERANCE)
