"""The archives of a release: what they contain, and an installation in an empty environment."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest
import yaml

import tercet
from tests.release.contents import contents, problems

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def run(*command: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["TERCET_RELEASE"] = "1"  # as make dist: requirements name no folder of this machine
    words = [str(word) for word in command]
    return subprocess.run(
        words, cwd=cwd, capture_output=True, text=True, check=False, timeout=300, env=environment
    )


def test_every_place_names_the_same_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {PROJECT["version"], tercet.__version__, citation["version"]} == {tercet.__version__}
    assert f"## {tercet.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "file", sorted((ROOT / "src/tercet/weights").glob("*/README.md")), ids=lambda file: file.parent.name
)
def test_every_model_card_has_the_version_and_the_fingerprint(file: Path) -> None:
    card = file.read_text(encoding="utf-8")
    fingerprint = json.loads((file.parent / "tercet.json").read_text(encoding="utf-8"))["fingerprint"]
    assert f"Version {tercet.__version__}" in card
    assert fingerprint in card


@pytest.mark.parametrize(
    "file", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda file: file.stem
)
def test_every_issue_template_can_be_read(file: Path) -> None:
    form = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert file.stem == "config" or {"name", "description", "body"} <= set(form)


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("dist")
    built = run(sys.executable, "-m", "hatchling", "build", "-d", folder)
    assert built.returncode == 0, built.stderr
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def python(archives: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an empty environment with the wheel; dependencies come from this environment."""
    folder = tmp_path_factory.mktemp("environment")
    assert run(sys.executable, "-m", "venv", "--without-pip", folder).returncode == 0
    python = folder / "bin" / "python"
    wheel = next(each for each in archives if each.suffix == ".whl")
    install = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        wheel,
    ]
    installed = run(*install)
    assert installed.returncode == 0, installed.stderr
    site = next((folder / "lib").glob("python*/site-packages"))
    # a path that is added later comes later: an installed copy of tercet there is not found first
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


@pytest.mark.slow
def test_wheel_and_sdist_contain_what_they_should_and_nothing_else(archives: list[Path]) -> None:
    assert [each.suffix for each in archives] == [".whl", ".gz"] or [each.suffix for each in archives] == [
        ".gz",
        ".whl",
    ]
    assert {each.name: problems(each) for each in archives} == {each.name: [] for each in archives}


@pytest.mark.slow
def test_twine_accepts_both(archives: list[Path]) -> None:
    pytest.importorskip("twine")
    checked = run(sys.executable, "-m", "twine", "check", "--strict", *archives)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.slow
def test_a_wheel_can_be_built_from_the_sdist(archives: list[Path], tmp_path: Path) -> None:
    sdist = next(each for each in archives if each.suffix == ".gz")
    wheel = next(each for each in archives if each.suffix == ".whl")
    shutil.unpack_archive(sdist, tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    assert (
        run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=source).returncode
        == 0
    )
    assert sorted(contents(next(tmp_path.glob("*.whl")))) == sorted(contents(wheel))


@pytest.mark.slow
def test_the_installed_wheel_runs(python: Path, tmp_path: Path) -> None:
    shown = run(python.parent / "tercet", "--version", cwd=tmp_path)
    assert shown.stdout == f"tercet {tercet.__version__}\n"
    ranked = run(
        python.parent / "tercet", "rank", "open?", "-c", "sample:faq.en", "--column", "question", cwd=tmp_path
    )
    assert ranked.returncode == 0, ranked.stderr
    home = run(python, "-c", "import tercet; print(tercet.__file__)", cwd=tmp_path)
    assert Path(home.stdout.strip()).is_relative_to(python.parents[1])


@pytest.mark.slow
def test_mypy_sees_the_types_of_the_installed_wheel(python: Path, tmp_path: Path) -> None:
    shutil.copy(ROOT / "tests/release/user_project.py", tmp_path / "program.py")
    checked = run(
        sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "program.py", cwd=tmp_path
    )
    assert checked.returncode == 0, checked.stdout


@pytest.mark.slow
def test_mypy_notices_a_wrong_type(python: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import tercet\n\nx: int = tercet.load('bi').rank('a', ['b'])\n")
    checked = run(
        sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "program.py", cwd=tmp_path
    )
    assert 'has type "list[Ranked]"' in checked.stdout


@pytest.mark.slow
def test_pyright_sees_the_types_of_the_installed_wheel(python: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyright", reason="needs pyright[nodejs]")
    text = (ROOT / "tests/release/user_project.py").read_text(encoding="utf-8")
    (tmp_path / "program.py").write_text(f"# pyright: strict\n{text}")
    checked = run(sys.executable, "-m", "pyright", "--pythonpath", python, "program.py", cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.slow
def test_the_list_of_contents_names_the_dependencies(tmp_path: Path) -> None:
    pytest.importorskip("cyclonedx_py", reason="needs cyclonedx-bom")
    file = tmp_path / "tercet.cdx.json"
    options = ["--pyproject", "pyproject.toml", "--output-reproducible", "--output-file", str(file)]
    listed = run(sys.executable, "-m", "cyclonedx_py", "requirements", "constraints.txt", *options)
    assert listed.returncode == 0, listed.stderr
    bom = json.loads(file.read_text(encoding="utf-8"))
    assert {"numpy", "openvino", "torch"} <= {each["name"] for each in bom["components"]}
    assert bom["metadata"]["component"]["version"] == tercet.__version__
