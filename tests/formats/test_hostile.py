"""Model folders that contradict themselves, lead elsewhere, or ask for too much fail at once and say why."""

import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.conftest import SENTENCES, make_folder

import tercet
from tercet.errors import InputError, ModelError
from tercet.settings.chunks import ChunkConfig

FolderOf = Callable[[str], Path]

AT_ONCE = 30.0
"""Seconds, on a busy machine."""


@pytest.fixture
def plain(tiny_folder: FolderOf, tmp_path: Path) -> Path:
    """The folder of a plain encoder, for a test to damage."""
    return Path(shutil.copytree(tiny_folder("bert"), tmp_path / "plain"))


def change(file: Path, **settings: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))


def assert_refused(folder: Path, *words: str, load: Callable[..., object] = tercet.load) -> None:
    start = perf_counter()
    with pytest.raises(ModelError) as caught:
        load(folder, device="cpu")
    assert perf_counter() - start < AT_ONCE
    for word in words:
        assert word in str(caught.value)


# shapes and layers


def test_shapes_that_contradict_the_config_are_named_with_both_shapes(plain: Path) -> None:
    change(plain / "config.json", intermediate_size=33)
    assert_refused(
        plain, "encoder.layer.0.intermediate.dense.weight has the shape [32, 16] instead of [33, 16]"
    )


def test_shapes_of_a_classifier_are_named_too(tiny_folder: FolderOf, tmp_path: Path) -> None:
    config = tercet.CrossConfig(head="native")
    cross = tercet.CrossEncoder.from_backbone(tiny_folder("bert"), config=config, device="cpu")
    folder = cross.save(tmp_path / "cross")
    change(folder / "config.json", vocab_size=200)
    assert_refused(folder, "bert.embeddings.word_embeddings.weight has the shape", "instead of [200, 16]")


@pytest.mark.parametrize("architecture", ["bert", "distilbert", "modernbert", "roberta"])
def test_a_config_with_fewer_layers_than_the_weights_is_refused(
    tiny_folder: FolderOf, tmp_path: Path, architecture: str
) -> None:
    folder = Path(shutil.copytree(tiny_folder(architecture), tmp_path / "model"))
    settings = json.loads((folder / "config.json").read_text())
    key = "n_layers" if "n_layers" in settings else "num_hidden_layers"
    more = {"layer_types": settings["layer_types"][:1]} if "layer_types" in settings else {}
    change(folder / "config.json", **{key: 1}, **more)
    assert_refused(folder, "has weights of layers that its config.json does not have", ".1.", "(now 1)")


def test_a_config_with_fewer_layers_is_refused_below_a_new_head(plain: Path) -> None:
    """The names of weights have a prefix that the plain encoder's do not."""
    change(plain / "config.json", num_hidden_layers=1)
    config = tercet.CrossConfig(head="native")
    with pytest.raises(ModelError, match="weights of layers that its config"):
        tercet.CrossEncoder.from_backbone(plain, config=config, device="cpu")


@pytest.mark.parametrize("head", ["native", "linear"])
def test_a_config_with_more_layers_than_the_weights_is_refused(plain: Path, head: Any) -> None:
    """Otherwise the new layers would be random, in a model that looks complete."""
    change(plain / "config.json", num_hidden_layers=3)
    assert_refused(plain, "lacks weights: encoder.layer.2.")
    with pytest.raises(ModelError, match=r"lacks weights: (bert\.)?encoder\.layer\.2\."):
        tercet.CrossEncoder.from_backbone(plain, config=tercet.CrossConfig(head=head), device="cpu")


# configs


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"num_hidden_layers": 10_000_000}, "num_hidden_layers in"),
        ({"hidden_size": 10**9}, "hidden_size in"),
        ({"intermediate_size": 10**12}, "TERCET_MAX_WIDTH"),
        ({"num_labels": 10**9}, "TERCET_MAX_LABELS"),
        ({"text_config": {"num_hidden_layers": 10**9}}, "TERCET_MAX_LAYERS"),
        ({"num_hidden_layers": 900, "hidden_size": 99_968}, "they do not belong together"),
        ({"intermediate_size": 99_000, "num_hidden_layers": 900}, "they do not belong together"),
        ({"vocab_size": 10**12}, "they do not belong together"),
        ({"max_position_embeddings": 10**15}, "they do not belong together"),
        ({"vocab_size": 10**18}, "model"),
        ({"num_attention_heads": -1}, "num_attention_heads in"),
        ({"num_attention_heads": 0}, "must be at least 1, got 0"),
    ],
)
def test_a_config_that_asks_for_too_much_is_refused_at_once(
    plain: Path, settings: dict[str, object], words: str
) -> None:
    change(plain / "config.json", **settings)
    assert_refused(plain, words, str(plain))


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
@pytest.mark.parametrize("key", ["hidden_dropout_prob", "attention_probs_dropout_prob", "layer_norm_eps"])
def test_a_config_with_a_number_that_is_not_finite_is_refused(plain: Path, key: str, number: str) -> None:
    change(plain / "config.json", **{key: 12345})
    config = (plain / "config.json").read_text()
    (plain / "config.json").write_text(config.replace("12345", number))
    assert_refused(plain, f"numbers in {plain / 'config.json'} must be finite, got {key} = ")


def test_a_module_with_a_number_that_is_not_finite_is_refused(tiny: tercet.BiEncoder, tmp_path: Path) -> None:
    folder = tiny.save(tmp_path / "saved")
    (file,) = folder.glob("*_Pooling/config.json")
    file.write_text(file.read_text().replace("{", '{"embedding_dimension": Infinity, "other": 1,', 1))
    assert_refused(folder, f"numbers in {file} must be finite, got embedding_dimension = inf")


def test_layers_of_modernbert_are_not_listed_before_they_are_counted(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    """transformers makes a list of the type of each layer."""
    folder = Path(shutil.copytree(tiny_folder("modernbert"), tmp_path / "model"))
    settings = json.loads((folder / "config.json").read_text())
    settings.pop("layer_types", None)
    (folder / "config.json").write_text(json.dumps(settings | {"num_hidden_layers": 10**10}))
    assert_refused(folder, "num_hidden_layers in", "TERCET_MAX_LAYERS")


def test_a_dense_module_that_asks_for_too_much_is_refused(tiny: tercet.BiEncoder, tmp_path: Path) -> None:
    folder = tiny.save(tmp_path / "saved")
    modules = json.loads((folder / "modules.json").read_text())
    kind = "sentence_transformers.models.Dense"
    (folder / "modules.json").write_text(json.dumps([*modules, {"path": "2_Dense", "type": kind}]))
    (folder / "2_Dense").mkdir()
    settings = {"in_features": 10**6, "out_features": 10**7}
    (folder / "2_Dense" / "config.json").write_text(json.dumps(settings))
    assert_refused(folder, "2_Dense", "they do not belong together")


def test_the_codes_of_a_poly_encoder_that_asks_for_too_many_are_refused(
    tiny_folder: FolderOf, tmp_path: Path
) -> None:
    config = tercet.PolyConfig(codes=4)
    poly = tercet.PolyEncoder.from_backbone(tiny_folder("bert"), config=config, device="cpu")
    folder = poly.save(tmp_path / "poly")
    manifest = json.loads((folder / "tercet.json").read_text())
    change(folder / "tercet.json", config=manifest["config"] | {"codes": 10**12})
    assert_refused(folder, "codes must be at most 48")


def test_a_limit_can_be_raised_by_an_environment_variable(
    plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERCET_MAX_LAYERS", "1")
    assert_refused(plain, "num_hidden_layers in", "is 2, and at most 1 are allowed: raise TERCET_MAX_LAYERS")
    monkeypatch.setenv("TERCET_MAX_LAYERS", "2")
    tercet.load(plain, device="cpu")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is not valid JSON"),
        ("[" * 100_000, "nested more than 100 levels deep"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "nested more than 100 levels deep"),
        ("5", "must contain a JSON dict"),
        ("\x80", "is not valid JSON"),
    ],
)
def test_an_unreadable_config_is_named(plain: Path, content: str, words: str) -> None:
    (plain / "config.json").write_text(content, encoding="latin-1")
    assert_refused(plain, str(plain / "config.json"), words)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that nobody can read")
def test_a_config_that_the_system_cannot_read_is_named(plain: Path) -> None:
    """Permissions do not stop the root user; nobody can read the first byte of this file."""
    (plain / "config.json").unlink()
    (plain / "config.json").symlink_to("/proc/self/mem")
    assert_refused(plain, str(plain / "config.json"), "cannot read")


@pytest.mark.parametrize("kind", [[], {}, None, 5, "other"])
def test_a_kind_that_does_not_exist_is_named(kind: object, plain: Path, tmp_path: Path) -> None:
    folder = tercet.load(plain, device="cpu").save(tmp_path / "saved")
    change(folder / "tercet.json", kind=kind)
    assert_refused(folder, f"a model of kind {kind!r}")


@pytest.mark.parametrize("architectures", [5, {"a": 1}, [[]]])
def test_architectures_of_a_wrong_type_are_refused_or_ignored(architectures: object, plain: Path) -> None:
    change(plain / "config.json", architectures=architectures)
    with suppress(ModelError):
        tercet.load(plain, device="cpu")


@pytest.mark.parametrize("token", [-1, 10**6, "<pad>"])
def test_a_padding_token_outside_the_vocabulary_is_refused(token: object, plain: Path) -> None:
    change(plain / "config.json", pad_token_id=token)
    assert_refused(plain, str(plain))


def test_a_layer_of_a_negative_width_is_refused(tiny_folder: FolderOf, tmp_path: Path) -> None:
    config = tercet.CrossConfig(head="dense")
    cross = tercet.CrossEncoder.from_backbone(tiny_folder("bert"), config=config, device="cpu")
    folder = cross.save(tmp_path / "cross")
    dense = next(folder.glob("*_Dense/config.json"))
    change(dense, in_features=-1)
    assert_refused(folder, str(dense), "does not describe a model")


def test_a_module_whose_name_is_too_long_is_refused(tiny: tercet.BiEncoder, tmp_path: Path) -> None:
    folder = tiny.save(tmp_path / "saved")
    modules = json.loads((folder / "modules.json").read_text())
    modules[0]["path"] = "a" * 300
    (folder / "modules.json").write_text(json.dumps(modules))
    assert_refused(folder, f"{folder} refers to the module aaa", "cannot be looked up: File name too long")


# weights in several files


def shard(folder: Path, name: str) -> None:
    """Move the weights to a file of this name, which an index names."""
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    save_file(weights, folder / name, metadata={"format": "pt"})
    index = {"metadata": {}, "weight_map": dict.fromkeys(weights, name)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def test_weights_in_several_files_load(plain: Path) -> None:
    wanted = tercet.load(plain, device="cpu").encode(SENTENCES)
    shard(plain, "model-00001-of-00001.safetensors")
    assert (tercet.load(plain, device="cpu").encode(SENTENCES) == wanted).all()


@pytest.mark.parametrize("form", ["../other/{}", "{absolute}", "sub/{}", "..\\{}", "", "model.bin"])
def test_an_index_that_leads_outside_the_folder_is_refused(plain: Path, form: str) -> None:
    name = "model-00001-of-00001.safetensors"
    shard(plain, name)
    for other in (plain.parent / "other", plain / "sub"):
        other.mkdir()
        shutil.copy(plain / name, other / name)
    file = plain / "model.safetensors.index.json"
    index = json.loads(file.read_text())
    target = form.format(name, absolute=plain.parent / "other" / name)
    change(file, weight_map=dict.fromkeys(index["weight_map"], target))
    assert_refused(plain, "in its own folder", repr(target))


def test_an_index_without_a_map_is_refused(plain: Path) -> None:
    (plain / "model.safetensors.index.json").write_text("{}")
    assert_refused(plain, "weight_map")


def test_links_to_weights_are_followed(plain: Path) -> None:
    """The cache of the hub consists of links."""
    wanted = tercet.load(plain, device="cpu").encode(SENTENCES)
    (plain / "model.safetensors").rename(plain.parent / "blob")
    (plain / "model.safetensors").symlink_to(plain.parent / "blob")
    assert (tercet.load(plain, device="cpu").encode(SENTENCES) == wanted).all()


@pytest.mark.parametrize("name", ["../other.safetensors", "/other.safetensors", "adapter_model.bin", 5])
def test_a_config_that_names_weights_elsewhere_is_refused(plain: Path, name: object) -> None:
    shutil.copy(plain / "model.safetensors", plain.parent / "other.safetensors")
    change(plain / "config.json", transformers_weights=name)
    assert_refused(plain, "in its own folder", repr(name))


def test_an_adapter_beside_the_weights_is_refused(plain: Path) -> None:
    """Whether it changes the weights would depend on whether peft is installed."""
    (plain / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": os.fspath(plain)}))
    assert_refused(plain, "PEFT adapter", "merge it")


# tokenizers


def change_tokenizer(folder: Path, **sections: object) -> None:
    change(folder / "tokenizer.json", **sections)


def replace(pattern: dict[str, str], content: str) -> dict[str, object]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def normalizers(*steps: object) -> dict[str, object]:
    return {"type": "Sequence", "normalizers": list(steps)}


DOUBLING = normalizers(*[replace({"String": "a"}, "aa")] * 40)
INSERTING = normalizers(*[replace({"Regex": "(?=a)"}, "a")] * 40)
BYTES = normalizers(*[{"type": "ByteLevel"}] * 30)
LONG = normalizers(replace({"String": "a"}, "a" * 9000))
TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [{"Sequence": {"id": "A", "type_id": 0}}] * 2,
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
    "special_tokens": {},
}


@pytest.mark.parametrize(
    ("sections", "limit"),
    [
        ({"normalizer": normalizers(*[{"type": "Lowercase"}] * 5000)}, "TOKENIZER_STEPS"),
        ({"normalizer": normalizers(normalizers(*[{"type": "NFC"}] * 70))}, "TOKENIZER_STEPS"),
        ({"normalizer": DOUBLING}, "TOKENIZER_GROWTH"),
        ({"normalizer": INSERTING}, "TOKENIZER_GROWTH"),
        ({"normalizer": BYTES}, "TOKENIZER_GROWTH"),
        ({"normalizer": LONG}, "TOKENIZER_GROWTH"),
        ({"post_processor": {"type": "Sequence", "processors": [TEMPLATE] * 40}}, "TOKENIZER_GROWTH"),
        ({"normalizer": replace({"Regex": "a|" * 100_000 + "b"}, "b")}, "PATTERN_CHARACTERS"),
        (
            {
                "pre_tokenizer": {
                    "type": "Split",
                    "pattern": {"Regex": "(" * 20_000},
                    "behavior": "Isolated",
                    "invert": False,
                }
            },
            "PATTERN_CHARACTERS",
        ),
        ({"model": {"type": "WordPiece", "max_input_chars_per_word": 10**9}}, "WORD_CHARACTERS"),
    ],
)
def test_a_tokenizer_that_asks_for_too_much_is_refused_at_once(
    plain: Path, sections: dict[str, object], limit: str
) -> None:
    change_tokenizer(plain, **sections)
    assert_refused(plain, str(plain / "tokenizer.json"), f"TERCET_MAX_{limit}")


@pytest.mark.parametrize("place", ["vocabulary", "added token"])
def test_a_huge_token_id_is_refused_before_the_library_reads_it(plain: Path, place: str) -> None:
    content = json.loads((plain / "tokenizer.json").read_text())
    if place == "vocabulary":
        content["model"]["vocab"]["huge"] = 10**9
    else:
        content["added_tokens"].append({**content["added_tokens"][-1], "id": 10**9, "content": "huge"})
    change_tokenizer(plain, **content)
    assert_refused(plain, "the highest id of a token in", "1,000,000,000", "raise TERCET_MAX_TOKEN_ID")


def test_a_token_id_beyond_the_model_is_refused_although_there_are_few_tokens(plain: Path) -> None:
    content = json.loads((plain / "tokenizer.json").read_text())
    word = next(word for word in content["model"]["vocab"] if word.isalpha())
    content["model"]["vocab"][word] = 5_000
    change_tokenizer(plain, **content)
    assert_refused(plain, "a token with the id 5000", "they do not belong together")


@pytest.mark.parametrize("template", ["single", "pair"])
def test_a_template_with_an_id_beyond_the_model_is_refused(plain: Path, template: str) -> None:
    content = json.loads((plain / "tokenizer.json").read_text())
    parts = {name: content["post_processor"][name] for name in ("single", "pair")}
    special = {"id": "huge", "ids": [5_000], "tokens": ["huge"]}
    parts[template] = [{"SpecialToken": {"id": "huge", "type_id": 0}}, *parts[template]]
    known = content["post_processor"]["special_tokens"] | {"huge": special}
    change_tokenizer(plain, post_processor={"type": "TemplateProcessing", **parts, "special_tokens": known})
    assert_refused(plain, "a token with the id 5000", "they do not belong together")


@pytest.mark.parametrize("content", ["{", "[" * 100_000, "[]", '{"normalizer": {"type": "Replace"}}'])
def test_an_unreadable_tokenizer_is_named(plain: Path, content: str) -> None:
    (plain / "tokenizer.json").write_text(content)
    assert_refused(plain, str(plain / "tokenizer.json"))


def test_a_panic_of_the_tokenizer_at_load_names_the_file(plain: Path) -> None:
    """The pattern backtracks beyond the limit of the library when the special tokens are found."""
    bomb = replace({"Regex": "(x+)+$"}, "y")
    grow = replace({"String": "a"}, "x" * 40 + "!")
    change_tokenizer(plain, normalizer=normalizers(grow, bomb))
    assert_refused(plain, str(plain / "tokenizer.json"), "retry-limit-in-match over")


@pytest.mark.parametrize("use", ["score", "encode", "explain", "chunks"])
def test_a_panic_of_the_tokenizer_at_use_names_the_file(plain: Path, use: str) -> None:
    change_tokenizer(plain, normalizer=replace({"Regex": "(x+)+$"}, "y"))
    scorer: Any = tercet.load(plain, device="cpu")
    text = "x" * 40 + "!"
    uses: dict[str, Callable[[], object]] = {
        "score": lambda: scorer.score("the cat", [text]),
        "encode": lambda: scorer.encode([text]),
        "explain": lambda: scorer.explain("the cat", text),
        "chunks": lambda: scorer.chunks([text], ChunkConfig()),
    }
    with pytest.raises(ModelError, match=r"tokenizer\.json fails: .*retry-limit-in-match over"):
        uses[use]()
    assert scorer.score("the cat", ["a dog"]).shape == (1,)


def test_a_vocabulary_without_an_unknown_token_is_named_at_use(plain: Path) -> None:
    tokenizer = json.loads((plain / "tokenizer.json").read_text())
    del tokenizer["model"]["vocab"]["<unk>"]
    tokenizer["added_tokens"] = [each for each in tokenizer["added_tokens"] if each["content"] != "<unk>"]
    (plain / "tokenizer.json").write_text(json.dumps(tokenizer))
    change(plain / "tokenizer_config.json", unk_token=None)
    scorer = tercet.load(plain, device="cpu")
    with pytest.raises(ModelError, match=r"tokenizer\.json fails: .*"):
        scorer.score("the cat", ["Ω"])


def test_a_dialogue_of_more_characters_than_allowed_is_refused(
    tiny_folder: FolderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERCET_MAX_TEXT_CHARACTERS", "70000")
    scorer = tercet.load(tiny_folder("bert"), device="cpu")
    with pytest.raises(InputError, match=r"at most 70,000 characters, got .*: split it; .* TERCET_MAX_TEXT"):
        scorer.score(["a" * 60_000] * 2, ["a dog"])


def test_real_tokenizers_are_within_the_limits(tmp_path: Path) -> None:
    """Normalizers of ALBERT, the longest chain among well-known encoders."""
    folder = make_folder(tmp_path / "model")
    chain = normalizers(
        replace({"String": "``"}, '"'),
        replace({"String": "''"}, '"'),
        {"type": "NFKD"},
        {"type": "StripAccents"},
        {"type": "Lowercase"},
        replace({"Regex": " {2,}"}, " "),
        {"type": "Prepend", "prepend": "▁"},
        replace({"String": " "}, "▁"),
    )
    change_tokenizer(folder, normalizer=chain)
    assert torch.isfinite(torch.from_numpy(tercet.load(folder, device="cpu").encode(["the cat"]))).all()
