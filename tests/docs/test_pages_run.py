"""The code of the pages prints what they show."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from run_pages import BLOCK, PAGES, Page, PageError

ROOT = Path(__file__).parents[2]
RUNNER = ROOT / "docs" / "_ext" / "run_pages.py"
QUICK = {"how-it-works", "migrate"}
"""Pages that take a few seconds; the others load several models, train or start a server."""
NEEDED = {"tutorials/server": ("openai",), "tutorials/few-labels": ("peft", "tantivy")}


def ran(page: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(RUNNER), str(page)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=390, env=environment)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in PAGES]
)
def test_the_page_shows_what_its_code_prints(name: str) -> None:
    for package in NEEDED.get(name, ()):
        pytest.importorskip(package)
    done = ran(ROOT / "docs" / f"{name}.md")
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_page_with_output_runs() -> None:
    """A page that shows the output of Python code is listed, so that the output stays true."""
    pages = {
        page.relative_to(ROOT / "docs").with_suffix("").as_posix()
        for page in (ROOT / "docs").rglob("*.md")
        if any(found["kind"] == "text" for found in BLOCK.finditer(page.read_text(encoding="utf-8")))
    }
    assert pages <= set(PAGES)


def new_text(text: str, folder: Path) -> str:
    page = Page(folder)
    try:
        return page.new_text(text)
    finally:
        page.close()


def test_a_wrong_output_is_replaced(tmp_path: Path) -> None:
    page = "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n"
    assert new_text(page, tmp_path) == page.replace("3", "2")


def test_a_command_runs_in_the_folder_of_the_page(tmp_path: Path) -> None:
    page = "<!-- file: a.txt -->\n```text\nhello\n```\n\n```console\n$ cat a.txt\n```\n"
    assert new_text(page, tmp_path) == page.replace("a.txt\n```\n", "a.txt\nhello\n```\n")


def test_a_block_that_is_not_run_stays(tmp_path: Path) -> None:
    page = "<!-- not run -->\n```python\nraise SystemExit\n```\n"
    assert new_text(page, tmp_path) == page


def test_a_failing_command_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PageError, match="status 2"):
        new_text("```console\n$ exit 2\n```\n", tmp_path)


def test_output_that_no_block_shows_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PageError, match="no text block"):
        new_text("```python\nprint(1)\n```\n", tmp_path)
