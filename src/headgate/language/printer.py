"""Trees back to texts: `parse(print_node(x)) == x` for every tree that the parser makes.

Parentheses stand only where the grammar needs them, names are quoted only where they would be read as something else.
One function a node, found by the node's class; an expression knows how tightly it binds, so that its surroundings can
decide about parentheses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from headgate.language import ast
from headgate.language.ast import Node
from headgate.language.tokens import KEYWORDS, RESERVED

_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _UNARY, _PRIMARY = range(8)
_WORD = re.compile(r"[^\W\d]\w*")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_RDF_TYPE = ast.Name("rdf:type")


_TEXTS: dict[type[Any], Callable[[Any], str]] = {}
"""A table, not `singledispatch`, whose wrapper would take one more frame for each level of a deep tree."""


def print_node(node: Node) -> str:
    """The text of a statement, a body or any part of one."""
    return _TEXTS[type(node)](node)


def print_script(statements: Iterable[ast.Statement]) -> str:
    """A script: one statement a line."""
    return "".join(f"{print_node(statement)};\n" for statement in statements)


def _prints(*kinds: type[Any]) -> Callable[[Callable[[Any], str]], Callable[[Any], str]]:
    def register(text: Callable[[Any], str]) -> Callable[[Any], str]:
        _TEXTS.update(dict.fromkeys(kinds, text))
        return text

    return register


# ------------------------------------------------------------------- names


def _quoted(part: str) -> str:
    return "`" + part.replace("`", "``") + "`"


def print_name(name: str, keywords: Iterable[str] = RESERVED) -> str:
    """A name that may hold dots; quoted where it would not be read as that name."""
    path = tuple(name.split("."))
    return print_path(path, keywords) if all(map(_WORD.fullmatch, path)) else _quoted(name)


def print_path(path: ast.Path, keywords: Iterable[str] = RESERVED) -> str:
    if len(path) == 1 and path[0].upper() in keywords:
        return _quoted(path[0])
    return ".".join(part if _WORD.fullmatch(part) else _quoted(part) for part in path)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _alias(alias: str | None) -> str:
    return "" if alias is None else f" AS {print_name(alias)}"


# ------------------------------------------------------------------ values


@_prints(ast.Literal)
def _(node: ast.Literal) -> str:
    value = node.value
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return _text(value) if isinstance(value, str) else repr(value)


@_prints(ast.Instant)
def _(node: ast.Instant) -> str:
    return f"TIMESTAMP {_text(node.text)}"


@_prints(ast.Span)
def _(node: ast.Span) -> str:
    return f"{node.amount!r} {node.unit}{'' if node.amount == 1 else 'S'}"


@_prints(ast.Attribute)
def _(node: ast.Attribute) -> str:
    return f"{node.scope}.{print_path(node.path, ())}" if node.scope else print_path(node.path)


@_prints(ast.Every)
def _(node: ast.Every) -> str:
    return f"ALL({print_node(node.attribute)})"


@_prints(ast.Variable)
def _(node: ast.Variable) -> str:
    return f"?{node.name}"


@_prints(ast.Duration)
def _(_: ast.Duration) -> str:
    return "DUR"


# ------------------------------------------------------------- expressions

_TIGHTNESS: dict[type[Node], int] = {
    ast.Or: _OR,
    ast.And: _AND,
    ast.Not: _NOT,
    **dict.fromkeys((ast.Compare, ast.Between, ast.In, ast.Test, ast.IsNull), _COMPARISON),
    ast.Negate: _UNARY,
}
_NEGATED = (ast.Between, ast.In, ast.Test, ast.IsNull)
"""Predicates with a form of their own for NOT."""


def _tightness(node: Node) -> int:
    if isinstance(node, ast.Arithmetic):
        return _SUM if node.op in "+-" else _PRODUCT
    if isinstance(node, ast.Not) and isinstance(node.operand, _NEGATED):
        return _COMPARISON
    if isinstance(node, ast.Literal) and isinstance(node.value, int | float) and repr(node.value)[0] == "-":
        return _UNARY
    return _TIGHTNESS.get(type(node), _PRIMARY)


def _inside(node: Node, least: int) -> str:
    """The text of a part; in parentheses if it binds less tightly than its place asks for."""
    text = _TEXTS[type(node)](node)
    return text if _tightness(node) >= least else f"({text})"


def _listed(nodes: Iterable[Node], least: int = _SUM) -> str:
    parts = []
    for node in nodes:
        parts.append(_inside(node, least))  # noqa: PERF401 - a comprehension takes a frame more a level
    return ", ".join(parts)


@_prints(ast.Arithmetic)
def _(node: ast.Arithmetic) -> str:
    own = _tightness(node)
    return f"{_inside(node.left, own)} {node.op} {_inside(node.right, own + 1)}"


@_prints(ast.Negate)
def _(node: ast.Negate) -> str:
    if node.operand == ast.Literal(0):
        return f"-(-{print_node(node.operand)})"  # -0 is a literal, equal to 0
    return f"-{_inside(node.operand, _PRIMARY)}"  # never two signs in a row: -- begins a comment


@_prints(ast.Function)
def _(node: ast.Function) -> str:
    return f"{node.name}({_listed(node.operands)})"


@_prints(ast.Call)
def _(node: ast.Call) -> str:
    return f"{print_name(node.name)}({_listed(node.arguments)})"


@_prints(ast.Compare)
def _(node: ast.Compare) -> str:
    return f"{_inside(node.left, _SUM)} {node.op} {_inside(node.right, _SUM)}"


@_prints(ast.Between, ast.In, ast.Test, ast.IsNull)
def _(node: Node) -> str:
    return _comparison(node)


def _comparison(node: Node, invert: str = "") -> str:
    """The comparisons that are written in words; `invert` is empty or "NOT "."""
    match node:
        case ast.Between(operand, low, high):
            return f"{_inside(operand, _SUM)} {invert}BETWEEN {_inside(low, _SUM)} AND {_inside(high, _SUM)}"
        case ast.In(operand, items):
            return f"{_inside(operand, _SUM)} {invert}IN ({_listed(items)})"
        case ast.Test(name, (operand, other, *escape)):
            tail = f" ESCAPE {_inside(escape[0], _SUM)}" if escape else ""
            return f"{_inside(operand, _SUM)} {invert}{name} {_inside(other, _SUM)}{tail}"
        case ast.IsNull(operand):
            return f"{_inside(operand, _SUM)} IS {invert}NULL"
    raise AssertionError(f"{type(node).__name__} is no comparison")


@_prints(ast.Not)
def _(node: ast.Not) -> str:
    if isinstance(node.operand, _NEGATED):
        return _comparison(node.operand, "NOT ")
    return f"NOT {_inside(node.operand, _NOT)}"


@_prints(ast.And, ast.Or)
def _(node: ast.And | ast.Or) -> str:
    least, word = (_NOT, " AND ") if isinstance(node, ast.And) else (_AND, " OR ")
    parts = []
    for item in node.items:
        parts.append(_inside(item, least))  # noqa: PERF401 - a comprehension takes a frame more a level
    return word.join(parts)


# ------------------------------------------------------------------ graphs


@_prints(ast.Iri)
def _(node: ast.Iri) -> str:
    return f"<{node.text}>"


@_prints(ast.Name)
def _(node: ast.Name) -> str:
    return node.text


@_prints(ast.Blank)
def _(node: ast.Blank) -> str:
    return f"_:{node.label}"


def _rdf_text(value: str) -> str:
    return '"' + "".join(_ESCAPES.get(c, c) for c in value) + '"'


@_prints(ast.Term)
def _(node: ast.Term) -> str:
    if node.language is not None:
        return f"{_rdf_text(node.text)}@{node.language}"
    return _rdf_text(node.text) + ("" if node.datatype is None else f"^^{print_node(node.datatype)}")


def _vertex(node: Node) -> str:
    if isinstance(node, ast.Literal) and isinstance(node.value, str):
        return _rdf_text(node.value)
    if isinstance(node, ast.Attribute):
        return _quoted("a") if node.path == ("a",) else print_path(node.path, KEYWORDS)
    return print_node(node)


@_prints(ast.Triple)
def _(node: ast.Triple) -> str:
    verb = "a" if node.predicate == _RDF_TYPE else print_node(node.predicate)
    return f"{_vertex(node.subject)} {verb} {_vertex(node.object)}"


@_prints(ast.Graph)
def _(node: ast.Graph) -> str:
    column = "" if node.column is None else print_path(node.column.path, KEYWORDS) + " "
    parts = [print_node(triple) for triple in node.triples] + [f"FILTER ({print_node(f)})" for f in node.filters]
    return f"GRAPH {'HOM ' if node.hom else ''}{column}{{ {' . '.join(parts)} }}"


# --------------------------------------------------------------- sequences


def _braces(predicate: Node) -> str:
    return "" if predicate == ast.TRUE else f" {{{print_node(predicate)}}}"


def _source(node: Node) -> str:
    """What stands on the right of a step: only steps themselves need parentheses there."""
    text = print_node(node)
    return f"({text})" if isinstance(node, ast.Next | ast.Fold | ast.Absent) else text


@_prints(ast.Stream)
def _(node: ast.Stream) -> str:
    return print_name(node.name) + _alias(node.alias)


@_prints(ast.Filter)
def _(node: ast.Filter) -> str:
    return f"FILTER {{{print_node(node.predicate)}}} ({print_node(node.source)}){_alias(node.alias)}"


@_prints(ast.Nested)
def _(node: ast.Nested) -> str:
    return f"({print_node(node.pattern)}){_alias(node.alias)}"


@_prints(ast.Union)
def _(node: ast.Union) -> str:
    return f"({print_node(node.left)} UNION {print_node(node.right)}){_alias(node.alias)}"


@_prints(ast.Next)
def _(node: ast.Next) -> str:
    return f"{print_node(node.left)} NEXT{_braces(node.theta)} {_source(node.right)}"


@_prints(ast.Fold)
def _(node: ast.Fold) -> str:
    keep = [] if node.keep == ast.TRUE else [node.keep]
    parts = [print_node(part) for part in (node.theta, *keep, *node.aggregates)]
    return f"{print_node(node.left)} FOLD {{{', '.join(parts)}}} {_source(node.right)}"


@_prints(ast.Absent)
def _(node: ast.Absent) -> str:
    step = f"ABSENT{_braces(node.theta)} {_source(node.right)} WITHIN {print_node(node.within)}"
    return f"{print_node(node.left)} {step}"


@_prints(ast.Aggregate)
def _(node: ast.Aggregate) -> str:
    operand = "*" if node.operand is None else _inside(node.operand, _SUM)
    return f"{node.function}({operand}) AS {print_name(node.name)}"


@_prints(ast.Recurrence)
def _(node: ast.Recurrence) -> str:
    return f"{print_node(node.step)} AS {print_name(node.name)} INIT {print_node(node.start)}"


@_prints(ast.Item)
def _(node: ast.Item) -> str:
    return "*" if node.expression is None else print_node(node.expression) + _alias(node.name)


@_prints(ast.Pattern)
def _(node: ast.Pattern) -> str:
    publish = "" if node.publish is None else f" PUBLISH {print_name(node.publish)}"
    items = ", ".join([print_node(item) for item in node.items])
    return f"SELECT {items} FROM {print_node(node.source)}{publish}"  # noqa: S608 - our language, not SQL


# -------------------------------------------------------------- statements


@_prints(ast.ColumnDefinition)
def _(node: ast.ColumnDefinition) -> str:
    default = "" if node.default is None else f" DEFAULT {print_node(node.default)}"
    return f"{print_path(node.path)} {node.type}{default}{' NOT NULL' if node.not_null else ''}"


@_prints(ast.CreateStream)
def _(node: ast.CreateStream) -> str:
    columns = ", ".join([print_node(column) for column in node.columns])
    time = f" TIME {', '.join(map(print_path, node.time))}" if node.time else ""
    template = "" if node.graph is None else f" AS {print_node(node.graph)}"
    return f"CREATE STREAM {print_name(node.name)} ({columns}){time}{template}"


@_prints(ast.Prefix)
def _(node: ast.Prefix) -> str:
    return f"PREFIX {node.name}: <{node.iri}>"


@_prints(ast.CreateOntology)
def _(node: ast.CreateOntology) -> str:
    return f"CREATE ONTOLOGY {print_name(node.name)} FROM {_text(node.source)}"


@_prints(ast.Option)
def _(node: ast.Option) -> str:
    return f"{print_name(node.name)} = {print_node(node.value)}"


@_prints(ast.CreateSubscription)
def _(node: ast.CreateSubscription) -> str:
    stream = "" if node.stream is None else f" ON {print_name(node.stream)}"
    options = f" WITH ({', '.join([print_node(o) for o in node.options])})" if node.options else ""
    return f"CREATE SUBSCRIPTION {print_name(node.name)}{stream}{options} AS {print_node(node.body)}"


@_prints(ast.Drop)
def _(node: ast.Drop) -> str:
    return f"DROP {node.kind} {print_name(node.name)}"
