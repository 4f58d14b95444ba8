"""Every saved model has equal scores in sentence-transformers, or a warning says why not."""

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from tests.conftest import SENTENCES

import tercet
from tercet.errors import CompatibilityWarning
from tercet.formats.delta import save_delta
from tercet.scorers.tower import Dense, Normalize
from tercet.settings.models import ModelSpec

Build = Callable[[Path], Any]
FolderOf = Callable[[str], Path]

TOLERANCE = 1e-5
CONTEXTS, CANDIDATES = SENTENCES, SENTENCES[::-1]


def bi(*kinds: str, layers: tuple[torch.nn.Module, ...] = (), **settings: Any) -> Build:
    def build(folder: Path) -> tercet.BiEncoder:
        pooling = tercet.PoolingConfig(kinds=kinds or ("mean",))  # type: ignore[arg-type]
        scorer = tercet.BiEncoder.from_backbone(
            folder, config=tercet.BiConfig(**settings), pooling=pooling, max_tokens=12, device="cpu"
        )
        scorer.context_tower.layers.extend(layers)
        return moved(scorer)

    return build


def poly(**settings: Any) -> Build:
    config = tercet.PolyConfig(codes=4, **settings)
    return lambda folder: tercet.PolyEncoder.from_backbone(folder, config=config, device="cpu")


def cross(**settings: Any) -> Build:
    config = tercet.CrossConfig(**settings)
    return lambda folder: moved(tercet.CrossEncoder.from_backbone(folder, config=config, device="cpu"))


def calibrated(build: Build) -> Build:
    def scorer(folder: Path) -> Any:
        made = build(folder)
        pairs = [tercet.Pair(left, right, float(left == right)) for left in SENTENCES for right in SENTENCES]
        tercet.calibrate(made, pairs)
        return made

    return scorer


def moved(scorer: Any) -> Any:
    """The scorer with other weights, so that towers, biases and layers differ."""
    torch.manual_seed(5)
    with torch.no_grad():
        for weight in scorer.parameters():
            weight += 0.1 * torch.randn_like(weight)
    return scorer


DENSE = Dense(torch.nn.Linear(16, 8), torch.nn.Tanh())

EQUAL: dict[str, Build] = {
    "bi-one-tower": bi(),
    "bi-two-towers": bi(towers=2),
    "bi-dot": bi(similarity="dot"),
    "bi-prompts": bi(context_prompt="old house ", candidate_prompt="never "),
    "bi-two-towers-prompts": bi("first", towers=2, context_prompt="old house ", candidate_prompt="never "),
    "bi-two-poolings": bi("max", "mean"),
    "bi-dense": bi(layers=(DENSE, Normalize())),
    "bi-calibrated": calibrated(bi()),
    "cross-linear": cross(),
    "cross-dense": cross(head="dense", activation="sigmoid"),
    "cross-native": cross(head="native", activation="tanh"),
    "cross-labels": cross(num_labels=3, labels=("a", "b", "c"), score_class=1),
    "cross-native-labels": cross(head="native", num_labels=3, activation="softmax", score_class=1),
    "cross-calibrated": calibrated(cross(activation="sigmoid")),
    "cross-compare": cross(head="compare"),
    "cross-compare-sigmoid": cross(head="compare", activation="sigmoid"),
    "cross-compare-symmetric": cross(head="compare", activation="sigmoid", symmetric=True),
    "cross-separate": cross(head="compare", cross_text_weight=0.05),
    "packaged-bi": lambda _: tercet.load("bi", device="cpu"),
    "packaged-cross": lambda _: tercet.load("cross", device="cpu"),
}

LIMITED: dict[str, tuple[Build, str]] = {
    "bi-mean-first": (bi("mean_first"), "does not load in .*: the pooling mean_first is unknown there"),
    "poly": (poly(), "does not load in .*: poly-encoders are unknown there"),
    "poly-one-tower": (
        poly(towers=1, symmetric=True),
        "does not load in .*: poly-encoders are unknown there",
    ),
    "cross-symmetric": (cross(symmetric=True), "scores differently in .*: average predict of both orders"),
    "cross-native-symmetric": (cross(head="native", symmetric=True), "scores differently in .*: average"),
}


def our_scores(scorer: Any) -> Any:
    if scorer.kind == "cross":
        return scorer.classify(CONTEXTS, CANDIDATES)
    return scorer.score_many(CONTEXTS, CANDIDATES)


def their_scores(folder: Path) -> Any:
    """The scores by the code in the folder's card."""
    code = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text("utf-8"), flags=re.DOTALL)[1]
    *start, last = code.strip().replace('"FOLDER"', f'"{folder}", device="cpu"').splitlines()
    names: dict[str, Any] = {"contexts": CONTEXTS, "candidates": CANDIDATES}
    exec("\n".join([*start, f"scores = {last}"]), names)
    scores = np.asarray(names["scores"])
    return scores[:, None] if scores.ndim == 1 else scores


@pytest.mark.filterwarnings("ignore::tercet.errors.TruncationWarning")  # both truncate at 12 tokens
@pytest.mark.parametrize("name", EQUAL)
def test_the_code_in_the_card_has_equal_scores(name: str, tiny_folder: FolderOf, tmp_path: Path) -> None:
    ours = EQUAL[name](tiny_folder("bert"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", CompatibilityWarning)
        folder = ours.save(tmp_path / "model")
    np.testing.assert_allclose(their_scores(folder), our_scores(ours), rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("name", LIMITED)
def test_a_model_that_has_other_scores_there_warns_and_its_card_says_why(
    name: str, tiny_folder: FolderOf, tmp_path: Path
) -> None:
    build, reason = LIMITED[name]
    with pytest.warns(CompatibilityWarning, match=reason) as caught:
        folder = build(tiny_folder("bert")).save(tmp_path / "model")
    assert caught[0].filename == __file__
    assert re.search(reason, (folder / "README.md").read_text("utf-8"))


def test_the_mean_of_both_orders_is_the_score_of_a_symmetric_model(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    ours = cross(symmetric=True)(tiny_folder("bert"))
    theirs = CrossEncoder(str(ours.save(tmp_path / "model")), device="cpu")
    there, back = (
        theirs.predict(list(zip(*pair, strict=True)))
        for pair in ((CONTEXTS, CANDIDATES), (CANDIDATES, CONTEXTS))
    )
    np.testing.assert_allclose(
        (there + back) / 2, ours.score_pairs(CONTEXTS, CANDIDATES), rtol=TOLERANCE, atol=TOLERANCE
    )


def test_joined_turns_have_the_score_of_the_dialogue(tiny_folder: FolderOf, tmp_path: Path) -> None:
    ours = bi(turn_separator=" never ")(tiny_folder("bert"))
    theirs = SentenceTransformer(str(ours.save(tmp_path / "model")), device="cpu")
    vectors = theirs.encode_query(["a dog never old house"])
    np.testing.assert_allclose(ours.encode([["a dog", "old house"]], side="context"), vectors, atol=TOLERANCE)
    assert "Join the turns of a context with ' never ' first." in (tmp_path / "model/README.md").read_text()


def test_a_comparison_head_saved_by_sentence_transformers_loads_again(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    ours = cross(head="compare")(tiny_folder("bert"))
    folder = str(ours.save(tmp_path / "ours"))
    CrossEncoder(folder, trust_remote_code=True, device="cpu").save(str(tmp_path / "theirs"))
    loaded = tercet.load(tmp_path / "theirs", device="cpu")
    np.testing.assert_array_equal(our_scores(loaded), our_scores(ours))


def test_a_prompt_of_sentence_transformers_precedes_the_context(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    ours = cross(head="compare")(tiny_folder("bert"))
    theirs = CrossEncoder(str(ours.save(tmp_path / "ours")), trust_remote_code=True, device="cpu")
    scores = theirs.predict([("a dog", "old house")], prompt="never ")
    np.testing.assert_allclose(scores, ours.score("never a dog", ["old house"]), atol=TOLERANCE)


def test_the_card_of_a_delta_says_how_to_write_a_complete_model(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    spec = ModelSpec(kind="bi", source=str(tiny_folder("bert")))
    folder = save_delta(tercet.BiEncoder.from_spec(spec, device="cpu"), spec, tmp_path / "delta")
    assert 'tercet.load("FOLDER").save("COMPLETE")' in (folder / "README.md").read_text("utf-8")
