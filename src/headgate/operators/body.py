"""A subscription's body as the operators see it: a positive formula over what is decided early and what is asked late.

NOT is pushed to the atoms. What reads only attributes becomes one `Early` leaf, which the filters decide. A call or
GRAPH becomes a `Late` literal: the predicate, and whether it is wanted TRUE or FALSE. Conjuncts that share variables
form a `Join`: calls whose rows must agree, and value constraints on them. Only such groups are multiplied out into
disjuncts, at most 64; everything else stays the formula it was (DESIGN, section 7).

The order of disjuncts is that of the text, because the output takes the first that holds (docs/semantics.md, section 3).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from headgate.errors import BindingProblem, LimitExceeded
from headgate.language import ast
from headgate.language.ast import Node
from headgate.operators.predicate import Names, Predicate, predicate_of

DISJUNCTS = 64
"""How many disjuncts a group that shares variables may have."""


@dataclass(frozen=True, slots=True)
class Early:
    """A part that reads only attributes; TRUE or not, as the filters say."""

    node: Node


@dataclass(frozen=True, slots=True)
class Late:
    """A predicate that should be TRUE, or FALSE. `names` are its variables here, where its rows are of use."""

    predicate: Predicate
    wanted: bool
    names: Names = ()


@dataclass(frozen=True, slots=True)
class Join:
    """Calls over shared variables: some combination of their rows agrees and satisfies every constraint."""

    calls: tuple[Late, ...]
    constraints: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Both:
    """AND."""

    items: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """OR, in the order of the text."""

    items: tuple[Formula, ...]


Formula = Early | Late | Join | Both | Either


@dataclass(frozen=True, slots=True)
class _Constraint:
    node: Node


_Part = Early | Late | _Constraint | Both | Either
"""A formula before its groups are made; inside Both and Either other parts may stand."""


def formula(body: Node, missing: str = "null", disjuncts: int = DISJUNCTS) -> Formula:
    """The body of a subscription as a formula; language errors say where."""
    return _Builder(missing, disjuncts, body.at).grouped([_Normal(missing).part(body, True)])


def variables(f: Formula) -> frozenset[str]:
    """The variables whose values an output of this formula may hold."""
    match f:
        case Late(_, _, names):
            return frozenset(names)
        case Join(calls):
            return frozenset(n for call in calls for n in call.names)
        case Both(items) | Either(items):
            return frozenset().union(*map(variables, items))
    return frozenset()


class _Normal:
    """Negations to the leaves; maximal parts without calls and variables in one leaf."""

    def __init__(self, missing: str) -> None:
        self._missing = missing

    def part(self, node: Node, wanted: bool) -> _Part:
        if not any(isinstance(n, ast.Call | ast.Graph | ast.Variable) for n in ast.walk(node)):
            return Early(node if wanted else ast.Not(node, at=node.at))
        match node:
            case ast.Not(operand):
                return self.part(operand, not wanted)
            case ast.And(items) | ast.Or(items):
                parts = [self.part(i, wanted) for i in items]
                both = isinstance(node, ast.And) == wanted
                return _gather(both, parts)
            case ast.Call() | ast.Graph():
                predicate, names = predicate_of(node, self._missing)
                return Late(predicate, wanted, names if wanted else ())
        return _Constraint(node if wanted else ast.Not(node, at=node.at))


def _gather(both: bool, parts: Sequence[_Part]) -> _Part:
    """One AND or OR: nested ones of its kind dissolve, and neighbouring early parts become one leaf."""
    flat: list[_Part] = []
    for part in parts:
        inside = part.items if isinstance(part, Both if both else Either) else (part,)
        for one in inside:
            if isinstance(one, Early) and flat and isinstance(flat[-1], Early):
                pair = (flat[-1].node, one.node)
                flat[-1] = Early(ast.And(pair, at=pair[0].at) if both else ast.Or(pair, at=pair[0].at))
            else:
                flat.append(one)  # type: ignore[arg-type]  # groups are made later; until then parts stand here
    if len(flat) == 1:
        return flat[0]
    items = tuple(flat)
    return Both(items) if both else Either(items)  # type: ignore[arg-type]  # as above


def _names(part: _Part) -> frozenset[str]:
    match part:
        case Late(_, _, names):
            return frozenset(names)
        case _Constraint(node):
            return frozenset(n.name for n in ast.walk(node) if isinstance(n, ast.Variable))
        case Both(items) | Either(items):
            return frozenset().union(*(_names(i) for i in items))  # type: ignore[arg-type]  # parts, not yet formulas
    return frozenset()


class _Builder:
    def __init__(self, missing: str, disjuncts: int, at: int) -> None:
        self._missing = missing
        self._limit = disjuncts
        self._at = at

    def grouped(self, parts: Sequence[_Part]) -> Formula:
        """A conjunction of parts as a formula, its groups of shared variables joined."""
        flat = [x for p in parts for x in (p.items if isinstance(p, Both) else (p,))]
        made = [self._component(group) for group in _components(flat)]  # type: ignore[arg-type]  # parts, not yet formulas
        return made[0] if len(made) == 1 else Both(tuple(_flattened(made)))

    def _component(self, parts: list[_Part]) -> Formula:
        if len(parts) == 1:
            match parts[0]:
                case Early() | Late() as leaf:
                    return leaf
                case Either(items):
                    return Either(tuple(self.grouped([i]) for i in items))  # type: ignore[list-item]  # as above
        branching = [p for p in parts if isinstance(p, Either)]
        if not branching:
            return self._join(parts)
        disjuncts = self._multiplied(parts)
        return Either(tuple(self.grouped(d) for d in disjuncts))

    def _multiplied(self, parts: Iterable[_Part]) -> list[list[_Part]]:
        """The disjuncts of a conjunction, in the order of the text; parts without variables stay whole."""
        choices: list[list[list[_Part]]] = []
        count = 1
        for part in parts:
            if isinstance(part, Either) and _names(part):
                alternatives = [d for item in part.items for d in self._multiplied(_conjuncts(item))]  # type: ignore[arg-type]  # as above
            else:
                alternatives = [[part]]
            count *= len(alternatives)
            if count > self._limit:
                raise LimitExceeded(
                    f"parts that share variables multiply out to more than {self._limit} disjuncts",
                    "use different variables in parts that need not agree, or split the subscription",
                    at=self._at,
                )
            choices.append(alternatives)
        return [[p for chosen in combination for p in chosen] for combination in product(*choices)]

    def _join(self, parts: list[_Part]) -> Formula:
        calls = tuple(p for p in parts if isinstance(p, Late))
        constraints = tuple(p.node for p in parts if isinstance(p, _Constraint))
        known = {n for call in calls for n in call.names}
        for node in constraints:
            for below in ast.walk(node):
                if isinstance(below, ast.Variable) and below.name not in known:
                    hint = f"a positive call or GRAPH with ?{below.name} must stand in the same AND"
                    raise BindingProblem(f"nothing binds ?{below.name} here", hint, at=below.at)
        return Join(calls, constraints)


def _conjuncts(part: _Part) -> tuple[_Part, ...]:
    return part.items if isinstance(part, Both) else (part,)  # type: ignore[return-value]  # parts, not yet formulas


def _flattened(made: list[Formula]) -> Iterable[Formula]:
    for f in made:
        yield from f.items if isinstance(f, Both) else (f,)


def _components(parts: list[_Part]) -> list[list[_Part]]:
    """Parts connected by shared variables, each component at the place of its first part."""
    groups: list[tuple[set[str], list[int]]] = []
    for i, part in enumerate(parts):
        names, members = set(_names(part)), [i]
        apart: list[tuple[set[str], list[int]]] = []
        for known, inside in groups:
            if known & names:
                names |= known
                members = inside + members
            else:
                apart.append((known, inside))
        groups = [*apart, (names, members)]
    groups.sort(key=lambda g: min(g[1]))
    return [[parts[i] for i in sorted(members)] for _, members in groups]
