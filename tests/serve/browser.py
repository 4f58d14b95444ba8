"""A real server with the packaged models, and a real browser, for tests of the playground."""

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
START_SECONDS = 120
ADDRESS = re.compile(r"(?:Loading models for|tercet serves) (http://\S+)")


@contextmanager
def serving(*arguments: str, until: str = "tercet serves", **environment: str) -> Iterator[str]:
    """The address of a server on a free port, which ends with the block.

    Args:
        until: the line to wait for; "Loading models" does not wait for the models.
    """
    command = [sys.executable, "-m", "tercet", "serve", "--port", "0", *arguments]
    process = subprocess.Popen(
        command,
        env={**os.environ, "COLUMNS": "200", **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    late = threading.Timer(START_SECONDS, process.kill)
    late.start()
    try:
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if until in line:
                break
        found = ADDRESS.search(lines[-1]) if lines else None
        assert found, "the server did not start: " + "".join(lines)
        late.cancel()
        threading.Thread(target=process.stderr.read, daemon=True).start()  # else the pipe fills up
        yield found[1]
    finally:
        late.cancel()
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=20)
        process.kill()
        process.wait()


def wait_until_ready(address: str) -> None:
    """Wait until the models of a server are loaded."""
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            with urlopen(f"{address}/health/ready", timeout=START_SECONDS):
                return
        except OSError:  # 503, or it does not listen yet
            assert time.monotonic() < end, "the server is not ready"
            time.sleep(0.2)


@contextmanager
def browsing() -> Iterator["Browser"]:
    """A headless Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(browser: "Browser", address: str, **options: Any) -> Iterator["Page"]:
    """The page, loaded; afterwards, it must have caused neither errors nor violations of its policy."""
    context = browser.new_context(
        **{"locale": "en-US", "viewport": {"width": 1440, "height": 900}, **options}
    )
    context.set_default_timeout(20_000)
    problems: list[str] = []
    page = context.new_page()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.goto(address)
    page.wait_for_selector("#rank-empty .kinds li", state="attached")
    yield page
    context.close()
    expected = "Failed to load resource"  # Chromium's note on an answer that is an error
    assert [problem for problem in problems if expected not in problem] == []


def write(page: "Page", turns: list[str], candidates: list[str]) -> None:
    """Type a context and candidates."""
    page.fill("#candidates", "\n".join(candidates))
    boxes = page.locator("#turns textarea")
    for position, turn in enumerate(turns):
        if position:
            page.click("#add-turn")
        boxes.nth(position).fill(turn)


def wait_for_ranks(page: "Page") -> None:
    """Wait until all columns are filled."""
    page.wait_for_selector("#columns[aria-busy=false] .column:last-child .candidate .score", timeout=60_000)


def rank(page: "Page", turns: list[str], candidates: list[str]) -> None:
    """Type a context and candidates, and wait for the ranks."""
    write(page, turns, candidates)
    page.click("#rank-run")
    wait_for_ranks(page)


def column(page: "Page", model: str) -> "Locator":
    """The candidates in the column of a model."""
    return page.locator(f'.column[data-model="{model}"] .candidate')


def shown_texts(page: "Page", model: str) -> list[str]:
    """The texts in the column of a model, best first."""
    return page.locator(f'.column[data-model="{model}"] .candidate .text').all_text_contents()
