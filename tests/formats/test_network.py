"""The hub is contacted only for names that the user gives, and only after a warning."""

import json
import shutil
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import datasets
import huggingface_hub.constants
import pytest
import torch
from tests.cli.command import assert_fails, tercet, tercet_process
from tests.conftest import ARCHITECTURES, PADDED_ARCHITECTURES

import tercet as library
from tercet.data.sources import open_source
from tercet.errors import DataError, ModelError, NetworkWarning
from tercet.formats.delta import save_delta
from tercet.formats.sources import resolve_model
from tercet.index.store import Store
from tercet.settings.models import ModelSpec


class Network:
    """What was sought elsewhere, and the warnings, in the order of time."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        self.events: list[str] = []


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Network]:
    """A hub on this machine that has nothing, with an empty cache; no other host is known."""

    class Hub(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.events.append(self.path)
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_HEAD = do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    def known_host(host: Any, *given: Any, **options: Any) -> Any:
        if host not in ("127.0.0.1", b"127.0.0.1"):
            found.events.append(f"host {host}")
            raise OSError("unknown host")
        return addresses(host, *given, **options)

    addresses = socket.getaddrinfo
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        found = Network(server.server_port)
        monkeypatch.setattr(socket, "getaddrinfo", known_host)
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", found.endpoint)
        template = found.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(datasets.config, "HF_ENDPOINT", found.endpoint)
        monkeypatch.chdir(tmp_path)
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def cached(network: Network, tmp_path: Path, tiny_folder: Callable[[str], Path]) -> str:
    """The id of a model in the cache."""
    repository, commit = tmp_path / "cache" / "models--org--tiny", "a" * 40
    shutil.copytree(tiny_folder("bert"), repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    return "org/tiny"


PATHS = (
    "models/my-bi",
    "./my-bi",
    "../my-bi",
    "/nowhere/my-bi",
    "~/my-bi",
    "my-bi/",
    "org/name/",
    "org/name/x",
    "org//name",
    r"models\my-bi",
    r"org\name",
    ".my-bi",
    "~",
)


@pytest.mark.parametrize("name", PATHS)
def test_what_looks_like_a_path_is_not_sought_on_the_hub(name: str, network: Network) -> None:
    Path("models").mkdir()
    with pytest.raises(ModelError, match="there is no folder"):
        library.load(name)
    assert network.events == []


def test_a_mistyped_folder_of_a_command_is_an_error_without_the_network(network: Network) -> None:
    Path("models").mkdir()
    assert_fails(tercet("info", "--model", "models/my-bi"), "there is no folder models/my-bi: check the path")
    assert network.events == []


def test_a_hub_id_is_announced_before_the_hub_is_contacted(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(
            warnings, "showwarning", lambda message, kind, *_, **__: network.events.append(kind.__name__)
        )
        with pytest.raises(ModelError, match="the hub has no such model"):
            resolve_model("org/name")
    assert network.events[0] == NetworkWarning.__name__
    assert "/api/models/org/name/revision/main" in network.events[1:]


def test_a_command_announces_the_hub_in_one_line(network: Network) -> None:
    result = tercet("info", "--model", "org/name")
    note, error = result.stderr.splitlines()
    missing = "org/name is neither a folder nor in the Hugging Face cache"
    assert note == f"note: {missing}: contacting {network.endpoint}"
    assert error.startswith(f"error: {missing}, and cannot be downloaded")


def test_a_cached_model_is_loaded_without_the_network(cached: str, network: Network) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", NetworkWarning)
        assert library.load(cached, device="cpu").width == 16
    assert network.events == []


def test_offline_mode_contacts_nothing_and_announces_nothing(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NetworkWarning)
        with pytest.raises(ModelError, match=r"cannot be downloaded \(offline mode is on\)"):
            resolve_model("org/name")
    assert network.events == []


def test_a_command_contacts_nothing_in_the_offline_mode_of_transformers(network: Network) -> None:
    environment = {"HF_ENDPOINT": network.endpoint, "HF_HUB_OFFLINE": "", "TRANSFORMERS_OFFLINE": "1"}
    assert_fails(
        tercet_process("new", "bi", "new", "--backbone", "org/name", environment=environment),
        "cannot be downloaded (offline mode is on)",
    )
    assert network.events == []


def index_of(model: str, tiny_folder: Callable[[str], Path]) -> Path:
    """An index that says that ``model`` built it."""
    with library.Retriever(tiny_folder("bert"), path="faq.tercet", device="cpu") as retriever:
        retriever.add(["a dog ran"])
    store = Store(Path("faq.tercet"))
    store.set_metadata({"model": model})
    store.close()
    return Path("faq.tercet")


def test_the_model_named_in_an_index_is_not_downloaded(
    network: Network, tiny_folder: Callable[[str], Path]
) -> None:
    index = index_of("org/name", tiny_folder)
    with pytest.raises(
        ModelError,
        match=r"faq.tercet was made with the model org/name, which is not on this machine: "
        r'run "hf download org/name", or pass the model \(--model org/name\)',
    ):
        library.Retriever.open(index)
    assert_fails(tercet("search", str(index), "a dog"), "(--model org/name)")
    assert network.events == []


@pytest.mark.filterwarnings("ignore::tercet.errors.NetworkWarning")
def test_the_model_of_an_index_is_sought_on_the_hub_if_it_is_passed(
    network: Network, tiny_folder: Callable[[str], Path]
) -> None:
    index = index_of("org/name", tiny_folder)
    with pytest.raises(ModelError, match="the hub has no such model"):
        library.Retriever.open(index, "org/name")
    assert network.events


def test_the_model_named_in_an_index_is_taken_from_the_cache(
    cached: str, network: Network, tiny_folder: Callable[[str], Path]
) -> None:
    index = index_of(cached, tiny_folder)
    with library.Retriever.open(index, device="cpu") as retriever:
        assert retriever.search("a dog")[0].text == "a dog ran"
    assert network.events == []


def test_an_index_whose_model_has_moved_says_what_to_pass(
    network: Network, tiny_folder: Callable[[str], Path]
) -> None:
    index = index_of("/nowhere/my-bi", tiny_folder)
    with pytest.raises(
        ModelError,
        match=r"/nowhere/my-bi, which is not on this machine: restore that folder, or pass .*--model FOLDER",
    ):
        library.Retriever.open(index)


@pytest.fixture
def delta(tiny: library.BiEncoder, cached: str, tmp_path: Path) -> Path:
    """A model as its difference from a model of the hub."""
    with torch.no_grad():
        next(iter(tiny.parameters())).add_(0.5)
    return save_delta(tiny, ModelSpec(kind="bi", source=cached), tmp_path / "delta")


def test_the_base_model_named_in_a_delta_is_not_downloaded(
    delta: Path, network: Network, tmp_path: Path
) -> None:
    assert library.load(delta, device="cpu").width == 16  # its base is in the cache
    shutil.rmtree(tmp_path / "cache")
    with pytest.raises(
        ModelError, match=r'delta was made with the model org/tiny, .*: run "hf download org/tiny"$'
    ):
        library.load(delta, device="cpu")
    assert network.events == []


def test_the_base_model_named_in_adapters_is_not_downloaded(
    delta: Path, network: Network, tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / "cache")
    manifest = json.loads((delta / "tercet.json").read_text())
    manifest |= {"adapter": {"rank": 4}, "base_fingerprint": "0"}
    del manifest["delta"]
    (delta / "tercet.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelError, match='run "hf download org/tiny"'):
        library.load(delta, device="cpu")
    assert network.events == []


HUB_NAMES: dict[str, dict[str, Any]] = {
    "adapter_config.json": {"base_model_name_or_path": "org/base", "peft_type": "LORA", "r": 4},
    "tokenizer_config.json": {
        "name_or_path": "org/tokenizer",
        "auto_map": {"AutoTokenizer": ["org/code--tokenizer.Own", None]},
        "tokenizer_class": "LlamaTokenizerFast",
    },
    "config.json": {"_name_or_path": "org/model", "transformers_version": "4.50.0"},
}


@pytest.mark.parametrize("architecture", [*ARCHITECTURES, *PADDED_ARCHITECTURES])
def test_a_folder_of_any_architecture_is_loaded_without_the_network(
    architecture: str, network: Network, tiny_folder: Callable[[str], Path]
) -> None:
    assert library.load(tiny_folder(architecture), device="cpu").width == 16
    assert network.events == []


@pytest.mark.parametrize("file", HUB_NAMES)
def test_hub_names_in_the_files_of_a_folder_are_not_sought(
    file: str, network: Network, tiny_folder: Callable[[str], Path]
) -> None:
    folder = Path(shutil.copytree(tiny_folder("bert"), "model"))
    content = json.loads((folder / file).read_text()) if (folder / file).exists() else {}
    (folder / file).write_text(json.dumps(content | HUB_NAMES[file]))
    with suppress(ModelError):  # the folder has no adapters of peft
        library.load(folder, device="cpu")
    assert network.events == []


def test_a_data_set_of_the_hub_is_announced(network: Network) -> None:
    with (
        pytest.warns(NetworkWarning, match=f"hf:org/name@train: contacting {network.endpoint}"),
        pytest.raises(DataError, match="hf:org/name@train cannot be read"),
    ):
        list(open_source("hf:org/name@train"))
    assert network.events


def test_a_data_set_of_the_hub_is_refused_in_offline_mode(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    with pytest.raises(DataError, match="hf:org/name@train is on the Hugging Face hub, and offline mode"):
        list(open_source("hf:org/name@train"))
    assert network.events == []


@pytest.mark.parametrize("name", ["hf:./set@train", "hf:sets/mine@train", "hf:a/b/c@train"])
def test_a_mistyped_folder_of_a_data_set_is_not_sought_on_the_hub(name: str, network: Network) -> None:
    Path("sets").mkdir()
    with pytest.raises(DataError, match="there is no folder"):
        list(open_source(name))
    assert network.events == []
