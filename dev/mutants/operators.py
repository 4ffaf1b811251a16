"""The changes that are tried: small, and such as somebody could make by mistake.

Docstrings, type hints, messages and what only speeds up stay as they are: no test has to notice them.
"""

from __future__ import annotations

import ast
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

_BOUNDARIES: dict[type, str] = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
_ARITHMETIC: dict[type, str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "*",
    ast.LShift: ">>", ast.RShift: "<<", ast.BitAnd: "|", ast.BitOr: "&", ast.BitXor: "&",
}  # fmt: skip
# Their bodies are for people, not for results.
_UNTRIED_FUNCTIONS = {"__repr__", "__str__", "__dir__"}
_UNTRIED_CALLS = {"print", "warn", "cast", "TypeVar", "debug", "info", "warning", "printable", "doc", "metadata"}
# Dropped or changed they alter no result: what is checked, typed, remembered or compiled.
_UNTRIED_KEYWORDS = {
    "cache", "copy", "daemon", "default_factory", "dtype", "exist_ok", "flush", "inline", "kind", "missing_ok",
    "parents", "stacklevel", "strict", "type", "typ", "zero_copy_only", "memory_map",
}  # fmt: skip


@dataclass(frozen=True, order=True)
class Mutant:
    """One change of one file: the bytes from `start` to `end` become `text`."""

    path: Path
    line: int
    operator: str
    start: int
    end: int
    text: str

    def apply(self, source: bytes) -> bytes:
        """The file with the change."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def shown(self, source: bytes) -> list[str]:
        """The first line that differs, before and after."""
        pairs = zip(source.decode().splitlines(), self.apply(source).decode().splitlines(), strict=False)
        before, after = next(pair for pair in pairs if pair[0] != pair[1])
        return [f"- {before.strip()}", f"+ {after.strip()}"]


def mutants_of(path: Path) -> list[Mutant]:
    """Every change of a file that is known here and leaves valid Python."""
    return [mutant for mutant in _found(path) if _is_valid(mutant)]


def draw(paths: list[Path], n: int, seed: int) -> list[Mutant]:
    """`n` changes: lines are drawn, then one change of each, so that a line of many numbers is no likelier."""
    by_line: defaultdict[tuple[Path, int], list[Mutant]] = defaultdict(list)
    for path in sorted(paths):
        for mutant in _found(path):
            by_line[path, mutant.line].append(mutant)
    chance = random.Random(seed)
    lines = chance.sample(sorted(by_line), len(by_line))
    # To see whether a change is valid takes longer than all else: only those that are drawn are looked at.
    chosen = (next(filter(_is_valid, chance.sample(by_line[line], len(by_line[line]))), None) for line in lines)
    return list(islice(filter(None, chosen), n))


def _found(path: Path) -> list[Mutant]:
    return sorted(set(_Finder(path, path.read_bytes()).all()))


def _is_valid(mutant: Mutant) -> bool:
    try:
        compile(mutant.apply(mutant.path.read_bytes()), "mutant", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


class _Finder:
    def __init__(self, path: Path, source: bytes) -> None:
        self.path, self.source = path, source
        lengths = [len(line) for line in source.splitlines(keepends=True)]
        self.starts = [sum(lengths[:i]) for i in range(len(lengths) + 1)]

    def all(self) -> Iterator[Mutant]:
        return self._visit(ast.parse(self.source))

    def _visit(self, node: ast.AST) -> Iterator[Mutant]:
        if _is_untried(node):
            return
        for change in _CHANGES.get(type(node), ()):
            yield from change(self, node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params", "format_spec"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self._visit(child)

    def _span(self, node: ast.AST) -> tuple[int, int]:
        start = self.starts[node.lineno - 1] + node.col_offset
        return start, self.starts[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self.source[start:end].decode()

    def _replaced(self, node: ast.AST, operator: str, text: str) -> Iterator[Mutant]:
        yield Mutant(self.path, node.lineno, operator, *self._span(node), text)

    def _symbol(self, left: ast.AST, right: ast.AST, old: str, operator: str, new: str) -> Iterator[Mutant]:
        """Replace a symbol between two operands."""
        start, end = self._span(left)[1], self._span(right)[0]
        at = self.source[start:end].find(old.encode())
        # A comment between the operands may hold the symbol, too.
        if at >= 0 and b"#" not in self.source[start:end]:
            yield Mutant(self.path, left.end_lineno, operator, start + at, start + at + len(old), new)

    def compare(self, node: ast.Compare) -> Iterator[Mutant]:
        operands = [node.left, *node.comparators]
        for left, symbol, right in zip(operands, node.ops, operands[1:], strict=False):
            if type(symbol) in _BOUNDARIES:
                new = _BOUNDARIES[type(symbol)]
                old = new.rstrip("=") if len(new) == 2 else new + "="
                yield from self._symbol(left, right, old, "boundary", new)

    def arithmetic(self, node: ast.BinOp) -> Iterator[Mutant]:
        new = _ARITHMETIC.get(type(node.op))
        if new and not any(_is_text(side) for side in (node.left, node.right)):
            yield from self._symbol(node.left, node.right, _SYMBOLS[type(node.op)], "arithmetic", new)

    def step(self, node: ast.AugAssign) -> Iterator[Mutant]:
        new = _ARITHMETIC.get(type(node.op))
        if new and not _is_text(node.value):
            yield from self._symbol(node.target, node.value, f"{_SYMBOLS[type(node.op)]}=", "arithmetic", f"{new}=")
        yield from self._replaced(node, "dropped statement", "pass")

    def constant(self, node: ast.Constant) -> Iterator[Mutant]:
        if isinstance(node.value, bool):
            yield from self._replaced(node, "constant", str(not node.value))
        elif isinstance(node.value, int | float):
            # One more of a hundred is no mistake that anybody makes.
            more, less = (2 * node.value, node.value // 2) if node.value >= 10 else (node.value + 1, node.value - 1)
            for new in (more, less):
                yield from self._replaced(node, "constant", str(new) if new >= 0 else f"({new})")

    def call_statement(self, node: ast.Expr) -> Iterator[Mutant]:
        if isinstance(node.value, ast.Call):
            yield from self._replaced(node, "dropped statement", "pass")

    def assignment(self, node: ast.Assign) -> Iterator[Mutant]:
        """Without it a name would be unknown, and everything fail; a place in something keeps what it held."""
        if all(isinstance(target, ast.Subscript | ast.Attribute) for target in node.targets):
            yield from self._replaced(node, "dropped statement", "pass")

    def condition(self, node: ast.If | ast.While | ast.IfExp) -> Iterator[Mutant]:
        yield from self._negated(node.test)

    def filters(self, node: ast.comprehension) -> Iterator[Mutant]:
        for test in node.ifs:
            yield from self._negated(test)

    def either(self, node: ast.BoolOp) -> Iterator[Mutant]:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            yield from self._symbol(left, right, old, "condition", new)

    def _negated(self, test: ast.expr) -> Iterator[Mutant]:
        yield from self._replaced(test, "condition", f"(not ({self._text(test)}))")

    def keywords(self, node: ast.Call) -> Iterator[Mutant]:
        arguments = [*node.args, *node.keywords]
        for keyword in node.keywords:
            if keyword.arg not in _UNTRIED_KEYWORDS:
                yield from self._lost(arguments, keyword)

    def elements(self, node: ast.Tuple | ast.List) -> Iterator[Mutant]:
        """Names of fields are listed as text; a tuple of one is left alone."""
        if len(node.elts) > 1 and all(_is_text(element) for element in node.elts):
            for element in node.elts:
                yield from self._lost(node.elts, element)

    def entries(self, node: ast.Dict) -> Iterator[Mutant]:
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None and len(node.keys) > 1:
                start, end = self._span(key)[0], self._span(value)[1]
                yield self._without(key.lineno, start, end)

    def _lost(self, among: list, item: ast.AST) -> Iterator[Mutant]:
        if len(among) > 1 or isinstance(item, ast.keyword):
            yield self._without(item.lineno, *self._span(item))

    def _without(self, line: int, start: int, end: int) -> Mutant:
        """Lose what is there with the comma behind it, if any."""
        rest = self.source[end:]
        if rest.lstrip().startswith(b","):
            end += rest.index(b",") + 1
        return Mutant(self.path, line, "field lost", start, end, "")

    def returned(self, node: ast.Return) -> Iterator[Mutant]:
        value = node.value
        if isinstance(value, ast.Compare | ast.BoolOp) or (
            isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)
        ):
            yield from self._replaced(value, "return value", f"(not ({self._text(value)}))")
        elif isinstance(value, ast.Tuple) and len(value.elts) > 1:
            first, second, *rest = (self._text(element) for element in value.elts)
            yield from self._replaced(value, "return value", f"({', '.join([second, first, *rest])})")
        elif isinstance(value, ast.Name | ast.Attribute | ast.Subscript | ast.Call | ast.BinOp):
            yield from self._replaced(value, "return value", "None")


_SYMBOLS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
}  # fmt: skip

_CHANGES: dict[type, tuple[Callable[..., Iterator[Mutant]], ...]] = {
    ast.Compare: (_Finder.compare,),
    ast.BinOp: (_Finder.arithmetic,),
    ast.AugAssign: (_Finder.step,),
    ast.Constant: (_Finder.constant,),
    ast.Expr: (_Finder.call_statement,),
    ast.Assign: (_Finder.assignment,),
    ast.If: (_Finder.condition,),
    ast.While: (_Finder.condition,),
    ast.IfExp: (_Finder.condition,),
    ast.comprehension: (_Finder.filters,),
    ast.BoolOp: (_Finder.either,),
    ast.Call: (_Finder.keywords,),
    ast.Tuple: (_Finder.elements,),
    ast.List: (_Finder.elements,),
    ast.Dict: (_Finder.entries,),
    ast.Return: (_Finder.returned,),
}


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _is_untried(node: ast.AST) -> bool:
    match node:
        case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return True
        case ast.FunctionDef(name=name):
            return name in _UNTRIED_FUNCTIONS
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in _UNTRIED_CALLS
        case ast.Expr(value=ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name))):
            return name in _UNTRIED_CALLS
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name.startswith("__") or name in ("paper", "name")
        case ast.keyword(arg=name):
            return name in _UNTRIED_KEYWORDS
    return False
