"""Model names: packaged models, folders, and hub ids, offline first."""

import shutil
from collections.abc import Callable
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import huggingface_hub.constants
import pytest

import tercet
from tercet.errors import MissingExtraError, ModelError
from tercet.formats import backbone, sources
from tercet.formats.sources import absolute_source, resolve_model


@pytest.fixture
def hub_cache(tmp_path: Path, tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Hugging Face cache with one model, ``org/tiny``, in the layout of the hub client."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    repo, commit = tmp_path / "models--org--tiny", "a" * 40
    shutil.copytree(tiny_folder("bert"), repo / "snapshots" / commit)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(commit)
    return tmp_path


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any use of a socket fails the test."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a network connection was attempted")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)


@pytest.mark.usefixtures("hub_cache", "no_network")
def test_a_cached_hub_model_loads_without_the_network() -> None:
    assert tercet.load("org/tiny", device="cpu").width == 16


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("name", sources.PACKAGED)
def test_a_packaged_model_loads_without_the_network(name: str) -> None:
    assert tercet.load(name, device="cpu").kind == name.removesuffix("-ko")


@pytest.mark.usefixtures("hub_cache", "no_network")
@pytest.mark.parametrize(
    ("name", "meant"),
    [("bii", "bi"), ("Polly", "poly"), ("all-minilm-l6", "all-MiniLM-L6-v2")],
)
def test_a_mistyped_name_suggests_the_closest_one_without_the_network(name: str, meant: str) -> None:
    with pytest.raises(ModelError) as caught:
        resolve_model(name)
    assert str(caught.value) == (
        f"there is no model {name} (did you mean {meant}?): give one of bi, bi-ko, poly, cross, "
        "all-MiniLM-L6-v2, poly-ko, cross-ko, "
        "a folder, or a hub id (org/name); for a hub id without an organization, "
        f'run "hf download {name}" first'
    )


@pytest.mark.usefixtures("hub_cache", "no_network")
def test_a_name_that_is_like_no_other_gets_no_suggestion() -> None:
    with pytest.raises(ModelError, match="there is no model quux: give one of bi"):
        resolve_model("quux")


@pytest.mark.usefixtures("no_network")
def test_a_name_without_an_organization_loads_from_the_cache(hub_cache: Path) -> None:
    (hub_cache / "models--org--tiny").rename(hub_cache / "models--tiny")
    assert tercet.load("tiny", device="cpu").width == 16


@pytest.mark.usefixtures("hub_cache")
def test_a_hub_model_that_cannot_be_downloaded_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(
        ModelError,
        match=r"org/other is neither a folder nor in the Hugging Face cache",
    ):
        resolve_model("org/other")


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"])
def test_a_hub_id_of_the_packaged_weights_needs_no_download(name: str, minilm: tercet.BiEncoder) -> None:
    assert tercet.load(name, device="cpu").fingerprint == minilm.fingerprint
    assert sources.names_of(resolve_model(name)) == [
        "bi",
        *(name for name, meant in sources.ALIASES.items() if meant == "bi"),
    ]


def test_the_packaged_bi_encoder_is_the_model_of_the_hub() -> None:
    digests = {
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    }
    folder = resolve_model("bi")
    assert {name: sha256((folder / name).read_bytes()).hexdigest() for name in digests} == digests


def test_a_folder_with_the_name_of_a_hub_id_is_that_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("all-MiniLM-L6-v2").mkdir()
    assert resolve_model("all-MiniLM-L6-v2") == Path("all-MiniLM-L6-v2")


OFFLINE = (
    'on a connected machine, run "hf download org/other --local-dir FOLDER" and pass the folder; '
    "bi, bi-ko, poly, cross work offline"
)


@pytest.mark.usefixtures("hub_cache")
@pytest.mark.parametrize(
    ("constant", "value", "reason"),
    [
        ("HF_HUB_OFFLINE", True, f"(offline mode is on): {OFFLINE}"),
        ("ENDPOINT", "http://127.0.0.1:9", f"(no network): {OFFLINE}"),
    ],
)
def test_a_hub_that_cannot_be_reached_is_one_line_with_the_next_step(
    constant: str, value: object, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, constant, value)
    with pytest.raises(ModelError) as caught:
        tercet.load("org/other")
    message = str(caught.value)
    assert message.endswith(f"and cannot be downloaded {reason}")
    assert "\n" not in message


class Hub(BaseHTTPRequestHandler):
    """Answers as the hub does for a model that is gated or does not exist."""

    def do_GET(self) -> None:
        gated = "gated" in self.path
        self.send_response(403 if gated else 404)
        self.send_header("X-Error-Code", "GatedRepo" if gated else "RepoNotFound")
        self.end_headers()

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.mark.usefixtures("hub_cache")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("org/other", r'\(the hub has no such model, or it is private\): check the name, or run "hf auth'),
        ("org/gated", r'\(it is gated\): accept its terms on http://.*/org/gated and run "hf auth login"'),
    ],
)
def test_a_model_that_the_hub_refuses_is_one_line_with_the_next_step(
    name: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HTTPServer(("127.0.0.1", 0), Hub) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        try:
            with pytest.raises(ModelError, match=reason):
                tercet.load(name)
        finally:
            server.shutdown()
            thread.join()


def test_a_missing_path_is_reported_with_the_choices(tmp_path: Path) -> None:
    with pytest.raises(
        ModelError, match=r"no folder .*nowhere: check the path, or give one of bi, bi-ko, poly, cross"
    ):
        resolve_model(tmp_path / "nowhere")


def test_a_missing_package_is_reported_with_its_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backbone, "FOLDERS", {"no_such_package": "model"})
    with pytest.raises(MissingExtraError, match="pip install tercet-minilm"):
        resolve_model("bi")


def test_a_folder_with_the_name_of_a_packaged_model_needs_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("poly").mkdir()
    assert resolve_model("./poly") == resolve_model(Path("poly")) == Path("poly")
    assert absolute_source("./poly") == str(tmp_path / "poly")
    with pytest.warns(UserWarning, match=r"poly means the model packaged with tercet; write \./poly"):
        assert resolve_model("poly") == sources.OWN_MODELS / "poly"
    assert absolute_source("poly") == "poly"


def test_a_packaged_model_whose_files_are_missing_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "OWN_MODELS", tmp_path)
    with pytest.raises(ModelError, match=r"the packaged model cross is missing in .*: reinstall tercet"):
        resolve_model("cross")


def test_a_delta_is_refused_as_a_backbone() -> None:
    with pytest.raises(ModelError, match="cannot serve as a backbone: name the model it was trained from"):
        tercet.CrossEncoder.from_backbone("cross", device="cpu")


@pytest.mark.parametrize("name", ["a" * 300, f"./{'a' * 300}"])
def test_a_name_that_is_too_long_for_a_file_is_refused(name: str) -> None:
    with pytest.raises(ModelError, match=r"cannot look up the model .*aaa…: File name too long"):
        resolve_model(name)


@pytest.mark.parametrize("name", ["", " "])
def test_an_empty_name_is_refused(name: str) -> None:
    with pytest.raises(ModelError, match="the model name is empty: give one of bi, bi-ko, poly, cross"):
        resolve_model(name)


def test_the_folder_of_a_run_means_its_best_model(tiny: tercet.BiEncoder, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.json").write_text("{}")  # the settings of the run
    tiny.save(run / "model")
    assert resolve_model(run) == run / "model"
    assert tercet.load(run).fingerprint == tiny.fingerprint
