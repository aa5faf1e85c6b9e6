"""FILTER conditions: what may stand in one, and the test of its variables.

A type error is UNKNOWN, and a candidate is kept only where the FILTER is TRUE. `predicates.ranks` decides conditions that
compare one variable with constants; the others are tested here, on candidates that have survived everything cheaper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from headgate.errors import LanguageError, TypeProblem
from headgate.graphs.terms import Literal, Term, value_of
from headgate.language import ast
from headgate.language.ast import Node
from headgate.predicates.rows import Values, compile_truth
from headgate.predicates.tests import TESTS
from headgate.predicates.times import instant
from headgate.predicates.values import OPAQUE

Test = Callable[[Mapping[str, Any]], bool | None]
"""The truth of a condition, given the values of its variables."""

_KNOWN = (
    ast.And, ast.Or, ast.Not, ast.Compare, ast.Between, ast.In, ast.IsNull, ast.Test, ast.Variable, ast.Literal,
    ast.Instant, ast.Span, ast.Arithmetic, ast.Negate, ast.Function,
)  # fmt: skip


def variables(condition: Node) -> frozenset[str]:
    return frozenset(n.name for n in ast.walk(condition) if isinstance(n, ast.Variable))


def check(condition: Node) -> None:
    """Refuse what can be seen to be wrong without an event."""
    for node in ast.walk(condition):
        if isinstance(node, ast.Test):
            patterns = [o.value for o in node.operands[1:] if isinstance(o, ast.Literal)]
            checked = TESTS[node.name].check
            if checked is not None and all(isinstance(p, str) for p in patterns) and (wrong := checked(*patterns)):
                raise TypeProblem(*wrong, at=node.at)
        elif isinstance(node, ast.Instant):
            try:
                instant(node.text)
            except ValueError:
                raise TypeProblem("this is no instant", "write it like 2026-01-31T08:00:00Z", at=node.at) from None
        elif not isinstance(node, _KNOWN):
            raise LanguageError(
                "this has no place in a FILTER", "FILTER compares the variables of its GRAPH", at=node.at
            )


def value(term: Term) -> Any:
    """What a condition sees of a term: OPAQUE for an IRI, a blank node or a literal of an unknown datatype."""
    found = value_of(term) if isinstance(term, Literal) else None
    return OPAQUE if found is None else found


@lru_cache(maxsize=10_000)
def compiled(condition: Node) -> Test:
    truth = compile_truth(condition)
    return lambda given: truth(Values(_NO_ATTRIBUTES, given))


_NO_ATTRIBUTES: Mapping[Any, Any] = {}
