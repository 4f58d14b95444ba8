"""Names of models: packaged, folders, and the hub, offline first."""

import shutil
from collections.abc import Callable
from pathlib import Path

import huggingface_hub.constants
import pytest

import tercet
from tercet.models import sources
from tercet.models.sources import find_folder


@pytest.fixture
def hub_cache(tmp_path: Path, tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Hugging Face cache that holds one model, ``org/tiny``, as the hub's client leaves it."""
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
        raise AssertionError("the network was asked")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)


@pytest.mark.usefixtures("hub_cache", "no_network")
def test_a_cached_hub_model_loads_without_the_network() -> None:
    assert tercet.load("org/tiny", device="cpu").width == 16


@pytest.mark.usefixtures("no_network")
def test_a_packaged_model_loads_without_the_network() -> None:
    assert tercet.load("bi", device="cpu").width == 384


@pytest.mark.usefixtures("hub_cache")
def test_a_hub_model_that_cannot_be_fetched_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(
        tercet.ModelError, match=r"org/other is no folder here, not in the Hugging Face cache"
    ):
        find_folder("org/other")


def test_a_missing_path_is_named_with_the_choices(tmp_path: Path) -> None:
    with pytest.raises(
        tercet.ModelError, match=r"there is no folder .*nowhere: check the path, or name one of bi"
    ):
        find_folder(tmp_path / "nowhere")


def test_a_missing_package_prints_its_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "PACKAGED", {"bi": "no-such-package"})
    with pytest.raises(tercet.MissingExtraError, match="pip install no-such-package"):
        find_folder("bi")
