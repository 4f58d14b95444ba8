"""Names of models: packaged, folders, and the hub, offline first."""

import shutil
from collections.abc import Callable
from pathlib import Path

import huggingface_hub.constants
import pytest

import tercet
from tercet.models import sources
from tercet.models.sources import find_folder, lasting_name


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
@pytest.mark.parametrize("name", sources.PACKAGED)
def test_a_packaged_model_loads_without_the_network(name: str) -> None:
    assert tercet.load(name, device="cpu").kind == name


@pytest.mark.usefixtures("hub_cache")
def test_a_hub_model_that_cannot_be_fetched_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(
        tercet.ModelError, match=r"org/other is no folder here, not in the Hugging Face cache"
    ):
        find_folder("org/other")


def test_a_missing_path_is_named_with_the_choices(tmp_path: Path) -> None:
    with pytest.raises(
        tercet.ModelError, match=r"no folder .*nowhere: check the path, or name one of bi, poly, cross"
    ):
        find_folder(tmp_path / "nowhere")


def test_a_missing_package_prints_its_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "BACKBONE", "no-such-package")
    with pytest.raises(tercet.MissingExtraError, match="pip install no-such-package"):
        find_folder("bi")


def test_a_folder_that_is_called_like_a_packaged_model_is_meant_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("poly").mkdir()
    assert find_folder("./poly") == find_folder(Path("poly")) == Path("poly")
    assert lasting_name("./poly") == str(tmp_path / "poly")
    with pytest.warns(UserWarning, match=r"poly is the model that comes with tercet; .* write \./poly"):
        assert find_folder("poly") == sources.OWN_MODELS / "poly"
    assert lasting_name("poly") == "poly"


def test_a_packaged_model_that_was_not_installed_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "OWN_MODELS", tmp_path)
    with pytest.raises(tercet.ModelError, match=r"own model cross is missing at .*: install tercet again"):
        find_folder("cross")


def test_what_was_learnt_alone_is_no_encoder_to_build_on() -> None:
    with pytest.raises(tercet.ModelError, match="no encoder to build on: name the model that it began with"):
        tercet.CrossEncoder.from_backbone("cross", device="cpu")


@pytest.mark.parametrize("name", ["", " "])
def test_an_empty_name_is_no_folder(name: str) -> None:
    with pytest.raises(tercet.ModelError, match="a model's name is empty: name one of bi, poly, cross"):
        find_folder(name)
