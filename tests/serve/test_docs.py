"""The Python examples of docs/serve.md print what the page shows."""

import io
import re
import warnings
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from tests.serve.running import Server

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "serve.md"
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
ADDRESS = "http://127.0.0.1:8080"


def first_module(code: str) -> str:
    return re.findall(r"^(?:from|import) (\w+)", code, re.MULTILINE)[0]


@pytest.mark.parametrize(("code", "shown"), EXAMPLES, ids=[first_module(code) for code, _ in EXAMPLES])
def test_the_example_prints_what_is_shown(server: Server, code: str, shown: str) -> None:
    pytest.importorskip(first_module(code), reason="the page shows how to install it")
    printed = io.StringIO()
    with redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        exec(compile(code.replace(ADDRESS, server.url), "docs/serve.md", "exec"), {})
    assert printed.getvalue() == shown
