"""The docstrings of settings, for command-line help and documentation."""

import ast
import inspect
from functools import cache
from textwrap import dedent


@cache
def field_docs(settings: type) -> dict[str, str]:
    """The docstring of each documented field of a dataclass, as one line without markup."""
    (definition,) = ast.parse(dedent(inspect.getsource(settings))).body
    if not isinstance(definition, ast.ClassDef):
        return {}
    docs: dict[str, str] = {}
    for before, after in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name):
            text = _string(after)
            if text is not None:
                docs[before.target.id] = " ".join(text.replace("``", "").split())
    return docs


def _string(node: ast.stmt) -> str | None:
    """The text of a statement that is a string, or None."""
    match node:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return text
    return None
