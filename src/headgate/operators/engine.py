"""The operator engine: batches of events against an index, with as few calls as the scheduler manages.

For every event the filters' verdicts on early parts are put in, the residual formulas are gathered, and a run asks for
one predicate after the other. The runs of several events go side by side where an operator likes batches or works
concurrently; each round then hands all their calls over together. What is answered is shared within the event by call
key, joined, learned from, and at the end told as `Hits`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from headgate.columns import Columns
from headgate.engine import Binding, Hits, PairProblem
from headgate.errors import HeadgateError, PlanError
from headgate.language.ast import Node, Path
from headgate.operators.answer import ERROR, FAILS, MISSING, TRUE, Answer
from headgate.operators.bindings import BoundRow
from headgate.operators.body import Early
from headgate.operators.caller import Caller, Reply, Request, undecidable
from headgate.operators.event import Event
from headgate.operators.index import OperatorIndex, compile_index, needs
from headgate.operators.learned import Asked, Learned
from headgate.operators.predicate import Key, Predicate, narrow
from headgate.operators.registry import Registry
from headgate.operators.schedule import Residuals, Run, Scheduler, scheduler
from headgate.operators.statistics import Statistics
from headgate.operators.thresholds import OTHER
from headgate.operators.view import View
from headgate.schema import Schema

EarlyFilter = Callable[[Sequence[tuple[Node, str]], Columns], Hits]
"""Decides early parts: `Hits` whose slots are the numbers of the parts that are TRUE."""
Given = Callable[[int, Predicate], Answer]
"""The answer of a GRAPH predicate on a row of the batch."""
WINDOW = 16
"""How many events go side by side where that helps."""


@dataclass
class Outcome:
    hits: Hits
    asked: dict[int, list[Asked]] = field(default_factory=dict)
    """By event, in order; only where it was wanted."""
    calls: int = 0


class OperatorEngine:
    """Holds what is learned and what is pooled; indexes are separate and immutable."""

    def __init__(
        self,
        operators: Registry | Iterable[Any] = (),
        *,
        schedule: str | Scheduler = "greedy",
        output: Literal["first", "all"] = "first",
        early: EarlyFilter | None = None,
        statistics: Statistics | None = None,
        caller: Caller | None = None,
        window: int = WINDOW,
        learn: bool = True,
    ) -> None:
        self.registry = operators if isinstance(operators, Registry) else Registry(iter(operators))
        self.scheduler = scheduler(schedule) if isinstance(schedule, str) else schedule
        self.statistics = statistics if statistics is not None else Statistics()
        self._every = output == "all"
        self._early = early
        self._caller = caller if caller is not None else Caller()
        self._window = window
        self._learn = learn
        self._learned: WeakKeyDictionary[OperatorIndex, Learned] = WeakKeyDictionary()
        self._residuals: WeakKeyDictionary[OperatorIndex, Residuals] = WeakKeyDictionary()

    def compile(
        self, expressions: Sequence[Node], *, missing: Sequence[str] | None = None, schema: Schema | None = None
    ) -> OperatorIndex:
        return compile_index(expressions, self.registry, missing=missing, schema=schema, every=self._every)

    def needs(self, index: OperatorIndex) -> frozenset[Path]:
        return needs(index, self.registry)

    def run(
        self,
        index: OperatorIndex,
        columns: Columns,
        upstream: Hits | None = None,
        *,
        early: Hits | None = None,
        given: Given | None = None,
        trace: bool = False,
    ) -> Outcome:
        """Evaluate a batch. `early` holds the early parts that are TRUE; without it the engine's filters are asked."""
        if early is None and index.early:
            if self._early is None:
                raise PlanError("these subscriptions test attributes, and no filters were given to decide that")
            early = self._early(index.early, columns)
        return Batch(self, index, columns, early, given, trace=trace).ask(upstream)

    def batch(
        self,
        index: OperatorIndex,
        columns: Columns,
        early: Hits | None,
        given: Given | None,
        answered: Sequence[dict[Key, Answer]] | None = None,
    ) -> Batch:
        """A batch that is asked several times, for other slots each time; a call is made once an event. Rows that stand
        for one event share their part of `answered`."""
        known: dict[int, tuple[dict[int, Answer], dict[Key, Answer]]] = {}
        for row, keys in enumerate(answered or ()):
            known[row] = {}, keys
        return Batch(self, index, columns, early, given, known=known)

    def run_apart(self) -> None:
        """From here on, operators that do not say how they are called run in a process of their own: one that ends its
        process, as a crash in a library does, costs its call and no more."""
        self._caller.apart = True

    def close(self) -> None:
        self._caller.close()

    def learned(self, index: OperatorIndex) -> Learned:
        """What is known of the predicates of an index."""
        found = self._learned.get(index)
        if found is None:
            found = self._learned[index] = Learned(index, self.registry, self.statistics, self.scheduler)
        return found

    def residuals(self, index: OperatorIndex) -> Residuals:
        found = self._residuals.get(index)
        if found is None:
            found = self._residuals[index] = Residuals(index.program)
        return found

    def _side_by_side(self, index: OperatorIndex) -> int:
        used = {p.name for p in index.predicates if p.graph is None}
        operators = [self.registry[name] for name in used]
        alone = all(o.batch is None and self._caller.concurrency(o) == "inline" for o in operators)
        return 1 if alone else self._window


def _asked_for(upstream: Hits | None, rows: int, slots: int) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
    """The events to look at, and for each the slots that are asked for."""
    if upstream is None:
        every = np.arange(slots, dtype=np.int64)
        return np.arange(rows, dtype=np.int64), [every] * rows
    events, first = np.unique(upstream.event, return_index=True)
    return events.astype(np.int64), np.split(upstream.slot.astype(np.int64), first[1:])


class Batch:
    """One batch on its way through the engine."""

    def __init__(
        self,
        engine: OperatorEngine,
        index: OperatorIndex,
        columns: Columns,
        early: Hits | None,
        given: Given | None,
        *,
        trace: bool = False,
        known: dict[int, tuple[dict[int, Answer], dict[Key, Answer]]] | None = None,
    ) -> None:
        """`known` is kept from one asking to the next: by row, answers by predicate and by call key."""
        self.engine, self.index, self.given, self.trace = engine, index, given, trace
        self.learned = engine.learned(index)
        self.residuals = engine.residuals(index)
        self.view = View(columns, engine.registry, index)
        self._rows = columns.rows
        self._early = early
        self._known = known
        self._begin()

    def _begin(self) -> None:
        self._matches: list[tuple[int, int, Binding]] = []
        self._bound = False
        self._problems: list[PairProblem] = []
        self._asked: dict[int, list[Asked]] = {}
        self._calls = 0

    def ask(self, upstream: Hits | None = None) -> Outcome:
        """Decide these slots on these events; all on all, if nothing is said."""
        self._begin()
        events, slots = _asked_for(upstream, self._rows, len(self.index))
        together = self.engine._side_by_side(self.index)
        for at in range(0, len(events), together):
            self._window(events[at : at + together], slots[at : at + together])
        return self._outcome()

    def by_answers(self, event: int, slot: int, given: Given) -> Binding | PairProblem | None:
        """A pair whose predicates are all answered already: its binding, None if it does not hold, or why nobody knows."""
        early, read, output = self.early(event), self.view.reader(event), self.index.outputs[slot]

        def ask(predicate: Predicate) -> Answer:
            return given(event, predicate)

        def holds(part: Early) -> bool:
            return bool(early[self._part(part.node, slot)])

        try:
            truth = output.truth(ask, holds, read)
            if truth == TRUE:
                return {} if output.empty else output.bindings(ask, holds, read)[0]
        except Exception as error:  # noqa: BLE001 - values of foreign code; a problem of this pair alone
            return _problem(event, slot, undecidable(error))
        if truth != ERROR:
            return None
        answers = (ask(p) for p in self.index.predicates if p.graph is not None)
        return _problem(event, slot, next(a.error for a in answers if a.error is not None))

    def known(self, event: int) -> tuple[dict[int, Answer], dict[Key, Answer]]:
        """What was answered on an event before, by predicate and by call key."""
        return ({}, {}) if self._known is None else self._known.setdefault(event, ({}, {}))

    def _window(self, events: NDArray[np.int64], slots: list[NDArray[np.int64]]) -> None:
        """Take some events from start to end, round by round."""
        going = [_Going(self, int(e), s) for e, s in zip(events, slots, strict=True)]
        active = [(g, local) for g in going if (local := g.begin()) >= 0]
        while active:
            requests: dict[tuple[int, Key], tuple[Request, list[_Going]]] = {}
            for g, local in active:
                request = g.request(local)
                if request is not None:
                    requests.setdefault((id(g.keys), request.key), (request, []))[1].append(g)
            replies = self.engine._caller.ask([request for request, _ in requests.values()])
            for (_, owners), reply in zip(requests.values(), replies, strict=True):
                for g in owners:
                    g.take(reply, called=g is owners[0])
            self._calls += len(requests)
            active = [(g, local) for g, _ in active if (local := g.proceed()) >= 0]
        for g in going:
            self._finish(g)

    def early(self, event: int) -> NDArray[np.bool_]:
        truth = np.zeros(len(self.index.early), np.bool_)
        if self._early is not None:
            a, b = np.searchsorted(self._early.event, [event, event + 1])
            truth[self._early.slot[a:b]] = True
        return truth

    def _finish(self, g: _Going) -> None:
        if self.engine._learn:
            self.learned.observe(g.history)
        if self.trace:
            self._asked[g.event] = g.history
        for slot, error in g.failed():
            self._problems.append(_problem(g.event, slot, error))
        for slot in g.matched():
            output = self.index.outputs[slot]
            if output.empty:
                self._matches.append((g.event, slot, {}))
                continue
            try:
                found = output.bindings(g.ask, lambda e: g.early[self._part(e.node, slot)], g.read)  # noqa: B023 - used at once
            except Exception as error:  # noqa: BLE001 - values of foreign code; a problem of this pair alone
                self._problems.append(_problem(g.event, slot, undecidable(error)))
                continue
            self._bound = True
            self._matches += [(g.event, slot, binding) for binding in found]

    def _part(self, node: Node, slot: int) -> int:
        return self.index.parts[(node, "default" if self.index.modes[slot] == "default" else "null")]

    def _outcome(self) -> Outcome:
        self._matches.sort(key=lambda m: m[:2])
        event = np.array([m[0] for m in self._matches], np.int64)
        slot = np.array([m[1] for m in self._matches], np.int32)
        binding = [m[2] for m in self._matches] if self._bound else None
        return Outcome(Hits(event, slot, binding, self._problems), self._asked, self._calls)


def _problem(event: int, slot: int, error: HeadgateError) -> PairProblem:
    return PairProblem(event, slot, str(error), error.code)


class _Going:
    """One event while it runs: its answers by predicate and by call key."""

    def __init__(self, batch: Batch, event: int, slots: NDArray[np.int64]) -> None:
        self.batch, self.event = batch, event
        self.early = batch.early(event)
        self.read = batch.view.reader(event)
        self.history: list[Asked] = []
        self._slots = batch.learned.arranged(slots)
        self._answers, self.keys = batch.known(event)
        self._problems: dict[int, HeadgateError] = {}
        learned = batch.learned
        packed = batch.residuals.of(self._slots, self.early, learned.chance, learned.cost)
        self.run = Run(batch.engine.scheduler, batch.index.program, packed, self._look, learned.links, learned.chance)
        self._local = -1
        self._pending: Asked | None = None
        self._key: Key | None = None

    def begin(self) -> int:
        index = self.batch.index
        free = index.free
        if free or self._answers:
            for local, number in enumerate(self.run.predicates):
                answer = self._answers.get(number)
                if answer is None and number in free:
                    answer = self._for_nothing(number)
                if answer is not None:
                    self._answers[number] = answer
                    self.run.give(local, answer.truth)
        self._local = self.run.begin()
        return self._local

    def _for_nothing(self, number: int) -> Answer | None:
        predicate = self.batch.index.predicates[number]
        if predicate.graph is not None:
            if self.batch.given is None:
                raise PlanError("these subscriptions match a GRAPH, and no graph engine answered")
            return self.batch.given(self.event, predicate)
        if self.batch.index.arguments[number].resolve(BoundRow({}, self.read)) is not None:
            return None
        # A missing argument is UNKNOWN; in the two-valued default mode it is ω, of which nothing holds.
        return FAILS if predicate.missing == "default" else MISSING

    def request(self, local: int) -> Request | None:
        """The call that the chosen predicate needs, or None if its key was answered already."""
        number = self.run.predicates[local]
        arguments = self.batch.index.arguments[number]
        values = arguments.resolve(BoundRow({}, self.read))
        assert values is not None, "predicates with missing arguments were answered for nothing"
        self._key = arguments.key(values)
        known = self.keys.get(self._key)
        if known is not None:
            self._settle(number, known, float("nan"), called=False)
            return None
        try:
            return self.batch.view.request(self.event, number, values, self._key)
        except Exception as error:  # noqa: BLE001 - a value that has no form for foreign code, such as a year beyond 9999
            self.keys[self._key] = failed = Answer.failed(undecidable(error))
            self._settle(number, failed, float("nan"), called=False)
            return None

    def take(self, reply: Reply, *, called: bool) -> None:
        assert self._key is not None
        self.keys[self._key] = reply.answer
        milliseconds = reply.milliseconds if called else float("nan")
        self._settle(self.run.predicates[self._local], reply.answer, milliseconds, called=called)

    def _settle(self, number: int, raw: Answer, milliseconds: float, *, called: bool) -> None:
        answer = narrow(raw, self.batch.index.predicates[number].positions)
        self._answers[number] = answer
        self._pending = Asked(number, answer, called, milliseconds)

    def proceed(self) -> int:
        """Tell the run what was answered; the next predicate, or -1."""
        asked = self._pending
        assert asked is not None
        if not self.batch.trace:
            self._local = self.run.answer(asked.answer.truth)
            self.history.append(asked)
            return self._local
        residual = self.run.residual
        open_before = residual.value[residual.roots] == -1
        live_before = int(np.count_nonzero(residual.live))
        self._local = self.run.answer(asked.answer.truth)
        decided = open_before & (residual.value[residual.roots] != -1)
        saved = max(0, live_before - 1 - int(np.count_nonzero(residual.live)))
        slots = tuple(sorted(self._slots[decided].tolist()))
        self.history.append(Asked(asked.predicate, asked.answer, asked.called, asked.milliseconds, slots, saved))
        return self._local

    def ask(self, predicate: Predicate) -> Answer | None:
        return self._answers.get(self.batch.index.numbers[predicate])

    def _look(self, gates: NDArray[np.int32]) -> NDArray[np.int8]:
        index = self.batch.index
        joins = self.run.joins_of(gates)
        try:
            found = index.thresholds.decide(joins, self.ask)
        except Exception:  # noqa: BLE001 - some value that no array holds; each join is looked at by itself
            found = np.full(len(joins), OTHER, np.int8)
        for i in np.flatnonzero(found == OTHER).tolist():
            join = int(joins[i])
            try:
                found[i] = index.joins[join].look(self.ask, self.read)
            except Exception as error:  # noqa: BLE001 - values of foreign code; a problem of this pair alone
                self._problems[index.program.joins[join].slot] = undecidable(error)
                found[i] = ERROR
        return found

    def matched(self) -> list[int]:
        residual = self.run.residual
        held: list[int] = self._slots[residual.value[residual.roots] == TRUE].tolist()
        return sorted(held)

    def failed(self) -> list[tuple[int, HeadgateError]]:
        residual = self.run.residual
        made: list[tuple[int, HeadgateError]] = []
        for root, slot in zip(residual.roots.tolist(), self._slots.tolist(), strict=True):
            if residual.value[root] != ERROR:
                continue
            if slot in self._problems:
                made.append((slot, self._problems[slot]))
                continue
            inside = range(root, root + int(residual.size[root]))
            numbers = {
                self.run.predicates[int(residual.argument[m])]
                for m in inside
                if residual.value[m] == ERROR and residual.kind[m] == 4
            }
            errors = [e for n in sorted(numbers) if (e := self._answers[n].error) is not None]
            made += [(slot, error) for error in errors[:1]]
        return sorted(made, key=lambda m: m[0])


__all__ = ["Asked", "Batch", "EarlyFilter", "Event", "Given", "OperatorEngine", "Outcome"]
