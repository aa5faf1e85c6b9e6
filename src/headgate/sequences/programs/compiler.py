"""Dynamic predicates to programs of the stack machine.

What the machine cannot do raises `Unsupported`, and the subscription takes the slower path: text functions and searches
on bound values, order between texts, arrays, attributes whose type nobody declared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headgate.language import ast
from headgate.language.ast import DUR as DURATION
from headgate.language.ast import Node, Path
from headgate.predicates.programs import kernels as machine
from headgate.predicates.programs.compiler import NUMBER, TRUTH, Instruction, Program, Unsupported, is_float, sort_of
from headgate.predicates.rows import Decided
from headgate.schema import Type
from headgate.sequences import tables
from headgate.sequences.programs import kernels as k

FUNCTIONS = {
    "COUNT": tables.COUNT,
    "SUM": tables.SUM,
    "AVG": tables.AVG,
    "MIN": tables.MIN,
    "MAX": tables.MAX,
    "FIRST": tables.FIRST,
    "LAST": tables.LAST,
    "STDDEV": tables.STDDEV,
    "": tables.RECURRENCE,
}


@dataclass(frozen=True)
class Place:
    """Where a program runs: the place of its step, and how names are found."""

    number: int
    column: Callable[[int, Path], tuple[int, Type | None]]
    """The column in memory of an attribute of the event at a place, and its type."""
    aggregate: Callable[[int, str], tuple[int, str, Type | None]]
    """The cell, the function and the type of an aggregate of the FOLD at a place."""
    starts: Callable[[Path], Path | None]
    """Where `$.a` reads before the first iteration."""
    code: Callable[[str], int]
    """The number that stands for a text."""


def compile_program(node: Node, place: Place) -> list[Instruction]:
    return _RunProgram(place).whole(node)


class _RunProgram(Program):
    """A program that reads a run and the incoming event."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self._place = place

    def text(self, value: str) -> int:
        return self._place.code(value)

    def other(self, node: Node) -> str:
        if not isinstance(node, Decided):
            return super().other(node)
        self.put(k.DECIDED, node.yes, node.no)
        return TRUTH

    def attribute(self, path: Path) -> str:
        head, place = path[0], self._place
        if path == (DURATION,):
            self.put(k.DUR)
            return NUMBER
        if head == "@":
            return self._aggregate(place.number, path[1], new=0)
        if head.startswith("@"):
            return self._aggregate(int(head[1:]), path[1], new=int(int(head[1:]) == place.number))
        if head == "$":
            return self._iteration(path[1:])
        number = int(head[1:])
        if path[1:] == (DURATION,):
            if number == place.number:
                self.put(k.EVENT_DUR)
            else:
                self.put(k.BOUND_DUR, number)
            return NUMBER
        column, kind = place.column(number, path[1:])
        if number == place.number:
            self.put(k.EVENT, column, is_float(kind))
        else:
            self.put(k.BOUND, number, column, is_float(kind))
        return sort_of(kind)

    def _aggregate(self, place: int, name: str, new: int) -> str:
        cell, function, kind = self._place.aggregate(place, name)
        sort = sort_of(kind)  # refuses what COLLECT gathers, which has no function in the kernel
        self.put(k.AGGREGATE, cell, FUNCTIONS[function], new)
        return sort

    def _iteration(self, path: Path) -> str:
        column, kind = self._place.column(self._place.number, path)
        start = self._place.starts(path)
        at = len(self.code)
        if start is None:
            self.put(machine.PUSH_NULL)
        elif sort_of(kind) != self.value(ast.Attribute(start)):
            raise Unsupported("`$` of two types")
        before = (k.ITERATION, self._place.number, column, is_float(kind), len(self.code) - at)
        self.code.insert(at, before)
        return sort_of(kind)
