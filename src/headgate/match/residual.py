"""The late step: subscriptions that ask an operator or match a GRAPH, for the events on which they are still open.

The filters go first. Every late condition is taken to hold, whichever way it is wanted; where even then the rest fails,
nothing more is asked. For the pairs that are left, graphs are matched once per event and pattern. A subscription that
waits for graphs alone is decided by their answers; where calls are needed too, the operators' scheduler decides the
residual formulas with as few calls as it can.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from headgate.columns import Columns
from headgate.engine import Binding, Hits, PairProblem
from headgate.errors import HeadgateError
from headgate.filters.engine import FilterIndex, compile_filters
from headgate.graphs.engine import GraphEngine, GraphHits, GraphIndex
from headgate.language import ast
from headgate.language.ast import Node, Path
from headgate.language.forms import Cut, cut_node
from headgate.operators.answer import FAILS, HOLDS, MISSING, TRUE, Answer, row_order
from headgate.operators.body import Both, Early, Either, Formula, Join, Late
from headgate.operators.engine import Batch, Given, OperatorEngine, Outcome
from headgate.operators.index import OperatorIndex
from headgate.operators.predicate import Key, Predicate
from headgate.predicates.modes import logic, with_demands
from headgate.schema import Schema


@dataclass(frozen=True, slots=True)
class Trace:
    """One event on its way through the late step."""

    open: frozenset[int]
    """The slots that the conditions on attributes left open."""
    outcome: Outcome
    unreadable: Sequence[PairProblem]
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
    calls: NDArray[np.bool_]
    """Which slots ask an operator."""
    only: NDArray[np.int32]
    """For each slot the one pattern that decides it, once the filters have left it open; -1 if there is more to it."""

    @cached_property
    def needs(self) -> frozenset[Path]:
        found = self.possible.needs | self.engine.needs(self.operators)
        if self.early is not None:
            found |= self.early.needs
        if self.patterns is not None:
            found |= self.graphs.needs(self.patterns)
        return found

    def evaluate(self, columns: Columns) -> Hits:
        asked, rows, part = self._open(columns)
        if not len(asked):
            return Hits.none()
        local = Hits(np.searchsorted(rows, asked.event), asked.slot)
        given, unreadable = self._graphs(columns, rows)
        early = self.early.evaluate(part) if self.early is not None else None
        batch = self.engine.batch(self.operators, part, early, None if given is None else given.answer)
        hits = _told(self._decide(batch, given, local), rows)
        return replace(hits, problems=[*unreadable, *hits.problems])

    def _decide(self, batch: Batch, given: GraphAnswers | None, asked: Hits) -> Hits:
        """Those of some pairs that hold: by the graphs where these decide, else by the scheduler of the operators."""
        calls = self.calls[asked.slot]
        found = [batch.ask(_where(asked, calls)).hits] if calls.any() else []
        if given is not None and not calls.all():
            alone = _where(asked, ~calls)
            simple = self.only[alone.slot] >= 0
            found.append(self._by_pattern(given, _where(alone, simple)))
            found.append(self._by_formula(batch, given, _where(alone, ~simple)))
        return _joined(found)

    def _by_pattern(self, given: GraphAnswers, asked: Hits) -> Hits:
        """Pairs that one pattern decides."""
        rows, failed = given.rows(asked.event, self.only[asked.slot])
        held = rows >= 0
        binding = [given.hits.binding[i] for i in rows[held].tolist()] if given.hits.binding is not None else None
        problems = []
        for i in np.flatnonzero(failed).tolist():
            event, slot = int(asked.event[i]), int(asked.slot[i])
            problem = given.problems[event, int(self.only[slot])]
            problems.append(PairProblem(event, slot, str(problem), problem.code))
        return Hits(asked.event[held], asked.slot[held], binding, problems)

    def _by_formula(self, batch: Batch, given: GraphAnswers, asked: Hits) -> Hits:
        """Pairs that several patterns, or conditions on their variables, decide."""
        event, slot, binding, problems = [], [], [], []
        for e, s in zip(asked.event.tolist(), asked.slot.tolist(), strict=True):
            verdict = batch.by_answers(e, s, given.answer)
            if isinstance(verdict, PairProblem):
                problems.append(verdict)
            elif verdict is not None:
                event.append(e)
                slot.append(s)
                binding.append(verdict)
        return Hits(np.array(event, np.int64), np.array(slot, np.int32), binding, problems)

    def open(self, columns: Columns, answered: Sequence[dict[Key, Answer]] | None = None) -> Open:
        """What the cheap parts leave open, to be asked by and by. `answered` has the answers of calls that were made
        before, for each row; rows that stand for one event share theirs."""
        asked, rows, part = self._open(columns)
        if not len(asked):
            return Open(asked, rows, self, None, None)
        given, unreadable = self._graphs(columns, rows)
        early = self.early.evaluate(part) if self.early is not None else None
        known = None if answered is None else [answered[row] for row in rows.tolist()]
        batch = self.engine.batch(self.operators, part, early, None if given is None else given.answer, known)
        return Open(replace(asked, problems=unreadable), rows, self, batch, given)

    def _open(self, columns: Columns) -> tuple[Hits, NDArray[np.int64], Columns]:
        """The pairs that are open, the events they are about, and these alone."""
        asked = self.possible.evaluate(columns)
        rows = np.unique(asked.event)
        return asked, rows, columns.take(rows)

    def trace(self, columns: Columns) -> Trace:
        """What is done for the first event of some columns, with every answer: for explanations."""
        one = columns.slice(0, 1)
        asked = self.possible.evaluate(one)
        answers, unreadable = self._graphs(one, np.zeros(1, np.int64))
        given = None if answers is None else answers.answer
        early = self.early.evaluate(one) if self.early is not None else None
        outcome = self.engine.run(self.operators, one, asked, early=early, given=given, trace=True)
        return Trace(frozenset(asked.slot.tolist()), outcome, unreadable, given)

    def _graphs(self, columns: Columns, rows: NDArray[np.int64]) -> tuple[GraphAnswers | None, list[PairProblem]]:
        """The answers of all GRAPH patterns on some events, which are counted as in `rows`.

        The whole batch is handed on, for its graphs are read once for all segments.
        """
        if self.patterns is None:
            return None, []
        hits = self.graphs.evaluate(self.patterns, columns, rows=rows)
        hits = replace(hits, event=np.searchsorted(rows, hits.event), unknown=np.searchsorted(rows, hits.unknown))
        problems = {
            (int(np.searchsorted(rows, t.event)), t.slot): GraphGivenUp(t.reason)
            for t in hits.problems
            if t.slot is not None
        }
        unreadable = [t for t in hits.problems if t.slot is None]
        bad = frozenset(np.searchsorted(rows, [f.event for f in unreadable]).tolist())
        return GraphAnswers(hits, self.pattern_of, problems, bad), unreadable


class GraphGivenUp(HeadgateError):
    """A pattern whose search in an event exceeded a limit, so that nobody knows whether it matches."""

    code = "limit"


@dataclass(frozen=True, eq=False)
class GraphAnswers:
    """The answers of all GRAPH patterns on some events; `hits` count the events from 0."""

    hits: GraphHits
    pattern_of: Mapping[Predicate, int]
    problems: Mapping[tuple[int, int], GraphGivenUp]
    """What was given up, by event and pattern."""
    unreadable: frozenset[int]
    """The events that have a document nobody can read."""

    def rows(self, event: NDArray[np.int64], pattern: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """For pairs of an event and a pattern the first row of `hits` that answers, -1 if none does; and what failed."""
        wide = len(self.pattern_of)
        have = self.hits.event * wide + self.hits.slot
        wanted = event * wide + pattern
        at = np.searchsorted(have, wanted)
        there = at < len(have)
        there[there] = have[at[there]] == wanted[there]
        failed = np.isin(wanted, [e * wide + p for e, p in self.problems])
        return np.where(there & ~failed, at, -1), failed

    def answer(self, event: int, predicate: Predicate) -> Answer:
        number = self.pattern_of[predicate]
        problem = self.problems.get((event, number))
        if problem is not None:
            return Answer.failed(problem)
        answer = self._answers.get((event, number))
        if answer is not None:
            return answer
        if event not in self._unknown:
            return FAILS
        # Two-valued logic knows nothing UNKNOWN: of a document that is missing, nothing holds.
        return FAILS if predicate.missing == "default" and event not in self.unreadable else MISSING

    @cached_property
    def _unknown(self) -> frozenset[int]:
        return frozenset(self.hits.unknown.tolist())

    @cached_property
    def _answers(self) -> dict[tuple[int, int], Answer]:
        return _answers(self.hits, self.pattern_of)


@dataclass(frozen=True, eq=False)
class Open:
    """The late slots of one batch that only operators can decide. Whoever needs some of them asks; what is answered is
    kept, so a call is made once an event."""

    pairs: Hits
    """With the events that could not be read as graphs among its problems."""
    rows: NDArray[np.int64]
    index: LateIndex
    batch: Batch | None
    given: GraphAnswers | None

    def answered(self, row: int) -> dict[Key, Answer]:
        """The answers of the calls about an event, by key."""
        at = int(np.searchsorted(self.rows, row))
        there = self.batch is not None and at < len(self.rows) and self.rows[at] == row
        return self.batch.known(at)[1] if there and self.batch is not None else {}

    def ask(self, pairs: Hits) -> Hits:
        """Those of the pairs that hold, and what could not be decided."""
        if self.batch is None or not len(pairs):
            return Hits.none()
        local = np.searchsorted(self.rows, pairs.event)
        return _told(self.index._decide(self.batch, self.given, Hits(local, pairs.slot)), self.rows)


def _where(pairs: Hits, chosen: NDArray[np.bool_]) -> Hits:
    return Hits(pairs.event[chosen], pairs.slot[chosen])


def _joined(found: Sequence[Hits]) -> Hits:
    """The answers on different pairs as one."""
    found = [hits for hits in found if len(hits) or hits.problems]
    if len(found) == 1:
        return found[0]
    event = np.concatenate([np.empty(0, np.int64), *(hits.event for hits in found)])
    slot = np.concatenate([np.empty(0, np.int32), *(hits.slot for hits in found)])
    order = np.lexsort((slot, event))
    binding: list[Binding] | None = None
    if any(hits.binding is not None for hits in found):
        listed = [b for hits in found for b in (hits.binding if hits.binding is not None else [{}] * len(hits))]
        binding = [listed[i] for i in order.tolist()]
    return Hits(event[order], slot[order], binding, [p for hits in found for p in hits.problems])


def _told(hits: Hits, rows: NDArray[np.int64]) -> Hits:
    """Answers about some rows of a batch, with the numbers of the batch."""
    problems = [replace(p, event=int(rows[p.event])) for p in hits.problems]
    return Hits(rows[hits.event].astype(np.int64), hits.slot, hits.binding, problems)


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
    possible = _filters([(_possible(with_demands(m, b, schema), True), logic(m)) for b, m in bodies], schema)
    early = _filters(operators.early, schema) if operators.early else None
    patterns = {p: i for i, p in enumerate(p for p in operators.predicates if p.graph is not None)}
    calls = np.array([any(isinstance(n, ast.Call) for n in ast.walk(b)) for b, _ in bodies], np.bool_)
    only = np.full(len(bodies), -1, np.int32)
    for slot, formula in enumerate(operators.formulas):
        alone = None if calls[slot] else _alone(formula)
        if alone is not None:
            only[slot] = patterns[alone]
    index = None
    if patterns:
        joined = {p for f, o in zip(operators.formulas, only.tolist(), strict=True) if o < 0 for p in _predicates(f)}
        every = [i for p, i in patterns.items() if p.variables and p in joined]
        index = graphs.compile([p.graph for p in patterns if p.graph is not None], every=every)
    return LateIndex(engine, operators, possible, early, graphs, index, patterns, calls, only)


def _filters(bodies: Sequence[tuple[Node, str]], schema: Schema) -> FilterIndex:
    def items(slots: Iterable[int]) -> Iterator[tuple[Cut, str]]:
        return ((cut_node(node), mode) for node, mode in (bodies[slot] for slot in slots))

    index = compile_filters(items(range(len(bodies))), schema)
    index.bind(items)
    return index


def _alone(formula: Formula) -> Predicate | None:
    """The pattern that decides a formula where the filters have left it open, if there is one."""
    items = formula.items if isinstance(formula, Both) else (formula,)
    late = [item for item in items if not isinstance(item, Early)]
    match late:
        case [Late(predicate, True)]:
            return predicate
    return None


def _predicates(formula: Formula) -> Iterator[Predicate]:
    match formula:
        case Late(predicate):
            yield predicate
        case Join(calls):
            yield from (call.predicate for call in calls)
        case Both(items) | Either(items):
            for item in items:
                yield from _predicates(item)


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
