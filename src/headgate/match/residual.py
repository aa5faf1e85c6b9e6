"""The late step: subscriptions that ask an operator or match a GRAPH, for the events on which they are still open.

The filters go first. Every late condition is taken to hold, whichever way it is wanted; where even then the rest fails,
nothing more is asked. For the pairs that are left, graphs are matched once per event and pattern, and the operators'
scheduler decides the residual formulas with as few calls as it can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from headgate.columns import Columns
from headgate.engine import Hits
from headgate.filters.engine import FilterIndex, compile_filters
from headgate.graphs.engine import GraphEngine, GraphHits, GraphIndex
from headgate.language import ast
from headgate.language.ast import Node, Path
from headgate.language.forms import cut_node
from headgate.operators.answer import FAILS, HOLDS, MISSING, TRUE, Answer, row_order
from headgate.operators.engine import Batch, Given, OperatorEngine, Outcome
from headgate.operators.index import OperatorIndex, present
from headgate.operators.predicate import Key, Predicate
from headgate.schema import Schema


@dataclass(frozen=True, slots=True)
class Failed:
    """An event on which a subscription could not be decided; `slot` is None if the event itself is at fault."""

    event: int
    slot: int | None
    reason: str
    code: str


@dataclass(frozen=True, slots=True)
class Trace:
    """One event on its way through the late step."""

    open: frozenset[int]
    """The slots that the conditions on attributes left open."""
    outcome: Outcome
    failed: list[Failed]
    given: Given | None
    """The answers of GRAPH patterns."""


@dataclass(frozen=True, eq=False)
class LateIndex:
    """The late subscriptions of one stream; slots are numbered in the order they were given."""

    engine: OperatorEngine
    operators: OperatorIndex
    possible: FilterIndex
    """What must hold for a slot to be open at all."""
    early: FilterIndex | None
    """The attribute parts that the residual formulas need."""
    graphs: GraphEngine
    patterns: GraphIndex | None
    pattern_of: Mapping[Predicate, int]

    @cached_property
    def needs(self) -> frozenset[Path]:
        found = self.possible.needs | self.engine.needs(self.operators)
        if self.early is not None:
            found |= self.early.needs
        if self.patterns is not None:
            found |= self.graphs.needs(self.patterns)
        return found

    def evaluate(self, columns: Columns) -> tuple[Hits, list[Failed]]:
        asked, rows, part = self._open(columns)
        if not len(asked):
            return Hits.none(), []
        local = Hits(np.searchsorted(rows, asked.event), asked.slot)
        outcome, failed, _ = self._run(columns, part, rows, local)
        hits, more = _told(outcome, rows)
        return hits, failed + more

    def open(self, columns: Columns, answered: Sequence[dict[Key, Answer]] | None = None) -> Open:
        """What the cheap parts leave open, to be asked by and by. `answered` has the answers of calls that were made
        before, for each row; rows that stand for one event share theirs."""
        asked, rows, part = self._open(columns)
        if not len(asked):
            return Open(asked, rows, None, [])
        answers, failed = self._graphs(columns, rows)
        early = self.early.evaluate(part) if self.early is not None else None
        known = None if answered is None else [answered[row] for row in rows.tolist()]
        return Open(asked, rows, self.engine.batch(self.operators, part, early, answers, known), failed)

    def _open(self, columns: Columns) -> tuple[Hits, NDArray[np.int64], Columns]:
        """The pairs that are open, the events they are about, and these alone."""
        asked = self.possible.evaluate(columns)
        rows = np.unique(asked.event)
        return asked, rows, columns.take(rows)

    def trace(self, columns: Columns) -> Trace:
        """What is done for the first event of some columns, with every answer: for explanations."""
        one = columns.slice(0, 1)
        asked = self.possible.evaluate(one)
        outcome, failed, given = self._run(one, one, np.zeros(1, np.int64), asked, trace=True)
        return Trace(frozenset(asked.slot.tolist()), outcome, failed, given)

    def _run(
        self, columns: Columns, part: Columns, rows: NDArray[np.int64], asked: Hits, *, trace: bool = False
    ) -> tuple[Outcome, list[Failed], Given | None]:
        answers, failed = self._graphs(columns, rows)
        early = self.early.evaluate(part) if self.early is not None else None
        return self.engine.run(self.operators, part, asked, early=early, given=answers, trace=trace), failed, answers

    def _graphs(self, columns: Columns, rows: NDArray[np.int64]) -> tuple[Given | None, list[Failed]]:
        """The answers of all GRAPH patterns on some events, which are counted as in `rows`.

        The whole batch is handed on, for its graphs are read once for all segments.
        """
        if self.patterns is None:
            return None, []
        hits = self.graphs.evaluate(self.patterns, columns, rows=rows)
        hits = replace(hits, event=np.searchsorted(rows, hits.event), unknown=np.searchsorted(rows, hits.unknown))
        found = _answers(hits, self.pattern_of)
        unknown = frozenset(hits.unknown.tolist())
        numbers = self.pattern_of

        def given(event: int, predicate: Predicate) -> Answer:
            answer = found.get((event, numbers[predicate]))
            return answer if answer is not None else MISSING if event in unknown else FAILS

        return given, [Failed(t.event, None, t.reason, t.code) for t in hits.troubles]


@dataclass(frozen=True, eq=False)
class Open:
    """The late slots of one batch that only operators can decide. Whoever needs some of them asks; what is answered is
    kept, so a call is made once an event."""

    pairs: Hits
    rows: NDArray[np.int64]
    batch: Batch | None
    failed: list[Failed]
    """Events that could not be read as graphs."""

    def answered(self, row: int) -> dict[Key, Answer]:
        """The answers of the calls about an event, by key."""
        at = int(np.searchsorted(self.rows, row))
        there = self.batch is not None and at < len(self.rows) and self.rows[at] == row
        return self.batch.known(at)[1] if there and self.batch is not None else {}

    def ask(self, pairs: Hits) -> tuple[Hits, list[Failed]]:
        """Those of the pairs that hold, and what could not be decided."""
        if self.batch is None or not len(pairs):
            return Hits.none(), []
        local = np.searchsorted(self.rows, pairs.event)
        return _told(self.batch.ask(Hits(local, pairs.slot)), self.rows)


def _told(outcome: Outcome, rows: NDArray[np.int64]) -> tuple[Hits, list[Failed]]:
    """An outcome about some rows of a batch, with the numbers of the batch."""
    failed = [Failed(int(rows[f.event]), f.slot, str(f.error), f.error.code) for f in outcome.failures]
    hits = outcome.hits
    return Hits(rows[hits.event].astype(np.int64), hits.slot, hits.binding), failed


def _answers(hits: GraphHits, numbers: Mapping[Predicate, int]) -> dict[tuple[int, int], Answer]:
    names = {n: _variables(p) for p, n in numbers.items()}
    rows: dict[tuple[int, int], list[tuple[object, ...]]] = {}
    for i, key in enumerate(zip(hits.event.tolist(), hits.slot.tolist(), strict=True)):
        wanted = names[key[1]]
        binding = hits.binding[i] if hits.binding is not None else {}
        rows.setdefault(key, []).append(tuple(binding[v] for v in wanted))
    return {
        key: HOLDS if not names[key[1]] else Answer(TRUE, tuple(sorted(found, key=row_order)))
        for key, found in rows.items()
    }


def _variables(predicate: Predicate) -> tuple[str, ...]:
    """The variables of a GRAPH predicate in the order of their numbers."""
    assert predicate.graph is not None
    return tuple(dict.fromkeys(n.name for n in ast.walk(predicate.graph) if isinstance(n, ast.Variable)))


def compile_late(
    bodies: Sequence[tuple[Node, str]], schema: Schema, engine: OperatorEngine, graphs: GraphEngine
) -> LateIndex:
    """Compile the late subscriptions of a stream: bodies, each with its missing-mode."""
    operators = engine.compile([b for b, _ in bodies], missing=[m for _, m in bodies], schema=schema)
    possible = compile_filters(
        (
            (cut_node(_possible(present(b, m, schema), True)), "default" if m == "default" else "null")
            for b, m in bodies
        ),
        schema,
    )
    early = compile_filters(((cut_node(n), m) for n, m in operators.early), schema) if operators.early else None
    patterns = [p for p in operators.predicates if p.graph is not None]
    index = None
    if patterns:
        wanted = [i for i, p in enumerate(patterns) if p.variables]
        index = graphs.compile([p.graph for p in patterns if p.graph is not None], every=wanted)
    return LateIndex(engine, operators, possible, early, graphs, index, {p: i for i, p in enumerate(patterns)})


def is_late(node: Node) -> bool:
    """Whether an atom waits for an operator or a graph."""
    return any(isinstance(n, ast.Call | ast.Graph | ast.Variable) for n in ast.walk(node))


def _possible(node: Node, truth: bool) -> Node:
    """The body with every late atom settled the way that helps it most."""
    match node:
        case ast.And(items):
            return ast.And(tuple(_possible(i, truth) for i in items))
        case ast.Or(items):
            return ast.Or(tuple(_possible(i, truth) for i in items))
        case ast.Not(operand):
            return ast.Not(_possible(operand, not truth))
    return ast.Literal(truth) if is_late(node) else node
