"""The files of the packaged backbone are checked before they are used."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import tercet
from tercet.errors import ModelError
from tercet.formats import backbone
from tercet.formats.fingerprints import stored_fingerprint


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A second package with the same files."""
    original = backbone.backbone_folder()
    package = tmp_path / "other_package"
    folder = package / "model"
    package.mkdir()
    (package / "__init__.py").touch()
    shutil.copytree(original, folder)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(backbone, "FOLDERS", {"no_such_package": "x", "other_package": "model"})
    return folder


def test_another_package_with_the_same_files_is_accepted(copy: Path) -> None:
    assert backbone.backbone_folder() == copy
    assert tercet.load("bi").rank("a library", ["tea", "books"], k=1)[0].position == 1


@pytest.mark.parametrize("name", backbone.DIGESTS)
def test_a_changed_file_is_refused_with_the_way_to_restore_it(copy: Path, name: str) -> None:
    with (copy / name).open("ab") as file:
        file.write(b" ")
    with pytest.raises(ModelError, match=r"is not the file that tercet was made with.*--force-reinstall"):
        tercet.load("bi")


def test_a_missing_file_is_refused(copy: Path) -> None:
    (copy / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"tokenizer\.json is not the file .*SHA-256 missing"):
        tercet.load("poly")


def test_the_stored_fingerprint_is_that_of_the_weights(minilm: tercet.BiEncoder) -> None:
    assert minilm.fingerprint == backbone.FINGERPRINT


def test_a_stored_fingerprint_counts_only_while_no_file_has_changed(
    tiny: tercet.BiEncoder, tmp_path: Path
) -> None:
    folder = tiny.save(tmp_path / "model")
    assert stored_fingerprint(folder) == tiny.fingerprint
    (folder / "README.md").write_text("another card")
    assert stored_fingerprint(folder) == tiny.fingerprint
    with (folder / "tokenizer.json").open("a") as file:
        file.write("\n")
    assert stored_fingerprint(folder) is None
    assert tercet.load(folder, runtime="openvino").fingerprint == tiny.fingerprint


def test_an_edited_setting_in_the_manifest_ends_the_trust_in_the_fingerprint(
    tiny_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    config = tercet.PolyConfig(codes=4)
    folder = tercet.PolyEncoder.from_backbone(tiny_folder("bert"), config=config).save(tmp_path / "model")
    manifest = json.loads((folder / "tercet.json").read_text())
    manifest["config"]["candidate_scale"] = 3.0
    (folder / "tercet.json").write_text(json.dumps(manifest))
    assert stored_fingerprint(folder) is None
    changed = tercet.load(folder, runtime="openvino")
    assert changed.fingerprint == tercet.load(folder, device="cpu").fingerprint != manifest["fingerprint"]


def test_packaged_models_have_the_fingerprint_of_their_weights() -> None:
    for name in ("bi-ko", "poly", "cross"):
        folder = Path(tercet.__file__).parent / "weights" / name
        assert stored_fingerprint(folder) == tercet.load(name, device="cpu").fingerprint
