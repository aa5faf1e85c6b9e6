"""Small questions about the operands of atoms: is it a constant, which attributes does it read, is it a prefix test?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headgate.covering import domain
from headgate.covering.domain import Span
from headgate.covering.portion import PRESENT
from headgate.language import ast
from headgate.language.ast import Node
from headgate.language.times import instant
from headgate.language.values import arithmetic, function, negate
from headgate.schema import Schema


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that no event changes; None is NULL."""

    value: Any


def constant(node: Node) -> Constant | None:
    """The value of a term without attributes and variables."""
    match node:
        case ast.Literal(value):
            return Constant(value)
        case ast.Instant(text):
            return Constant(instant(text))
        case ast.Span(amount, unit):
            return Constant(round(amount * ast.UNITS[unit]))
        case ast.Negate(operand):
            inner = constant(operand)
            return inner and Constant(negate(inner.value))
        case ast.Arithmetic(op, left, right):
            a, b = constant(left), constant(right)
            return Constant(arithmetic(op, a.value, b.value)) if a and b else None
        case ast.Function(name, operand):
            inner = constant(operand)
            return inner and Constant(function(name, inner.value))
    return None


def attributes(node: Node) -> Iterator[ast.Attribute]:
    return (n for n in ast.walk(node) if isinstance(n, ast.Attribute))


def quantified(node: Node, schema: Schema) -> bool:
    """Whether an ARRAY stands in the atom: then it speaks of elements, and atoms on them exclude nothing."""
    for n in ast.walk(node):
        if isinstance(n, ast.Every):
            return True
        if isinstance(n, ast.Attribute):
            found = schema.get(n.path)
            if found is not None and found.type is not None and found.type.array:
                return True
    return False


def textual(node: Node) -> bool:
    return isinstance(node, ast.Function) and node.name in ("LOWER", "UPPER")


def like_spans(pattern: Node, escape: str | None) -> tuple[Span, ...] | None:
    """The texts that a LIKE pattern admits, if it is a text or a prefix; None for other patterns."""
    if not isinstance(pattern, ast.Literal) or not isinstance(pattern.value, str):
        return None
    text, at, wild = "", 0, False
    while at < len(pattern.value):
        c = pattern.value[at]
        if c == escape and at + 1 < len(pattern.value):
            at += 1
            c = pattern.value[at]
        elif c == "_":
            return None
        elif c == "%":
            wild = True
            at += 1
            continue
        if wild:
            return None
        text += c
        at += 1
    if not wild:
        return domain.STRING.compare("=", text)
    return domain.prefixed(text) if text else PRESENT.spans
