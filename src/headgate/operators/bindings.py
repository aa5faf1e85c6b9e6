"""Bindings: the join of the rows that calls answered, and the output of a subscription that matched.

A join is looked at whenever one of its calls has turned out TRUE, with the rows there are so far: if they cannot be
combined, or a constraint rejects all of them, the subscription is decided and its other calls are never made. NULL
never joins (docs/semantics.md, section 3).

The output is the first disjunct that holds and in it the least binding: variables in the order of their names, values
in the order of `answer.order`. On request it is all bindings of all disjuncts that hold, each once, in that order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headgate.errors import HeadgateError
from headgate.language import ast
from headgate.language.ast import Node, Path
from headgate.operators.answer import ERROR, FALSE, TRUE, Answer, order
from headgate.operators.body import Both, Early, Either, Formula, Join, Late, variables
from headgate.operators.predicate import Predicate
from headgate.predicates.rows import Truth, compile_truth
from headgate.predicates.values import join_key

Binding = dict[str, Any]
Ask = Callable[[Predicate], Answer | None]
"""What a predicate was answered on this event; None if nobody asked."""

Read = Callable[[Path], Any]
"""The value of an attribute of the event at hand, None where missing."""
Compile = Callable[[Node], Truth]
"""Compiles a constraint in the mode of its subscription."""

BINDINGS = 100_000
"""How many combinations a join may hold at a time."""


class TooManyBindings(HeadgateError):
    """The rows of a subscription's calls combine in more ways than the limit allows."""

    code = "operator.bindings"


class BoundRow:
    """An event with the variables that calls have bound."""

    __slots__ = ("_binding", "attribute")

    def __init__(self, binding: Mapping[str, Any], read: Read) -> None:
        self._binding, self.attribute = binding, read

    def variable(self, name: str) -> Any:
        return self._binding[name]

    def decided(self, slot: int) -> bool:
        raise AssertionError(f"nothing has decided slot {slot}")


class CompiledJoin:
    """A join with its constraints compiled, each tested as soon as its variables are bound."""

    def __init__(self, join: Join, compiled: Compile = compile_truth, limit: int = BINDINGS) -> None:
        self._calls = join.calls
        self._limit = limit
        self._constraints: list[tuple[frozenset[str], Truth]] = [
            (
                frozenset(n.name for n in ast.walk(node) if isinstance(n, ast.Variable)),
                compiled(node),
            )
            for node in join.constraints
        ]

    def look(self, ask: Ask, read: Read) -> int:
        """FALSE if no rows so far can be combined; once all calls are known TRUE, or ERROR if one failed."""
        if len(self._calls) == 1:
            call = self._calls[0]
            answer = ask(call.predicate)
            if answer is None or answer.truth == ERROR:
                return -1 if answer is None else ERROR
            for row in answer.rows:
                bound = BoundRow(dict(zip(call.names, row, strict=True)), read)
                if all(holds(bound) is True for _, holds in self._constraints):
                    return TRUE
            return FALSE
        found, whole = self.solve(ask, read)
        if not found:
            return FALSE
        if whole:
            return TRUE
        answers = [ask(call.predicate) for call in self._calls]
        return -1 if any(a is None for a in answers) else ERROR

    def solve(self, ask: Ask, read: Read) -> tuple[list[Binding], bool]:
        """The combinations of the rows known so far, and whether all calls are known."""
        answers = [(call, ask(call.predicate)) for call in self._calls]
        known = [
            (i, call, answer)
            for i, (call, answer) in enumerate(answers)
            if answer is not None and answer.truth != ERROR
        ]
        found: list[Binding] = [{}]
        bound: dict[str, int] = {}
        tested = [False] * len(self._constraints)
        waiting = list(known)
        while waiting and found:
            # A call that shares a variable with what is joined already keeps the intermediate result small.
            at = next((i for i, (_, call, _) in enumerate(waiting) if any(n in bound for n in call.names)), 0)
            place, call, answer = waiting.pop(at)
            if answer.truth != TRUE:
                return [], False
            found = self._joined(found, bound, place, call.names, answer)
            for name in call.names:
                bound[name] = min(place, bound.get(name, place))
            for i, (needs, holds) in enumerate(self._constraints):
                if not tested[i] and needs <= bound.keys():
                    tested[i] = True
                    found = [b for b in found if holds(BoundRow(b, read)) is True]
        return found, len(known) == len(self._calls)

    def _joined(
        self, found: list[Binding], bound: dict[str, int], place: int, names: tuple[str, ...], answer: Answer
    ) -> list[Binding]:
        shared = [i for i, name in enumerate(names) if name in bound]
        if not shared:
            self._check(len(found) * max(1, len(answer.rows)))
            if not names:
                return found
            return [{**b, **dict(zip(names, row, strict=True))} for b in found for row in answer.rows]
        index: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
        for row in answer.rows:
            if all(row[i] is not None for i in shared):
                index.setdefault(tuple(join_key(row[i]) for i in shared), []).append(row)
        # Equal numbers of different types join; the value of the call that stands first in the text is kept.
        keep = {name for name in names if bound.get(name, place) < place}
        made: list[Binding] = []
        for b in found:
            if all(b[names[i]] is not None for i in shared):
                rows = index.get(tuple(join_key(b[names[i]]) for i in shared), ())
                made += [{**b, **{n: v for n, v in zip(names, row, strict=True) if n not in keep}} for row in rows]
                self._check(len(made))
        return made

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise TooManyBindings(
                f"the rows of the calls combine in more than {self._limit} ways", "share variables, or bind fewer rows"
            )


def binding_order(binding: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple((name, order(binding[name])) for name in sorted(binding))


class Output:
    """Gives the bindings of one subscription on events that it matched."""

    def __init__(self, formula: Formula, compiled: Compile = compile_truth, *, every: bool = False) -> None:
        self._formula = formula
        self._every = every
        self._joins = {id(f): CompiledJoin(f, compiled) for f in _walk(formula) if isinstance(f, Join)}
        self.empty = not variables(formula)

    def bindings(self, ask: Ask, early: Callable[[Early], bool], read: Read) -> list[Binding]:
        """One binding, or all of them; nothing where the formula does not hold."""
        found = self._of(self._formula, ask, early, read)
        return [dict(sorted(b.items())) for b in self._distinct(found)]

    def truth(self, ask: Ask, early: Callable[[Early], bool], read: Read) -> int:
        """TRUE, FALSE, or ERROR where an answer that failed leaves it open; all answers must be known."""
        return self._truth(self._formula, ask, early, read)

    def _truth(self, f: Formula, ask: Ask, early: Callable[[Early], bool], read: Read) -> int:
        match f:
            case Early():
                return TRUE if early(f) else FALSE
            case Late(predicate, wanted):
                answer = ask(predicate)
                assert answer is not None
                if answer.truth == ERROR:
                    return ERROR
                return TRUE if answer.truth == (TRUE if wanted else FALSE) else FALSE
            case Join():
                return self._joins[id(f)].look(ask, read)
            case Both(items) | Either(items):
                decisive = FALSE if isinstance(f, Both) else TRUE
                truths = [self._truth(item, ask, early, read) for item in items]
                return decisive if decisive in truths else ERROR if ERROR in truths else TRUE + FALSE - decisive
        raise AssertionError(f)

    def _of(self, f: Formula, ask: Ask, early: Callable[[Early], bool], read: Read) -> list[Binding]:
        match f:
            case Early():
                return [{}] if early(f) else []
            case Late(predicate, wanted, names):
                answer = ask(predicate)
                if answer is None or answer.truth != (TRUE if wanted else FALSE):
                    return []
                if not names:
                    return [{}]
                return self._kept([dict(zip(names, row, strict=True)) for row in answer.rows])
            case Join():
                found, whole = self._joins[id(f)].solve(ask, read)
                return self._kept(found) if whole else []
            case Both(items):
                made: list[Binding] = [{}]
                for item in items:
                    part = self._of(item, ask, early, read)
                    if len(made) * len(part) > BINDINGS:
                        raise TooManyBindings(f"there are more than {BINDINGS} bindings", "ask for the first only")
                    made = [{**a, **b} for a in made for b in part]
                return made
            case Either(items):
                parts = (self._of(item, ask, early, read) for item in items)
                if self._every:
                    return [b for part in parts for b in part]
                return next((part for part in parts if part), [])
        raise AssertionError(f)

    def _kept(self, found: list[Binding]) -> list[Binding]:
        """Parts with different variables are independent, so the least of each makes the least of all."""
        return found if self._every else [min(found, key=binding_order)] if found else []

    def _distinct(self, found: list[Binding]) -> list[Binding]:
        if not self._every:
            return found[:1]
        unique = {binding_order(b): b for b in found}
        return [unique[key] for key in sorted(unique)]


def _walk(f: Formula) -> Iterable[Formula]:
    yield f
    if isinstance(f, Both | Either):
        for item in f.items:
            yield from _walk(item)
