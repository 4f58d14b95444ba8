"""Mutants of a source file: copies that differ by one small fault."""

import ast
import copy
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
NOT_RUN = {"annotation", "returns", "decorator_list"}
"""Fields of nodes that say nothing about what the code computes."""


@dataclass(frozen=True)
class Mutant:
    """A changed source. ``before`` and ``after`` are the changed lines, without indentation."""

    file: str
    function: str
    line: int
    before: str
    after: str
    source: str

    @property
    def diff(self) -> str:
        """The change as a few readable lines."""
        old, new = self.before.splitlines(), self.after.splitlines()
        changed = [line for line in difflib.ndiff(old, new) if line[0] in "-+"]
        place = f"{self.file}:{self.line} in {self.function}"
        return "\n".join([place, *(f"    {line}" for line in changed)])


def sample_of(mutants: Sequence[Mutant], count: int, *, seed: int) -> list[Mutant]:
    """``count`` mutants, or all if there are fewer; the same ones after other lines have changed."""

    def drawn(mutant: Mutant) -> bytes:
        place = (seed, mutant.file, mutant.function, mutant.before, mutant.after)
        return blake2b(repr(place).encode()).digest()

    return sorted(mutants, key=drawn)[:count]


def mutants_of(root: Path, file: str) -> list[Mutant]:
    """All mutants of a file, in the order of its lines."""
    source = (root / file).read_bytes()
    found = []
    for function, node, replacement in _changes(ast.parse(source)):
        changed = _spliced(source, node, replacement)
        if changed is not None:
            first, before, after = _changed_lines(source.decode(), changed)
            found.append(Mutant(file, function, first, before, after, changed))
    return list({mutant.source: mutant for mutant in found}.values())


def _changes(tree: ast.Module) -> Iterator[tuple[str, ast.AST, ast.AST]]:
    """The function, the node to replace and its replacement, for each mutant."""
    for function, node in _visit(tree, "<module>"):
        for replacement in [*_changed_expression(node), *_changed_statement(node)]:
            yield function, node, replacement
        for part in _conditions(node):
            yield function, part, ast.UnaryOp(ast.Not(), part)
        for part in _text_defaults(node):
            yield function, part, ast.Constant(part.value + "x")


def _visit(node: ast.AST, function: str) -> Iterator[tuple[str, ast.AST]]:
    """All nodes that take part in a computation, with the name of their function."""
    if _is_exempt(node):
        return
    yield function, node
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        function = node.name if function == "<module>" else f"{function}.{node.name}"
    for name, value in ast.iter_fields(node):
        if name not in NOT_RUN:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _visit(child, function)


def _is_exempt(node: ast.AST) -> bool:
    """Types, docstrings, formatted messages, and ``zip(strict=True)``, which only states what holds."""
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.JoinedStr():
            return True
        case ast.AnnAssign(annotation=ast.Name(id="TypeAlias")) | ast.keyword(arg="strict"):
            return True
        case ast.Expr(value=ast.Constant()):
            return True
    return False


def _changed_expression(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(ops=[operator]):
            for other in COMPARISONS[type(operator)]:
                yield _with(node, ops=[other()])
        case ast.BinOp(op=operator) if type(operator) in ARITHMETIC:
            yield _with(node, op=ARITHMETIC[type(operator)]())
        case ast.BoolOp(op=operator):
            yield _with(node, op=ast.Or() if isinstance(operator, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))
        case ast.Constant(value=float(value)):
            yield ast.Constant(2 * value if value else 1.0)


def _changed_statement(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Delete():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield ast.Return(ast.Constant(None))
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()


def _conditions(node: ast.AST) -> Iterator[ast.expr]:
    """The condition of an ``if``, ``while`` or ``x if y else z``, unless it is changed as an operator."""
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            if not isinstance(test, ast.Compare | ast.UnaryOp):
                yield test


def _text_defaults(node: ast.AST) -> Iterator[ast.Constant]:
    """The defaults of arguments that are strings."""
    match node:
        case ast.arguments(defaults=defaults, kw_defaults=kw_defaults):
            for default in [*defaults, *kw_defaults]:
                if isinstance(default, ast.Constant) and isinstance(default.value, str):
                    yield default


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _spliced(source: bytes, node: ast.AST, replacement: ast.AST) -> str | None:
    """The source with the text of a node replaced; None if the result is not Python."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    begin, end = (
        starts[node.lineno - 1] + node.col_offset,
        starts[node.end_lineno - 1] + node.end_col_offset,
    )
    text = ast.unparse(replacement)
    if isinstance(replacement, ast.expr) and not isinstance(replacement, ast.Constant | ast.Name):
        text = f"({text})"
    changed = (source[:begin] + text.encode() + source[end:]).decode()
    try:
        ast.parse(changed)
    except SyntaxError:
        return None
    return changed


def _changed_lines(old: str, new: str) -> tuple[int, str, str]:
    """The number of the first line that differs, and the lines that differ before and after."""
    a, b = old.splitlines(), new.splitlines()
    first = next(i for i, (left, right) in enumerate(zip(a, b, strict=False)) if left != right)
    rest = min(len(a), len(b)) - first
    same = next((i for i in range(rest) if a[-1 - i] != b[-1 - i]), rest)
    before, after = ("\n".join(line.strip() for line in lines[first : len(lines) - same]) for lines in (a, b))
    return first + 1, before, after
