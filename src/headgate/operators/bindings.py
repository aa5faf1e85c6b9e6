"""Bindings: the join of the rows that calls answered, and the output of a subscription that matched.

A join is looked at whenever one of its calls has turned out TRUE, with the rows there are so far: if they cannot be
combined, or a constraint rejects all of them, the subscription is decided and its other calls are never made. NULL never
joins (SEMANTICS, section 3).

The output is the first disjunct that holds and in it the least binding: variables in the order of their names, values in
the order of `answer.order`. On request it is all bindings of all disjuncts that hold, each once, in that order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headgate.errors import HeadgateError
from headgate.language import ast
from headgate.operators.answer import FALSE, TRUE, Answer, order
from headgate.operators.body import Both, Early, Either, Formula, Join, Late, variables
from headgate.operators.constraint import Read, Truth, compile_constraint, join_key
from headgate.operators.predicate import Predicate

Binding = dict[str, Any]
Ask = Callable[[Predicate], Answer | None]
"""What a predicate was answered on this event; None if nobody asked."""

BINDINGS = 100_000
"""How many combinations a join may hold at a time."""


class TooManyBindings(HeadgateError):
    """The rows of a subscription's calls combine in more ways than the limit allows."""

    code = "operator.bindings"


class CompiledJoin:
    """A join with its constraints compiled, each tested as soon as its variables are bound."""

    def __init__(self, join: Join, missing: str = "null", limit: int = BINDINGS) -> None:
        self._calls = join.calls
        self._limit = limit
        self._constraints: list[tuple[frozenset[str], Truth]] = [
            (
                frozenset(n.name for n in ast.walk(node) if isinstance(n, ast.Variable)),
                compile_constraint(node, missing),
            )
            for node in join.constraints
        ]

    def solve(self, ask: Ask, read: Read) -> tuple[list[Binding], bool]:
        """The combinations of the rows known so far, and whether all calls are known."""
        known = [(call, answer) for call in self._calls if (answer := ask(call.predicate)) is not None]
        found: list[Binding] = [{}]
        bound: set[str] = set()
        tested = [False] * len(self._constraints)
        waiting = list(known)
        while waiting and found:
            # A call that shares a variable with what is joined already keeps the intermediate result small.
            at = next((i for i, (call, _) in enumerate(waiting) if bound.intersection(call.names)), 0)
            call, answer = waiting.pop(at)
            if answer.truth != TRUE:
                return [], False
            found = self._joined(found, bound, call.names, answer)
            bound.update(call.names)
            for i, (needs, holds) in enumerate(self._constraints):
                if not tested[i] and needs <= bound:
                    tested[i] = True
                    found = [b for b in found if holds(b, read) is True]
        return found, len(known) == len(self._calls)

    def _joined(self, found: list[Binding], bound: set[str], names: tuple[str, ...], answer: Answer) -> list[Binding]:
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
        made: list[Binding] = []
        for b in found:
            if all(b[names[i]] is not None for i in shared):
                # Equal numbers of different types join; the value that was bound first stays.
                for row in index.get(tuple(join_key(b[names[i]]) for i in shared), ()):
                    made.append({**dict(zip(names, row, strict=True)), **b})
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

    def __init__(self, formula: Formula, missing: str = "null", *, every: bool = False, limit: int = BINDINGS) -> None:
        self._formula = formula
        self._every = every
        self._limit = limit
        self._joins = {id(f): CompiledJoin(f, missing, limit) for f in _walk(formula) if isinstance(f, Join)}
        self.empty = not variables(formula)

    def bindings(self, ask: Ask, early: Callable[[Early], bool], read: Read) -> list[Binding]:
        """One binding, or all of them; nothing where the formula does not hold."""
        found = self._of(self._formula, ask, early, read)
        return self._distinct(found)

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
                    if len(made) * len(part) > self._limit:
                        raise TooManyBindings(f"there are more than {self._limit} bindings", "ask for the first only")
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
