"""Cover between sequences: the same automaton, with conditions that let through no more.

Only one sequence against one other is decided, by structure. Where a condition may be weaker follows from what it
does in the algebra (docs/semantics.md, section 5):

* A FILTER around the left side, and the keep of a FOLD, only ever drop runs: the covering one's may be weaker.
* theta says which event is *next*. With a weaker theta a run would move at an earlier event and match elsewhere, so it
  must be equivalent; for the same reason the right operand must be equal.
* The theta of an ABSENT prevents matches: the covering one's may be stronger.

Everything else (streams, aliases, aggregates, lengths of time) must be equal, or names would not mean the same. What
is SELECTed does not matter, for cover speaks of which events match. A sequence that PUBLISHes is never covered:
others read what it makes."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from headgate.covering.boxes import TooWide, boxes_of
from headgate.covering.decision import Procedure, decide
from headgate.covering.grid import Grid, Rows
from headgate.covering.parse_boxes import with_uses
from headgate.language import ast
from headgate.language.ast import Node
from headgate.predicates.normal import normalise
from headgate.schema import Schema

_UNTYPED = Schema("sequence", {}, declared=False)
"""References in a sequence are to runs, not to attributes of one stream: only their order is known, not their type."""


def sequence_covered(inner: ast.Pattern, outer: ast.Pattern, missing: str, procedure: Procedure) -> bool:
    """Whether it is proven that whenever `inner` matches, `outer` does, both in one missing-mode."""
    if inner.publish is not None:
        return False
    return _Proof(missing, procedure).source(inner.source, outer.source)


class _Proof:
    def __init__(self, missing: str, procedure: Procedure) -> None:
        self._missing = missing
        self._procedure = procedure

    def source(self, a: Node, b: Node) -> bool:
        """Whether everything that the expression `a` gives, `b` gives too."""
        match a, b:
            case ast.Filter(), ast.Filter():
                same = a.alias == b.alias
                return same and self.source(a.source, b.source) and self._implies(a.predicate, b.predicate)
            case ast.Filter(), _ if a.alias is None:
                return self.source(a.source, b)
            case _, ast.Filter() if b.alias is None:
                return self.source(a, b.source) and self._implies(ast.TRUE, b.predicate)
            case ast.Next(), ast.Next():
                return self._step(a, b) and self._equivalent(a.theta, b.theta)
            case ast.Fold(), ast.Fold():
                same = a.aggregates == b.aggregates and self._step(a, b)
                return same and self._equivalent(a.theta, b.theta) and self._implies(a.keep, b.keep)
            case ast.Absent(), ast.Absent():
                return a.within == b.within and self._step(a, b) and self._implies(b.theta, a.theta)
            case ast.Union(), ast.Union():
                return a.alias == b.alias and self.source(a.left, b.left) and self.source(a.right, b.right)
            case ast.Nested(), ast.Nested():
                same = a.alias == b.alias and a.pattern.items == b.pattern.items
                unpublished = a.pattern.publish is None and b.pattern.publish is None
                return same and unpublished and self.source(a.pattern.source, b.pattern.source)
        return a == b

    def _step(self, a: ast.Next | ast.Fold | ast.Absent, b: ast.Next | ast.Fold | ast.Absent) -> bool:
        return a.right == b.right and self.source(a.left, b.left)

    def _equivalent(self, p: Node, q: Node) -> bool:
        return p == q or (self._implies(p, q) and self._implies(q, p))

    def _implies(self, p: Node, q: Node) -> bool:
        if p == q:
            return True
        try:
            bodies = _apart(p), _apart(q)
            schema = with_uses(ast.And(bodies), _UNTYPED)
            subject, coverer = (boxes_of(normalise(n, self._missing, schema, lists=True), schema) for n in bodies)
        except TooWide:
            return False
        rows = Rows(Grid(), coverer)
        return decide(rows, np.arange(rows.count), subject, self._procedure).covered is True


def _apart(node: Any) -> Any:
    """The tree with the scope of every attribute made part of its path: `$1.a` and `$2.a` are not the same."""
    if isinstance(node, ast.Attribute):
        return ast.Attribute((node.scope, *node.path))
    if isinstance(node, tuple):
        return tuple(map(_apart, node))
    if isinstance(node, Node):
        return replace(node, **{f.name: _apart(getattr(node, f.name)) for f in fields(node) if f.name != "at"})
    return node
