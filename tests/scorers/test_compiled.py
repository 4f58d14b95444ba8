"""Scorers that OpenVINO runs compute what the torch scorers compute, and import no torch."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tests.conftest import SENTENCES
from tests.scorers.test_contract import KINDS
from transformers import AutoTokenizer

import tercet
from tercet.errors import InputError, ModelError, OutputError, UnsupportedModelError
from tercet.formats.array_tokenizer import read_tokenizer_file
from tercet.scorers.cross_scorer import CrossScorer
from tercet.scorers.text_scorer import TextScorer
from tercet.settings.encoding import EncodingConfig

FolderOf = Callable[[str], Path]
TOLERANCE = 2e-5
"""Tiny random models have scores of up to 30."""

CONTEXTS = [SENTENCES[0], ["the old cat", "a cup of tea"], SENTENCES[2] * 20]


@pytest.fixture(scope="module", params=KINDS)
def both(
    request: pytest.FixtureRequest, tiny_folder: FolderOf, tmp_path_factory: pytest.TempPathFactory
) -> tuple[TextScorer, TextScorer]:
    """The same scorer in torch and in OpenVINO."""
    folder = tmp_path_factory.mktemp("saved") / "model"
    KINDS[request.param](tiny_folder("bert"), device="cpu").save(folder)
    return tercet.load(folder, device="cpu"), tercet.load(folder, runtime="openvino")


@pytest.mark.filterwarnings("ignore::tercet.errors.TruncationWarning")
def test_scores_and_truncation_equal_those_of_torch(both: tuple[TextScorer, TextScorer]) -> None:
    expected, found = (each.scores(CONTEXTS, SENTENCES) for each in both)
    np.testing.assert_allclose(found.values, expected.values, rtol=TOLERANCE, atol=TOLERANCE)
    np.testing.assert_array_equal(found.context_truncated, expected.context_truncated)
    np.testing.assert_array_equal(found.candidate_truncated, expected.candidate_truncated)


def test_scores_of_pairs_equal_those_of_torch(both: tuple[TextScorer, TextScorer]) -> None:
    expected, found = (each.score_pairs(SENTENCES, SENTENCES[::-1]) for each in both)
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE)


def test_the_fingerprint_is_that_of_torch(both: tuple[TextScorer, TextScorer]) -> None:
    assert both[1].fingerprint == both[0].fingerprint


def test_scores_do_not_depend_on_the_rest_of_a_batch(both: tuple[TextScorer, TextScorer]) -> None:
    scorer = both[1]
    whole = scorer.score(SENTENCES[0], SENTENCES)
    alone = [scorer.score(SENTENCES[0], [text])[0] for text in SENTENCES]
    np.testing.assert_allclose(alone, whole, rtol=1e-5, atol=1e-5)


def test_threads_can_share_a_compiled_scorer(both: tuple[TextScorer, TextScorer]) -> None:
    scorer = both[1]
    expected = scorer.score(SENTENCES[0], SENTENCES)
    with ThreadPoolExecutor(8) as threads:
        for found in threads.map(lambda _: scorer.score(SENTENCES[0], SENTENCES), range(24)):
            np.testing.assert_array_equal(found, expected)


def test_explanations_equal_those_of_torch(both: tuple[TextScorer, TextScorer]) -> None:
    expected, found = (each.explain(SENTENCES[0], SENTENCES[1]) for each in both)
    assert found.method == expected.method
    assert [each.text for each in found.tokens] == [each.text for each in expected.tokens]
    parts = [[each.contribution for each in one.tokens] for one in (found, expected)]
    np.testing.assert_allclose(parts[0], parts[1], atol=1e-4)
    np.testing.assert_allclose(found.attention, expected.attention, atol=1e-5)


def test_small_batches_change_nothing(both: tuple[TextScorer, TextScorer]) -> None:
    scorer = both[1]
    expected, before = scorer.score(SENTENCES[0], SENTENCES), scorer.encoding
    scorer.encoding = EncodingConfig(cpu_tokens=8)
    try:
        np.testing.assert_allclose(scorer.score(SENTENCES[0], SENTENCES), expected, rtol=1e-5, atol=1e-5)
    finally:
        scorer.encoding = before


def test_a_compiled_scorer_can_be_sent_to_another_process(both: tuple[TextScorer, TextScorer]) -> None:
    sent = ForkingPickler.loads(ForkingPickler.dumps(both[1]))
    expected = both[1].score(SENTENCES[0], SENTENCES)
    np.testing.assert_array_equal(sent.score(SENTENCES[0], SENTENCES), expected)


def test_a_compiled_scorer_can_be_saved(both: tuple[TextScorer, TextScorer], tmp_path: Path) -> None:
    assert tercet.load(both[1].save(tmp_path / "again"), device="cpu").fingerprint == both[0].fingerprint


@pytest.mark.parametrize("name", ["bi", "bi-ko", "poly", "cross"])
def test_packaged_scores_equal_those_of_torch(name: str) -> None:
    texts = ["Where is my parcel?", "It arrives on Tuesday.", "Water it once a week.", "The shop opens at 9."]
    expected = tercet.load(name, device="cpu").score_many(texts, texts)
    found = tercet.load(name, runtime="openvino").score_many(texts, texts)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["bi-ko", "poly", "cross"])
def test_neither_torch_nor_transformers_is_imported(name: str) -> None:
    code = (
        f"import sys, tercet; s = tercet.load({name!r}, runtime='openvino'); s.rank('a', ['b', 'c']); "
        "s.fingerprint; print([each for each in ('torch', 'transformers') if each in sys.modules])"
    )
    path = str(Path(tercet.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {path!r}); {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_bf16_scores_are_near_those_of_fp32() -> None:
    texts = ["Where is my parcel?", "It arrives on Tuesday.", "Water it once a week."]
    exact, half = (tercet.load("bi", runtime="openvino", precision=each) for each in ("fp32", "bf16"))
    np.testing.assert_allclose(half.score_many(texts, texts), exact.score_many(texts, texts), atol=2e-2)


def test_an_architecture_without_a_graph_names_torch(tiny_folder: FolderOf) -> None:
    with pytest.raises(UnsupportedModelError, match='this model is a deberta-v2: use runtime="torch"'):
        tercet.load(tiny_folder("deberta-v2"), runtime="openvino")


def test_another_device_is_refused() -> None:
    with pytest.raises(InputError, match="runs on a CPU, got the device 'cuda'"):
        tercet.load("bi", runtime="openvino", device="cuda")


def test_an_unknown_runtime_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match="runtime must be one of torch, openvino"):
        tercet.load("bi", runtime="onnx")  # type: ignore[call-overload]


def test_the_default_runtime_is_openvino_only_for_folders_that_tercet_wrote(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    folder = tercet.BiEncoder.from_backbone(tiny_folder("bert")).save(tmp_path / "model")
    assert tercet.load(folder).runtime == "openvino"
    assert tercet.load("poly").runtime == "openvino"
    assert tercet.load(folder, device="cpu").runtime == "torch"
    assert tercet.load(tiny_folder("bert")).runtime == "torch"
    with (folder / "config.json").open("a") as file:
        file.write("\n")
    assert tercet.load(folder).runtime == "torch"


def test_the_environment_sets_the_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERCET_RUNTIME", "torch")
    assert tercet.load("bi").runtime == "torch"
    monkeypatch.setenv("TERCET_RUNTIME", "openvino")
    assert tercet.load("bi").runtime == "openvino"
    assert tercet.load("bi", device="cpu").runtime == "torch"
    monkeypatch.setenv("TERCET_RUNTIME", "onnx")
    with pytest.raises(InputError, match="TERCET_RUNTIME must be one of torch, openvino"):
        tercet.load("bi")


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(InputError, match="precision must be one of"):
        tercet.load("bi", runtime="openvino", precision="int4")  # type: ignore[call-overload]


def test_a_folder_that_changed_after_loading_is_not_saved(tiny_folder: FolderOf, tmp_path: Path) -> None:
    folder = tercet.BiEncoder.from_backbone(tiny_folder("bert")).save(tmp_path / "model")
    scorer = tercet.load(folder, runtime="openvino")
    before = scorer.fingerprint
    shutil.rmtree(folder)
    tercet.BiEncoder.from_backbone(tiny_folder("roberta")).save(folder)
    assert scorer.fingerprint == before
    with pytest.raises(OutputError, match="has changed since this model was loaded"):
        scorer.save(tmp_path / "copy")


@pytest.mark.parametrize("runtime", ["torch", "openvino"])
def test_prompts_of_equal_length_do_not_make_a_bi_encoder_siamese(
    runtime: str, tiny_folder: FolderOf, tmp_path: Path
) -> None:
    config = tercet.BiConfig(context_prompt="the ", candidate_prompt="old ")
    folder = tercet.BiEncoder.from_backbone(tiny_folder("bert"), config=config).save(tmp_path / "model")
    assert not tercet.load(folder, runtime=runtime).is_siamese


def test_a_setting_that_is_missing_names_torch(tiny_folder: FolderOf, tmp_path: Path) -> None:
    folder = tercet.BiEncoder.from_backbone(tiny_folder("roberta")).save(tmp_path / "model")
    settings = json.loads((folder / "config.json").read_text())
    del settings["pad_token_id"]
    (folder / "config.json").write_text(json.dumps(settings))
    with pytest.raises(
        UnsupportedModelError, match=r'cannot run the model.*pad_token_id.*use runtime="torch"'
    ):
        tercet.load(folder, runtime="openvino")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e30])
def test_weights_that_make_wrong_scores_are_refused(
    number: float, tiny_folder: FolderOf, tmp_path: Path
) -> None:
    folder = tercet.BiEncoder.from_backbone(tiny_folder("bert")).save(tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    weights["embeddings.LayerNorm.weight"][0] = number
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"embeddings\.LayerNorm\.weight .* contains NaN, infinity or"):
        tercet.load(folder, runtime="openvino")


STEPS = {
    "post_processor": {
        "type": "TemplateProcessing",
        "single": [{"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {},
    },
    "pre_tokenizer": {"type": "Punctuation", "behavior": "Isolated"},
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("class_", ["BertTokenizer", "MPNetTokenizer"])
def test_steps_of_a_tokenizer_that_transformers_replaces_are_replaced(
    class_: str, step: str, tmp_path: Path
) -> None:
    folder = tercet.load("bi").save(tmp_path / "model")
    for name, changes in (
        ("tokenizer.json", {step: STEPS[step]}),
        ("tokenizer_config.json", {"tokenizer_class": class_}),
    ):
        file = folder / name
        file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    expected, found = AutoTokenizer.from_pretrained(folder), read_tokenizer_file(folder).backend_tokenizer
    found.no_padding()
    for texts in (["Don't stop!"], ["Don't", "stop."]):
        assert found.encode(*texts).ids == expected(*texts).input_ids


def test_a_folder_without_weights_is_refused(tiny_folder: FolderOf, tmp_path: Path) -> None:
    tercet.BiEncoder.from_backbone(tiny_folder("bert")).save(tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"has no model\.safetensors: copy its files again"):
        tercet.load(tmp_path / "model", runtime="openvino")


@pytest.mark.parametrize("threads", ["1", "64"])
def test_the_number_of_threads_does_not_change_scores(
    threads: str, tiny_folder: FolderOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tercet.BiEncoder.from_backbone(tiny_folder("bert")).save(tmp_path / "model")
    expected = tercet.load(folder, device="cpu").score_many(SENTENCES, SENTENCES)
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    found = tercet.load(folder, runtime="openvino").score_many(SENTENCES, SENTENCES)
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.filterwarnings("ignore::tercet.errors.TruncationWarning")
def test_a_text_of_a_megabyte_is_truncated_as_in_torch(tiny_folder: FolderOf, tmp_path: Path) -> None:
    folder = tercet.BiEncoder.from_backbone(tiny_folder("bert")).save(tmp_path / "model")
    exact, compiled = tercet.load(folder, device="cpu"), tercet.load(folder, runtime="openvino")
    texts = ["the old cat " * 90_000, "a dog"]
    expected, found = (scorer.scores(texts, SENTENCES) for scorer in (exact, compiled))
    np.testing.assert_allclose(found.values, expected.values, rtol=TOLERANCE, atol=TOLERANCE)
    np.testing.assert_array_equal(found.context_truncated, expected.context_truncated)


def test_a_fork_after_loading_is_an_error_not_a_hang(tiny_folder: FolderOf, tmp_path: Path) -> None:
    folder = tercet.BiEncoder.from_backbone(tiny_folder("bert")).save(tmp_path / "model")
    scorer = tercet.load(folder, runtime="openvino")
    scorer.score("a dog", ["the cat"])
    child = os.fork()
    if child == 0:
        try:
            scorer.score("a dog", ["the cat"])
        except ModelError as error:
            os._exit(0 if "load the model in the new process" in str(error) else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def test_classes_of_a_cross_encoder_equal_those_of_torch(tiny_folder: FolderOf, tmp_path: Path) -> None:
    config = tercet.CrossConfig(num_labels=3, activation="softmax", score_class=0)
    folder = tercet.CrossEncoder.from_backbone(tiny_folder("bert"), config=config).save(tmp_path / "model")
    compiled = tercet.load(folder, runtime="openvino")
    assert isinstance(compiled, CrossScorer)
    expected = tercet.CrossEncoder.load(folder, device="cpu").classify(SENTENCES, SENTENCES)
    np.testing.assert_allclose(compiled.classify(SENTENCES, SENTENCES), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("setting", "number", "refusal"),
    [
        ("num_hidden_layers", 1, "has weights of layers that its config.json does not have"),
        ("vocab_size", 10**6, "vocab_size in its config.json is 1000000: copy both files"),
        ("num_attention_heads", -1, "num_attention_heads in .* must be at least 1, got -1"),
        ("num_hidden_layers", 10**7, "num_hidden_layers in .* is 10,000,000, and at most 1,000 are allowed"),
    ],
)
def test_settings_that_contradict_the_weights_are_refused(
    setting: str, number: int, refusal: str, tiny_folder: FolderOf, tmp_path: Path
) -> None:
    folder = tercet.BiEncoder.from_backbone(tiny_folder("bert")).save(tmp_path / "model")
    settings = json.loads((folder / "config.json").read_text())
    assert settings["num_hidden_layers"] > 1
    (folder / "config.json").write_text(json.dumps(settings | {setting: number}))
    with pytest.raises(ModelError, match=refusal):
        tercet.load(folder, runtime="openvino")
