"""The site builds without a warning, its links lead somewhere, and it needs no network."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


class Page(HTMLParser):
    """The links, the anchors and the loaded files of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.loaded: list[str] = []
        self.headings: list[int] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.add(given.get("id", ""))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in ("script", "img", "iframe", "source"):
            self.loaded.append(given.get("src", ""))
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(given.get("href", ""))
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sphinx", reason="needs tercet[docs]")
    folder = tmp_path_factory.mktemp("site")
    command = [
        "-m",
        "sphinx",
        "--fail-on-warning",
        "--keep-going",
        "--quiet",
        str(ROOT / "docs"),
        str(folder),
    ]
    built = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, timeout=300
    )
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {file.resolve(): Page(file.read_text(encoding="utf-8")) for file in site.rglob("*.html")}


def test_every_page_of_the_folder_is_on_the_site(site: Path) -> None:
    sources = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")}
    assert {name for name in sources if not (site / name).is_file()} == set()


def test_every_link_within_the_site_leads_to_a_place(pages: dict[Path, Page]) -> None:
    lost = []
    for file, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            anchors = pages[target].anchors if target in pages else None
            if not target.exists() or (
                parts.fragment and anchors is not None and unquote(parts.fragment) not in anchors
            ):
                lost.append(f"{file.name}: {link}")
    assert lost == []


def test_nothing_is_loaded_from_a_network(site: Path, pages: dict[Path, Page]) -> None:
    loaded = {each for page in pages.values() for each in page.loaded}
    assert {each for each in loaded if urlsplit(each).netloc} == set()
    styles = "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in site.rglob("*.css"))
    assert re.findall(r"@import\s+url|url\(['\"]?(?:https?:)?//", styles) == []


def test_each_page_has_one_title(pages: dict[Path, Page]) -> None:
    named = {
        file.name: page.headings
        for file, page in pages.items()
        if file.name not in ("genindex.html", "search.html")
    }
    assert {name for name, headings in named.items() if headings.count(1) != 1} == set()


def test_pictures_have_descriptions(site: Path) -> None:
    for file in site.rglob("*.html"):
        for drawing in re.findall(
            r'<div class="picture">.*?</div>', file.read_text(encoding="utf-8"), re.DOTALL
        ):
            assert re.search(r"<title id=[^>]+>\w.{30,}</title>", drawing), file.name
