"""Small questions about atoms and their operands: which attributes are read, is it a prefix test, is there an array?"""

from __future__ import annotations

from collections.abc import Iterator

from headgate.covering.portion import PRESENT
from headgate.language import ast
from headgate.language.ast import Node
from headgate.predicates import domain
from headgate.predicates.domain import Span
from headgate.schema import Schema


def attributes(node: Node) -> Iterator[ast.Attribute]:
    return (n for n in ast.walk(node) if isinstance(n, ast.Attribute))


def quantified(node: Node, schema: Schema) -> bool:
    """Whether an ARRAY may stand in the atom: then it speaks of elements, and atoms on them exclude nothing."""
    for n in ast.walk(node):
        if isinstance(n, ast.Every):
            return True
        if isinstance(n, ast.Attribute):
            found = schema.get(n.path)
            if found is None or found.type is None or found.type.array:
                return True
    return False


def textual(node: Node) -> bool:
    return isinstance(node, ast.Function) and node.name in ("LOWER", "UPPER")


def text_spans(atom: Node) -> tuple[Node, tuple[Span, ...]] | None:
    """The operand of a test on text and the texts that pass, where these are spans; None for other atoms."""
    match atom:
        case ast.Test(_, (ast.Literal(), *_)):
            return None
        case ast.Test("LIKE", (operand, ast.Literal(str() as pattern), *behind)):
            escape = next((e.value for e in behind if isinstance(e, ast.Literal)), None)
            spans = _like(pattern, escape)
            return None if spans is None else (operand, spans)
        case ast.Test("STARTS WITH", (operand, ast.Literal(str() as part))):
            return operand, domain.prefixed(part)
        case ast.Test("CONTAINS" | "ENDS WITH", (operand, ast.Literal(""))):
            return operand, PRESENT.spans
    return None


def _like(pattern: str, escape: str | None) -> tuple[Span, ...] | None:
    """The texts that a LIKE pattern admits, if it is one text or a prefix."""
    text, at, wild = "", 0, False
    while at < len(pattern):
        c = pattern[at]
        if c == escape and at + 1 < len(pattern):
            at += 1
            c = pattern[at]
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
