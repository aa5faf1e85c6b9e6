"""Why a subscription with operator calls or GRAPH patterns matched an event, or what blocked it.

The event goes through the late step as it would in a match, with every other subscription that is open on it, because
they share calls and the order of the calls is decided among all of them. Each condition is then shown with what was
answered; a condition that was never asked says so. Conditions on variables hold if some row of the calls that bind
them satisfies them by itself; whether all of them hold together only the join knows, and if it fails, that is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice, product
from typing import Any

import numpy as np

from headgate.columns import Columns
from headgate.errors import HeadgateError
from headgate.explain.explanation import Atom, Explanation
from headgate.explain.filters import absent_of, atoms_of, read_by, smallest, value_of
from headgate.explain.pictures import decision_diagram, linked_chains
from headgate.graphs.event import EventGraph
from headgate.graphs.explain import GraphExplanation
from headgate.graphs.explain import explain as explain_graph
from headgate.graphs.pattern import compile_pattern
from headgate.language import ast
from headgate.language.ast import Node, Path
from headgate.language.printer import print_node
from headgate.match.residual import LateIndex, Trace, is_late
from headgate.operators.answer import ERROR, FALSE, TRUE, Answer
from headgate.operators.explain import chains_of, evaluation
from headgate.operators.predicate import predicate_of
from headgate.pictures import Picture
from headgate.predicates.modes import logic, truth
from headgate.predicates.rows import Values
from headgate.schema import Schema, format_path

MOST_CALLS = 40
MOST_CHAINS = 8
MOST_LINKED = 2_000
"""In a larger book the chains are not linked for a picture."""
_ROWS = 10_000
_TOGETHER = "no choice of rows satisfies all conditions on the variables together"


def explain_late(
    name: str,
    text: str,
    body: Node,
    columns: Columns | None,
    schema: Schema,
    missing: str,
    index: LateIndex,
    slot: int,
    names: Callable[[int], str],
) -> Explanation:
    """`names` gives the subscription of a slot of the index. Without columns, only the pictures."""
    pictures = (decision_diagram(name, body, two_valued=missing == "default"), *_chains(index, slot, names))
    if columns is None:
        return Explanation(name, text, None, pictures=pictures)
    return _Late(body, columns, schema, missing, index, slot).explanation(name, text, names, pictures)


def _chains(index: LateIndex, slot: int, names: Callable[[int], str]) -> list[Picture]:
    """The linked chains of this subscription and of some that share a predicate with it."""
    operators = index.operators
    if len(operators) > MOST_LINKED:
        return []
    chains = chains_of(operators, index.engine.learned(operators))
    mine = set(chains[slot])
    if all(operators.predicates[t].graph is not None for t in mine):
        return []
    sharing = [c for c in chains if c != slot and mine & set(chains[c])]
    chosen = [slot, *sharing[: MOST_CHAINS - 1]]
    drawn = [(names(c), [str(operators.predicates[t]) for t in chains[c]]) for c in chosen]
    return [linked_chains(f"chains of {names(slot)}", drawn)]


class _Late:
    def __init__(self, body: Node, columns: Columns, schema: Schema, missing: str, index: LateIndex, slot: int) -> None:
        self._body, self._columns, self._schema = body, columns, schema
        self._missing, self._logic = missing, logic(missing)
        self._index, self._slot = index, slot
        self._row: Mapping[Path, Any] = columns.row(0)
        self._trace: Trace = index.trace(columns)
        self._asked = {a.predicate: a.answer for a in self._trace.outcome.asked.get(0, ())}
        self._calls = [n for n in atoms_of(body) if isinstance(n, ast.Call | ast.Graph)]

    def explanation(
        self, name: str, text: str, names: Callable[[int], str], pictures: tuple[Picture, ...]
    ) -> Explanation:
        matched = self._slot in self._trace.outcome.hits.slot.tolist()
        nodes = list(dict.fromkeys(atoms_of(self._body)))
        told = {node: self._told(node) for node in nodes}
        shown = tuple(Atom(print_node(n), told[n][0], read_by(n, self._row), told[n][1]) for n in nodes)
        graphs = [g for node in nodes if isinstance(node, ast.Graph) if (g := self._graph(node)) is not None]
        drawn = [g.picture(f"matching tree of {name}") for g in graphs]
        story = [*self._calls_told(names), *(line for g in graphs for line in str(g).splitlines())]
        story += [f"{f.reason}" for f in self._trace.unreadable]
        story += [f.reason for f in self._trace.outcome.hits.problems if f.slot == self._slot]
        return Explanation(
            name, text, matched, shown, self._blocking(nodes, told, matched), "", tuple(story), (*pictures, *drawn)
        )

    # -- conditions

    def _told(self, node: Node) -> tuple[bool | None, str]:
        """The truth of a condition, and a note on it."""
        if isinstance(node, ast.Call | ast.Graph):
            answer = self._answer(node)
            if answer is None:
                return None, "not asked"
            rows = f"{len(answer.rows)} row(s)" if answer.rows else ""
            if answer.truth == ERROR:
                return None, f"failed: {answer.error}"
            return (True if answer.truth == TRUE else False if answer.truth == FALSE else None), rows
        if not is_late(node):
            return truth(node, self._row, self._schema, self._logic), ""
        return self._constraint(node)

    def _answer(self, node: ast.Call | ast.Graph) -> Answer | None:
        predicate, _ = predicate_of(node, self._logic)
        number = self._index.operators.numbers.get(predicate)
        if number is None:
            return None
        if predicate.graph is not None:
            return self._trace.given(0, predicate) if self._trace.given is not None else None
        return self._asked.get(number)

    def _constraint(self, node: Node) -> tuple[bool | None, str]:
        """A condition on variables: tried on the rows of the calls that bind them."""
        wanted = {n.name for n in ast.walk(node) if isinstance(n, ast.Variable)}
        sets: list[list[dict[str, Any]]] = []
        for call in self._calls:
            names = predicate_of(call, self._logic)[1]
            if not wanted & set(names):
                continue
            answer = self._answer(call)
            if answer is not None:
                sets.append([dict(zip(names, row, strict=True)) for row in answer.rows])
        if not sets or not all(sets):
            return None, "no row to test"
        test = self._index.operators.constraint(self._slot, node)
        found = set()
        for combination in islice(product(*sets), _ROWS):
            binding = {k: v for part in combination for k, v in part.items()}
            found.add(test(Values(self._row, binding)))
        if True in found:
            return True, "for some row"
        return (False if False in found else None), "for no row"

    def _blocking(
        self, nodes: Sequence[Node], told: Mapping[Node, tuple[bool | None, str]], matched: bool
    ) -> tuple[str, ...]:
        """What was not asked is taken as it helps: it may have been asked in vain, or not at all."""
        absent = absent_of(self._body, self._row, self._schema, self._missing)
        lacking = tuple(f"{format_path(p)} is missing" for p in absent)
        open_ = frozenset(n for n in nodes if told[n][1] in ("not asked", "no row to test"))
        body = _settled(self._body, open_, True, helps=not matched)
        known = [n for n in nodes if n not in open_]
        values = {ast.Literal(True): True, ast.Literal(False): False, **{n: told[n][0] for n in known}}
        if (value_of(body, values) is True) == matched:
            changed = smallest(body, known, values, wanted=not matched)
            return lacking + tuple(print_node(n) for n in changed)
        return lacking if lacking or matched else (_TOGETHER,)

    # -- the story

    def _calls_told(self, names: Callable[[int], str]) -> list[str]:
        asked = self._trace.outcome.asked.get(0, [])
        if self._slot not in self._trace.open:
            return ["no call for it: its conditions on attributes decided it"]
        if not asked or not any(isinstance(n, ast.Call) for n in self._calls):
            return []
        listed = [names(i) for i in range(len(self._index.operators))]
        lines = evaluation(self._index.operators, asked, listed).splitlines()
        if len(lines) > MOST_CALLS:
            lines = [*lines[: MOST_CALLS - 1], f"... {len(lines) - MOST_CALLS} more", lines[-1]]
        return ["the calls of this event, in their order:", *(f"  {line}" for line in lines)]

    def _graph(self, node: ast.Graph) -> GraphExplanation | None:
        engine = self._index.graphs
        source = engine.source if node.column is None else node.column.path
        if source is None:
            return None
        graph = engine.read(source, self._columns, np.zeros(1, np.int64))[0]
        if graph is None or isinstance(graph, HeadgateError):
            return None
        assert isinstance(graph, EventGraph)
        return explain_graph(
            compile_pattern(node, engine.prefixes), graph, engine.ontology, engine.prefixes, engine.limits
        )


def _settled(node: Node, open_: frozenset[Node], wanted: bool, *, helps: bool) -> Node:
    """The body with its open conditions decided the way that helps it, or hinders it."""
    match node:
        case ast.And(items):
            return ast.And(tuple(_settled(i, open_, wanted, helps=helps) for i in items))
        case ast.Or(items):
            return ast.Or(tuple(_settled(i, open_, wanted, helps=helps) for i in items))
        case ast.Not(operand):
            return ast.Not(_settled(operand, open_, not wanted, helps=helps))
    return ast.Literal(wanted == helps) if node in open_ else node
