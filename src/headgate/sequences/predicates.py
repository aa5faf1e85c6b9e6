"""The parts of an edge's predicate, by how the engine decides them (the paper's section 3.1).

A predicate is a conjunction. What speaks of the incoming event alone is *static*: a filter formula, decided for a whole
batch before any automaton moves. An equality between the incoming event and the run is the key of the AI index. An
upper bound on DUR says when a run can be collected. What asks an operator or a GRAPH about the incoming event and the
run together is *joint*: the residual solver decides it for pairs of a run and an event. The rest is *dynamic* and is
decided run by run.

Inside a dynamic part, an atom on the incoming event alone that asks for text search, an operator or a GRAPH is decided
with the static ones and referred to: `Decided` gives its truth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from headgate.language import ast
from headgate.language.ast import DUR, TRUE, Node, Path, rewrite
from headgate.predicates import values
from headgate.predicates.normal import fold
from headgate.predicates.rows import Decided
from headgate.sequences.algebra import heads, is_late
from headgate.sequences.parameterized import intern
from headgate.sequences.spine import conjunction, conjuncts, variables

FOREVER = 2**63 - 1
_HEAVY = ast.Test | ast.Call | ast.Graph


@dataclass(frozen=True, slots=True)
class Equality:
    """The incoming event's attribute equals a value of the run; `held` is the path of that value."""

    incoming: Path
    held: Path


@dataclass(frozen=True, slots=True)
class Parts:
    static: Node
    dynamic: Node
    equality: Equality | None
    bound: int
    """The predicate is TRUE only while DUR is at most this."""
    joint: Node = TRUE


Ask = Callable[[Node], int]
"""Registers a static predicate, with its paths below the event, and gives its slot."""


def parts(predicate: Node, place: int, missing: str, *, keyed: bool = False) -> Parts:
    """`keyed`: take out one equality for the AI index. In `default` mode equality has other rules, so none is."""
    static: list[Node] = []
    dynamic: list[Node] = []
    joint: list[Node] = []
    equality: Equality | None = None
    bound = FOREVER
    for whole in conjuncts(predicate):
        for c in (whole, *_present(whole)) if missing == "strict" else (whole,):
            if is_static(c, place):
                static.append(c)
                continue
            if is_joint(c, place):
                joint.append(c)
                continue
            upper = _upper(c) if missing != "default" else None
            bound = min(bound, upper if upper is not None else FOREVER)
            if keyed and equality is None and missing != "default" and (found := _equality(c, place)):
                equality = found
            elif upper is None or not isinstance(c, ast.Compare) or c.op == "=":
                dynamic.append(c)
    return Parts(conjunction(static), conjunction(dynamic), equality, bound, conjunction(joint))


def is_static(node: Node, place: int) -> bool:
    """Does it speak of the event at `place` and of nothing else?"""
    return heads(node) <= {f"#{place}"}


def event_paths(node: Node) -> Node:
    """A static predicate as a filter on the event: `#k` goes from the paths."""

    def change(n: Node) -> Node | None:
        return ast.Attribute(n.path[1:], at=n.at) if isinstance(n, ast.Attribute) else None

    return intern(rewrite(node, change))


def has_heavy(node: Node, place: int) -> bool:
    """Whether `refer` finds something to do."""
    return any(isinstance(a, _HEAVY) and is_static(a, place) for a in _atoms(node))


def refer(node: Node, place: int, ask: Ask) -> Node:
    """A dynamic predicate in which the heavy static atoms refer to the static pass."""
    match node:
        case ast.And(items):
            return ast.And(tuple(refer(i, place, ask) for i in items))
        case ast.Or(items):
            return ast.Or(tuple(refer(i, place, ask) for i in items))
        case ast.Not(operand):
            return ast.Not(refer(operand, place, ask))
    if isinstance(node, _HEAVY) and is_static(node, place):
        return Decided(ask(node), ask(ast.Not(node)))
    return node


def is_joint(node: Node, place: int) -> bool:
    """Does an operator or GRAPH in it look at more than the incoming event, or bind a variable for another atom?"""
    late = [a for a in _atoms(node) if is_late(a)]
    uses = Counter(name for a in late for name in variables(a))
    return any(not is_static(a, place) for a in late) or any(n > 1 for n in uses.values())


def _atoms(node: Node) -> list[Node]:
    if isinstance(node, ast.And | ast.Or):
        return [a for item in node.items for a in _atoms(item)]
    return _atoms(node.operand) if isinstance(node, ast.Not) else [node]


def _present(part: Node) -> list[Node]:
    names = dict.fromkeys(n.path for n in ast.walk(part) if isinstance(n, ast.Attribute) and n.path[-1] != DUR)
    return [ast.Not(ast.IsNull(ast.Attribute(path))) for path in names]


def _upper(node: Node) -> int | None:
    """The c of DUR <= c and its kin."""
    match node:
        case ast.Between(ast.Attribute((name,)), _, high) if name == DUR:
            return _ticks("<=", fold(high))
        case ast.Compare(op, ast.Attribute((name,)), right) if name == DUR:
            return _ticks(op, fold(right))
        case ast.Compare(op, left, ast.Attribute((name,))) if name == DUR:
            return _ticks(values.FLIPPED[op], fold(left))
    return None


def _ticks(op: str, limit: Node) -> int | None:
    if not isinstance(limit, ast.Literal) or not isinstance(limit.value, int) or isinstance(limit.value, bool):
        return None
    return {"<": limit.value - 1, "<=": limit.value, "=": limit.value}.get(op)


def _equality(node: Node, place: int) -> Equality | None:
    if not isinstance(node, ast.Compare) or node.op != "=":
        return None
    for one, other in ((node.left, node.right), (node.right, node.left)):
        if not (isinstance(one, ast.Attribute) and isinstance(other, ast.Attribute)):
            return None
        if (
            one.path[0] == f"#{place}"
            and one.path[-1] != DUR
            and other.path[0] in _held(place)
            and other.path[-1] != DUR
        ):
            return Equality(one.path[1:], other.path)
    return None


def _held(place: int) -> set[str]:
    return {"$", *(f"#{p}" for p in range(place))}
