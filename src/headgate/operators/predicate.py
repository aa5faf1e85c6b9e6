"""Predicates: calls modulo the names of their variables, and the key under which one call serves many of them.

`p(?x, ?y)` of one subscription is `p(?a, ?b)` of another, but not `p(?x, ?x)` (DEBS 2007, section 3). A predicate is
the shared thing: it has one selectivity, one cost and one answer for an event. Its key on an event holds the values of
its arguments with their types — 1, 1.0 and TRUE are different arguments — so `p('Bronx')` and `p(area)` share a call
where the event's area is Bronx, and so do `p(?x, ?y)` and `p(?x, ?x)`, which only keeps fewer of the rows.

A GRAPH pattern is a predicate too, one that the graph engine answered before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headgate.errors import LimitExceeded
from headgate.language import ast
from headgate.language.ast import Node, Path
from headgate.language.printer import print_node
from headgate.operators.answer import FAILS, HOLDS, TRUE, Answer
from headgate.operators.registry import VAR
from headgate.predicates.modes import logic
from headgate.predicates.rows import Row, Value, compile_value
from headgate.predicates.values import OMEGA, same

Names = tuple[str, ...]
"""The variable names of one use of a predicate; the place in the tuple is the number in the predicate."""
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Predicate:
    """`arguments` holds a value expression, or the number of a variable, counted by first occurrence."""

    name: str
    arguments: tuple[Node | int, ...]
    missing: str = "null"
    """`default` only where an argument or the graph may be missing: the mode then decides what that means."""
    graph: ast.Graph | None = None

    @property
    def variables(self) -> int:
        """How many different variables it has."""
        return 1 + max((a for a in self.arguments if isinstance(a, int)), default=-1)

    @property
    def positions(self) -> tuple[int, ...]:
        """The variable number of each variable position, in order."""
        return tuple(a for a in self.arguments if isinstance(a, int))

    @property
    def reads(self) -> frozenset[Path]:
        """The attributes in its arguments."""
        nodes = (n for a in self.arguments if isinstance(a, Node) for n in ast.walk(a))
        return frozenset(n.path for n in nodes if isinstance(n, ast.Attribute))

    @property
    def may_lack(self) -> bool:
        """Whether an argument can be missing, so that there may be nothing to call it with."""
        return bool(self.reads) or ast.Literal(None) in self.arguments

    def __str__(self) -> str:
        if self.graph is not None:
            return print_node(self.graph)
        return f"{self.name}({', '.join(f'?{a}' if isinstance(a, int) else print_node(a) for a in self.arguments)})"


def predicate_of(call: ast.Call | ast.Graph, missing: str = "null") -> tuple[Predicate, Names]:
    """The predicate of a call, and the names that this use of it gives to the variables."""
    numbers: dict[str, int] = {}
    if isinstance(call, ast.Graph):
        for node in ast.walk(call):
            if isinstance(node, ast.Variable):
                numbers.setdefault(node.name, len(numbers))
        return Predicate("GRAPH", tuple(range(len(numbers))), logic(missing), graph=call), tuple(numbers)
    arguments: list[Node | int] = []
    for argument in call.arguments:
        if isinstance(argument, ast.Variable):
            arguments.append(numbers.setdefault(argument.name, len(numbers)))
        elif any(isinstance(n, ast.Variable) for n in ast.walk(argument)):
            raise LimitExceeded(
                f"an argument of {call.name} computes with a variable",
                "bind it to a variable of its own and compare the two",
                at=argument.at,
            )
        else:
            arguments.append(argument)
    made = Predicate(call.name, tuple(arguments))
    return (Predicate(call.name, tuple(arguments), missing) if made.may_lack else made), tuple(numbers)


class Arguments:
    """Resolves a predicate's arguments on events."""

    def __init__(self, predicate: Predicate, defaults: Mapping[Path, Any]) -> None:
        given = defaults if predicate.missing == "default" else None
        self._values: list[Value | None] = [
            None if isinstance(a, int) else compile_value(a, given) for a in predicate.arguments
        ]
        self._name = predicate.name
        self.constant = not predicate.reads

    def resolve(self, row: Row) -> tuple[Any, ...] | None:
        """The arguments for the call, VAR for variables; None where one is missing."""
        found: list[Any] = []
        for value in self._values:
            argument = VAR if value is None else value(row)
            if argument is None or argument is OMEGA:
                return None
            found.append(argument)
        return tuple(found)

    def key(self, arguments: tuple[Any, ...]) -> Key:
        return (self._name, *((type(a), repr(a) if isinstance(a, list | dict | float) else a) for a in arguments))


def narrow(answer: Answer, positions: tuple[int, ...]) -> Answer:
    """A call's answer as a predicate sees it: rows whose repeated variables agree, one value a variable."""
    count = 1 + max(positions, default=-1)
    if answer.truth != TRUE or count == len(positions):
        return answer
    if not positions:
        return HOLDS
    firsts = [positions.index(v) for v in range(count)]
    rows = tuple(
        tuple(row[i] for i in firsts)
        for row in answer.rows
        if all(i == firsts[v] or same(row[i], row[firsts[v]]) for i, v in enumerate(positions))
    )
    return Answer(TRUE, rows) if rows else FAILS
