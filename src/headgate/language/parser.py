"""Texts to trees, by LALR(1), once per shape.

For a shape the leaves of the tree are holes. `Template.fill` is generated from that tree: a function that builds the
same tree around the names and literals of one text. Definitions (CREATE STREAM, PREFIX, ...) are few and are parsed
directly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from importlib.resources import files
from threading import Lock
from typing import Any, cast

from lark import Lark, Token
from lark.exceptions import UnexpectedToken
from lark.lexer import Lexer

from headgate.errors import LanguageError, SyntaxProblem
from headgate.language import ast
from headgate.language.ast import Hole, Node
from headgate.language.build import FORMS, Build, value_of
from headgate.language.expected import unexpected
from headgate.language.tokens import HOLES, KINDS, LIMITS, Limits, Tokens, statements, tokenise

_KEPT = frozenset((*HOLES, "A", "TRUE", "FALSE", "NULL", "DUR", "GRAPH", "HOM", "SELECT", "FILTER"))
TERMINALS = {kind: kind if kind in _KEPT else "_" + kind for kind in KINDS}
_SHAPES = 20_000
"""How many shapes are kept; past that the cache starts anew."""


class _Feed(Lexer):
    """Hands our tokens to lark; a token's `start_pos` is its index."""

    def __init__(self, lexer_conf: Any) -> None:
        pass

    def lex(self, data: Any, parser_state: Any = None) -> Iterator[Token]:
        for i, (kind, raw) in enumerate(zip(data.kinds, data.raws, strict=True)):
            yield Token(TERMINALS[kind], raw, start_pos=i)


_build = Build()
_lock = Lock()
"""lark holds one transformer per parser, so one parse at a time."""


@lru_cache(maxsize=1)
def _lark() -> Lark:
    grammar = files("headgate.language").joinpath("grammar.lark").read_text("utf-8")
    declared = " ".join(TERMINALS.values())
    return Lark(f"{grammar}\n%declare {declared}", parser="lalr", lexer=_Feed, transformer=_build)


def _reduce(tokens: Tokens, *, holes: bool) -> Node:
    tokens.check()
    with _lock:
        _build.begin(tokens, holes)
        try:
            return cast(Node, _lark().parse(cast(str, tokens)))
        except UnexpectedToken as e:
            raise tokens.error(unexpected(tokens, e)) from None
        except LanguageError as problem:
            raise tokens.error(problem) from None


def reduce_holes(tokens: Tokens) -> Node:
    """The tree of a text with a hole for every name and literal; a hole's number is its token."""
    return _reduce(tokens, holes=True)


@dataclass(frozen=True, slots=True)
class Template:
    """What all texts of one shape share: the tree with holes, and how to fill it."""

    tree: Node
    holes: tuple[int, ...]
    """The tokens whose values a text brings, in order."""
    build: Callable[[list[Any]], Node]

    def fill(self, tokens: Tokens) -> Node:
        return self.build([value_of(tokens, i) for i in self.holes])


_templates: dict[str, Template] = {}


def template(tokens: Tokens) -> Template:
    """The template of the text's shape, parsed when it is first seen."""
    found = _templates.get(tokens.shape)
    if found is None:
        tree = _reduce(tokens, holes=True)
        used: dict[int, int] = {}
        source = _source(tree, used)
        build: Callable[[list[Any]], Node]
        if _nesting(source) <= _PYTHON_NESTING:
            build = eval(f"lambda v: {source}", {**vars(ast), **{f: g for f, g in FORMS.items() if f}})  # noqa: S307 - the source is generated from our own nodes, texts enter only as values
        else:
            build = partial(_filled, tree, used)
        found = Template(tree, tuple(used), build)
        if len(_templates) >= _SHAPES:
            _templates.clear()
        _templates[tokens.shape] = found
    return found


def _source(value: Any, used: dict[int, int]) -> str:
    """Python text that builds `value`, with `v[i]` for its holes."""
    if isinstance(value, Hole):
        slot = f"v[{used.setdefault(value.token, len(used))}]"
        return f"{value.form}({slot})" if value.form else slot
    parts = []
    if isinstance(value, Node):
        for f in fields(value):
            parts.append(f"{f.name}={_source(getattr(value, f.name), used)}")  # noqa: PERF401 - a comprehension takes a frame more a level
        return f"{type(value).__name__}({', '.join(parts)})"
    if isinstance(value, tuple):
        for item in value:
            parts.append(_source(item, used))  # noqa: PERF401 - a comprehension takes a frame more a level
        return f"({', '.join(parts)},)" if parts else "()"
    return repr(value)


def _nesting(source: str) -> int:
    """How deep the parentheses of generated text go; a text in quotes may only make it seem deeper."""
    depth = deepest = 0
    for sign in _PARENTHESIS.findall(source):
        depth += 1 if sign == "(" else -1
        deepest = max(deepest, depth)
    return deepest


_PARENTHESIS = re.compile(r"[()]")
_PYTHON_NESTING = 150
"""Python's own parser gives up at 200."""


def _filled(value: Any, used: dict[int, int], values: list[Any]) -> Any:
    """The same as the generated function, for trees that are too deep for one."""
    if isinstance(value, Hole):
        return FORMS[value.form](values[used[value.token]])
    if isinstance(value, Node):
        made = {}
        for f in fields(value):
            made[f.name] = _filled(getattr(value, f.name), used, values)
        return type(value)(**made)
    if isinstance(value, tuple):
        items = []
        for item in value:
            items.append(_filled(item, used, values))  # noqa: PERF401 - a comprehension takes a frame more a level
        return tuple(items)
    return value


def parse_tokens(tokens: Tokens) -> Node:
    if tokens.kinds[0] in _DEFINITIONS and tokens.kinds[:2] != ["CREATE", "SUBSCRIPTION"]:
        return _reduce(tokens, holes=False)
    tokens.check()
    try:
        return template(tokens).fill(tokens)
    except LanguageError as problem:
        if problem.place is None:
            _reduce(tokens, holes=False)  # the same problem again, but now it knows its place
        raise tokens.error(problem) from None


_DEFINITIONS = frozenset({"CREATE", "DROP", "PREFIX"})


def parse_body(text: str, limits: Limits = LIMITS) -> Node:
    """The body of a subscription: a predicate, or SELECT ... FROM ...."""
    tokens = tokenise(text, limits)
    node = parse_tokens(tokens)
    if isinstance(node, ast.Statement):
        raise tokens.error(SyntaxProblem("this is a statement, not the body of a subscription", at=0))
    return node


def parse_statement(tokens: Tokens) -> ast.Statement:
    node = parse_tokens(tokens)
    if not isinstance(node, ast.Statement):
        hint = "write CREATE SUBSCRIPTION name ON stream AS ..."
        raise tokens.error(SyntaxProblem("a script holds statements", hint, at=0))
    return node


def parse_script(text: str, limits: Limits = LIMITS) -> list[ast.Statement]:
    """All statements of a script; the first mistake is raised. `check_script` reports them all."""
    return [parse_statement(tokens) for tokens in statements(text, limits)]
