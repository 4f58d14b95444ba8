"""Tiny models with random weights, and the packaged bi-encoder."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from string import ascii_lowercase

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from tokenizers.processors import TemplateProcessing
from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

import tercet
from tests.databases.places import ALL, NewRetriever, Places, open_places, option

ROOT = Path(__file__).parent.parent
# Processes that tests start import this tree, not an installed copy.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
)

if not torch.cuda.is_available():  # before anything imports Triton, whose kernels then run in Python
    os.environ["TRITON_INTERPRET"] = "1"

# A job in the background ignores Ctrl-C, and so would the commands that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

SENTENCES = [
    "the cat sat on the mat",
    "a dog ran",
    "one two three four five six seven eight nine ten",
    "old house",
    "the red bird and the blue bird sat in the old tree under the light of day",
    "never",
    "bread and water",
    "a dog sat",
]
WORDS = sorted({word for sentence in SENTENCES for word in sentence.split()} | {"not", "new", "river"})
ARCHITECTURES = ("bert", "camembert", "distilbert", "electra", "modernbert", "roberta", "xlm-roberta")
PADDED_ARCHITECTURES = ("mpnet", "deberta-v2")


def make_tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer of whole words and single letters, with <s> and </s>; padding has id 1, as in RoBERTa."""
    letters = [letter for letter in ascii_lowercase if letter not in WORDS]
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *WORDS, *letters]
    rust = Tokenizer(
        models.WordLevel({token: position for position, token in enumerate(tokens)}, unk_token="<unk>")
    )
    rust.normalizer = normalizers.NFC()
    rust.pre_tokenizer = pre_tokenizers.Whitespace()
    rust.post_processor = TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    rust.enable_padding(length=64)  # real folders have such settings, which tercet must ignore
    rust.enable_truncation(8)
    return PreTrainedTokenizerFast(
        tokenizer_object=rust,
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        mask_token="<mask>",
        pad_token="<pad>",
        unk_token="<unk>",
        model_max_length=48,
    )


def make_folder(folder: Path, architecture: str = "bert", *, width: int = 16, seed: int = 0) -> Path:
    """The folder of a random two-layer encoder with large weights, so that texts have different vectors."""
    tokenizer = make_tokenizer()
    positions = {"max_position_embeddings": 50}
    sizes = {"hidden_size": width, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes["intermediate_size"] = 2 * width
    if architecture == "distilbert":
        sizes = {"dim": width, "n_layers": 2, "n_heads": 2, "hidden_dim": 2 * width}
    if architecture == "electra":
        sizes["embedding_size"] = 8
    if architecture == "modernbert":
        positions = {"max_position_embeddings": 48, "local_attention": 4, "global_attn_every_n_layers": 2}
    config = AutoConfig.for_model(
        architecture, vocab_size=len(tokenizer), pad_token_id=1, initializer_range=0.5, **sizes, **positions
    )
    torch.manual_seed(seed)
    AutoModel.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A function from an architecture to the folder of its tiny encoder, which is created once."""
    folders: dict[str, Path] = {}

    def folder_of(architecture: str = "bert") -> Path:
        if architecture not in folders:
            folder = tmp_path_factory.mktemp(architecture) / "model"
            folders[architecture] = make_folder(folder, architecture)
        return folders[architecture]

    return folder_of


@pytest.fixture
def tiny(tiny_folder: Callable[[str], Path]) -> tercet.BiEncoder:
    """A tiny bi-encoder, a new one for each test."""
    return tercet.BiEncoder.from_backbone(tiny_folder("bert"))


@pytest.fixture(scope="session")
def minilm() -> tercet.BiEncoder:
    """The packaged bi-encoder."""
    return tercet.load("bi", device="cpu")


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    """Places for indexes in folders and databases."""
    yield from open_places(tmp_path_factory.mktemp("places"))


@pytest.fixture(params=ALL)
def new(request: pytest.FixtureRequest, places: Places) -> NewRetriever:
    """A function that creates a retriever in a folder, or in a database."""
    return lambda scorer, **options: tercet.Retriever(scorer, **option(places.new(request.param)), **options)
