"""Operators, naively: bodies with calls, variables and constraints straight from docs/semantics.md, section 3; and the plain
twins of the compiled scheduler, its optimum and the cost of chains, by enumeration.

`evaluate` multiplies the whole body out, calls every operator, and tries every combination of rows; `graphs` answers
GRAPH patterns. Nothing here is shared with `headgate.operators` but the answers' reading and the layout of a program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import combinations, product
from typing import Any

from headgate.language import ast
from headgate.language.ast import Node, Path
from headgate.operators.answer import ERROR, FALSE, TRUE, UNKNOWN, Answer, order, read
from headgate.operators.kernels import AND, ARGUMENT, EARLY, EXHAUSTIVE, KIND, LITERAL, OR, PARENT, WANTED
from headgate.operators.program import Program
from headgate.operators.registry import VAR
from headgate.oracle import filters, values
from headgate.predicates.values import Instant
from headgate.schema import Schema

Row = Mapping[Path, Any]
Operators = Mapping[str, Callable[..., Any]]
Binding = dict[str, Any]
Graphs = Callable[[ast.Graph], Sequence[Binding] | None]
"""The bindings of a GRAPH pattern on the event, None where the event has no graph; raises if that cannot be used."""
_Atom = tuple[Node, bool]


@dataclass
class Verdict:
    """`matched` is True, False, or None where a failed call leaves it open."""

    matched: bool | None
    bindings: list[Binding] = field(default_factory=list)


def evaluate(
    body: Node,
    row: Row,
    schema: Schema,
    operators: Operators,
    missing: str = "null",
    *,
    every: bool = False,
    event: object = None,
    graphs: Graphs | None = None,
) -> Verdict:
    """The verdict of one subscription on one event: the first disjunct's least binding, or all of them. Operators see
    `event`, by default the row."""
    if missing == "strict" and any(values.natural(row.get(p)) is None for p in filters.attributes(body)):
        return Verdict(False)
    if missing == "total" and any(row.get(a.path) is None for a in schema):
        return Verdict(False)
    seen = row if event is None else event
    here = _Event(row, schema, operators, "default" if missing == "default" else "null", seen, graphs)
    found: list[Binding] = []
    failed = False
    for disjunct in disjuncts(body, True):
        truth, bindings = here.disjunct(disjunct)
        failed = failed or truth == ERROR
        if truth == TRUE:
            found += bindings
            if not every:
                break
    if not found:
        return Verdict(None if failed else False)
    unique = {_key(b): b for b in found}
    ordered = [dict(sorted(unique[k].items())) for k in sorted(unique)]
    return Verdict(True, ordered if every else ordered[:1])


def _key(binding: Binding) -> tuple[Any, ...]:
    return tuple((name, order(binding[name])) for name in sorted(binding))


def disjuncts(node: Node, wanted: bool) -> list[list[_Atom]]:
    """All of a body's disjuncts, in the order of the text; an atom and whether it should be TRUE or FALSE."""
    match node:
        case ast.Not(operand):
            return disjuncts(operand, not wanted)
        case ast.And(items) | ast.Or(items):
            parts = [disjuncts(i, wanted) for i in items]
            if isinstance(node, ast.And) == wanted:
                return [[a for part in chosen for a in part] for chosen in product(*parts)]
            return [d for part in parts for d in part]
    return [[(node, wanted)]]


class _Event:
    def __init__(
        self, row: Row, schema: Schema, operators: Operators, mode: str, event: object, graphs: Graphs | None
    ) -> None:
        self._row, self._schema, self._operators, self._mode = row, schema, operators, mode
        self._event, self._graphs = event, graphs

    def disjunct(self, atoms: Sequence[_Atom]) -> tuple[int, list[Binding]]:
        constraints, failed = [], False
        found: list[Binding] = [{}]
        for node, wanted in atoms:
            if isinstance(node, ast.Call | ast.Graph):
                answer, names = self.call(node) if isinstance(node, ast.Call) else self.graph(node)
                if answer.truth == ERROR:
                    failed = True
                elif answer.truth == UNKNOWN or (answer.truth == TRUE) != wanted:
                    return FALSE, []
                elif wanted and names:
                    found = [b for a in found for r in answer.rows if (b := _agree(a, names, r)) is not None]
            elif any(isinstance(n, ast.Variable) for n in ast.walk(node)):
                constraints.append((node, wanted))
            elif filters.truth(node if wanted else ast.Not(node), self._row, self._schema, self._mode) is not True:
                return FALSE, []
        for node, wanted in constraints:
            names = tuple(n.name for n in ast.walk(node) if isinstance(n, ast.Variable))
            found = [b for b in found if not set(names) <= set(b) or self._bound(b).truth(node) is wanted]
        if not found:
            return FALSE, []
        return (ERROR, []) if failed else (TRUE, found)

    def graph(self, graph: ast.Graph) -> tuple[Answer, tuple[str, ...]]:
        assert self._graphs is not None, "GRAPH patterns need a `graphs`"
        try:
            found = self._graphs(graph)
        except Exception:  # noqa: BLE001 - that the event has no usable graph is all that matters here
            return Answer(ERROR), ()
        if found is None:
            return self._missing(), ()
        names = tuple(dict.fromkeys(n.name for n in ast.walk(graph) if isinstance(n, ast.Variable)))
        return Answer(TRUE if found else FALSE, tuple(tuple(b[n] for n in names) for b in found)), names

    def call(self, call: ast.Call) -> tuple[Answer, tuple[str, ...]]:
        arguments, names = [], []
        plain = self._bound({})
        for argument in call.arguments:
            if isinstance(argument, ast.Variable):
                arguments.append(VAR)
                names.append(argument.name)
                continue
            value = plain.own(argument.path) if isinstance(argument, ast.Attribute) else plain.value(argument)
            if value is None or value is filters.OMEGA:
                return self._missing(), ()
            arguments.append(value)
        try:
            answer = read(self._operators[call.name](self._event, *map(_moment, arguments)), len(names), 10**9)
        except Exception:  # noqa: BLE001 - that a call failed is all that matters here
            return Answer(ERROR), ()
        if answer.truth == TRUE and names:
            rows = tuple(r for r in answer.rows if _agree({}, tuple(names), r) is not None)
            answer = Answer(TRUE if rows else FALSE, rows)
        return answer, tuple(names)

    def _missing(self) -> Answer:
        return Answer(FALSE if self._mode == "default" else UNKNOWN)

    def _bound(self, binding: Binding) -> _Bound:
        if self._mode == "null":
            return _Bound(self._row, binding)
        return _BoundDefault(self._row, self._schema, binding)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _moment(value: Any) -> Any:
    """Operators get datetimes where the language has microseconds."""
    if isinstance(value, list):
        return [_moment(v) for v in value]
    return _EPOCH + timedelta(microseconds=value) if isinstance(value, Instant) else value


class _Bound(filters.Kleene):
    """Variables have the values of a binding. Where values of different kinds are compared, it is UNKNOWN."""

    def __init__(self, row: Row, binding: Binding) -> None:
        super().__init__(row, None)
        self._binding = binding

    def value(self, node: Node) -> Any:
        return self.present(self._binding[node.name]) if isinstance(node, ast.Variable) else super().value(node)

    def unlike(self, op: str) -> bool | None:
        return self.unknown


class _BoundDefault(_Bound, filters.Default):
    """Two-valued: what is missing becomes its DEFAULT, else ω; what is unlike is FALSE."""

    def __init__(self, row: Row, schema: Schema, binding: Binding) -> None:
        filters.Default.__init__(self, row, filters.defaults_of(schema), None)
        self._binding = binding


def _agree(binding: Binding, names: tuple[str, ...], row: tuple[Any, ...]) -> Binding | None:
    made = dict(binding)
    for name, value in zip(names, row, strict=True):
        if name not in made:
            made[name] = value
        elif (
            made[name] is None
            or value is None
            or _kind(made[name]) != _kind(value)
            or not values.compare("=", made[name], value)
        ):
            return None
    return made


def _kind(value: Any) -> str:
    if type(value) in (int, float):
        return "number"
    return "text" if isinstance(value, str) else type(value).__name__


# The compiled scheduler, plainly.


@dataclass
class Tree:
    """One subscription of a program as nested lists; `truths` are the predicates' truths known so far."""

    program: Program
    slot: int
    early: Sequence[bool] = ()

    def value(self, truths: Mapping[int, int]) -> int | None:
        """TRUE, FALSE, ERROR, or None while it depends on what is not known. Joins are taken to hold."""
        return self._value(0, truths)

    def open(self, truths: Mapping[int, int]) -> list[int]:
        """The literals that could still matter, as nodes from the first of the slot."""
        if self.value(truths) is not None:
            return []
        found = []
        for n in self._nodes():
            if self._column(n, KIND) == LITERAL and self._column(n, ARGUMENT) not in truths:
                above = n
                while (above := self._column(above, PARENT)) >= 0 and self._value(above, truths) is None:
                    pass
                if above < 0:
                    found.append(n)
        return found

    def predicates(self, truths: Mapping[int, int]) -> list[int]:
        return [self._column(n, ARGUMENT) for n in self.open(truths)]

    def _nodes(self) -> range:
        return range(int(self.program.start[self.slot + 1] - self.program.start[self.slot]))

    def _column(self, node: int, column: int) -> int:
        return int(self.program.nodes[self.program.start[self.slot] + node, column])

    def _value(self, node: int, truths: Mapping[int, int]) -> int | None:
        kind = self._column(node, KIND)
        if kind == EARLY:
            return TRUE if self.early[self._column(node, ARGUMENT)] else FALSE
        if kind == LITERAL:
            truth = truths.get(self._column(node, ARGUMENT))
            if truth in (None, ERROR):
                return truth
            return TRUE if truth == self._column(node, WANTED) else FALSE
        children = [self._value(n, truths) for n in self._nodes() if self._column(n, PARENT) == node]
        if kind == AND:
            return FALSE if FALSE in children else None if None in children else ERROR if ERROR in children else TRUE
        if kind == OR:
            return TRUE if TRUE in children else None if None in children else ERROR if ERROR in children else FALSE
        if kind == EXHAUSTIVE and None in children:
            return None
        first = next((c for c in children if c in (TRUE, None)), FALSE)
        return first if first in (TRUE, None) else ERROR if ERROR in children else FALSE


def walk_in_order(
    trees: Sequence[Tree], truths: Sequence[int], scheduler: str, key: Callable[[int], float]
) -> list[int]:
    """The predicates that naive, sequential or suborder asks, in order, by the letter of the paper."""
    known: dict[int, int] = {}
    asked: list[int] = []

    def ask(t: int) -> None:
        known[t] = truths[t]
        asked.append(t)

    for tree in trees:
        if scheduler == "naive":
            mine: dict[int, int] = {}
            while tree.value(mine) is None:
                t = tree.predicates(mine)[0]
                if t not in known:
                    ask(t)
                mine[t] = known[t]
        elif scheduler == "sequential" and tree.value(known) is None:
            for t in tree.predicates(known):
                if t not in known and any(t in other.predicates(known) for other in trees):
                    ask(t)
        else:
            while tree.value(known) is None:
                ask(min(tree.predicates(known), key=lambda t: (key(t), t)))
    return asked


def optimum(trees: Sequence[Tree], truths: Sequence[int], predicates: int) -> int:
    """The fewest predicates that decide every subscription, known truths or not: a lower bound for any scheduler."""
    for size in range(predicates + 1):
        for chosen in combinations(range(predicates), size):
            if all(tree.value({t: truths[t] for t in chosen}) is not None for tree in trees):
                return size
    raise AssertionError("all predicates together decide everything")


def expected_cost(chains: Sequence[Sequence[int]], chance: Sequence[float], cost: Sequence[float]) -> float:
    """The expected cost of evaluating chains in this order with sharing and removal, over all truth assignments."""
    used = sorted({t for chain in chains for t in chain})
    total = 0.0
    for outcome in _assignments(used):
        weight, spent = 1.0, 0.0
        for t in used:
            weight *= chance[t] if outcome[t] else 1.0 - chance[t]
        known: set[int] = set()
        for chain in chains:
            if any(t in known and not outcome[t] for t in chain):
                continue
            for t in chain:
                if t not in known:
                    known.add(t)
                    spent += cost[t]
                if not outcome[t]:
                    break
        total += weight * spent
    return total


def _assignments(used: Sequence[int]) -> Iterator[dict[int, bool]]:
    for bits in product((False, True), repeat=len(used)):
        yield dict(zip(used, bits, strict=True))
