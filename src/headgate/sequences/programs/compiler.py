"""Dynamic predicates to programs of the stack machine.

What the machine cannot do raises `Unsupported`, and the subscription takes the slower path: text functions and searches
on bound values, order between texts, arrays, attributes whose type nobody declared.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headgate.language import ast
from headgate.language.ast import DUR as DURATION
from headgate.language.ast import Node, Path
from headgate.predicates.functions import FUNCTIONS as KNOWN_FUNCTIONS
from headgate.predicates.rows import Decided
from headgate.predicates.times import instant
from headgate.schema import Kind, Type
from headgate.sequences import tables
from headgate.sequences.programs import kernels as k

Instruction = tuple[int, int, int, int, int]
NUMBER, TEXT, TRUTH, ANY = "number", "text", "truth", "any"
_ARITHMETIC = {"+": k.ADD, "-": k.SUBTRACT, "*": k.MULTIPLY, "/": k.DIVIDE, "%": k.MODULO}
_FUNCTIONS = {"ABS": k.ABSOLUTE}
_COMPARE = {"=": k.EQ, "<>": k.NE, "<": k.LT, "<=": k.LE, ">": k.GT, ">=": k.GE}
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


class Unsupported(Exception):
    """The stack machine cannot do this; the message names it for `stats`."""


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
    program = _Program(place)
    program.value(node)
    if program.depth > k.STACK - 2:
        raise Unsupported("a very wide expression")
    return [*program.code, (k.END, 0, 0, 0, 0)]


def is_float(kind: Type | None) -> int:
    return int(kind is not None and kind.kind is Kind.DOUBLE)


def sort_of(kind: Type | None) -> str:
    """How the machine holds a type."""
    if kind is None:
        raise Unsupported("an attribute without a declared type")
    if kind.array:
        raise Unsupported("an ARRAY")
    if kind.kind in (Kind.STRING, Kind.BINARY, Kind.GRAPH):
        return TEXT
    return TRUTH if kind.kind is Kind.BOOLEAN else NUMBER


class _Program:
    def __init__(self, place: Place) -> None:
        self._place = place
        self.code: list[Instruction] = []
        self.depth = 0
        self._height = 0

    def put(self, op: int, *operands: int, pops: int = 0) -> None:
        a, b, c, d = (*operands, 0, 0, 0, 0)[:4]
        self.code.append((op, a, b, c, d))
        self._height += 1 - pops
        self.depth = max(self.depth, self._height)

    def value(self, node: Node) -> str:
        match node:
            case ast.Literal(value):
                return self._literal(value)
            case ast.Instant(text):
                self.put(k.PUSH_INT, instant(text))
                return NUMBER
            case ast.Attribute(path):
                return self._attribute(path)
            case ast.Negate(operand):
                self._number(operand)
                self.put(k.NEGATE, pops=1)
                return NUMBER
            case ast.Function(name, (operand,)) if KNOWN_FUNCTIONS[name].kernel:
                self._number(operand)
                self.put(_FUNCTIONS[name], pops=1)
                return NUMBER
            case ast.Arithmetic(op, left, right):
                self._number(left)
                self._number(right)
                self.put(_ARITHMETIC[op], pops=2)
                return NUMBER
            case ast.And(items) | ast.Or(items):
                for item in items:
                    self.value(item)
                self.put(k.AND if isinstance(node, ast.And) else k.OR, len(items), pops=len(items))
            case ast.Not(operand):
                self.value(operand)
                self.put(k.NOT, pops=1)
            case ast.IsNull(operand):
                self.value(operand)
                self.put(k.IS_NULL, pops=1)
            case ast.Compare(op, left, right):
                self._compare(op, left, right)
            case ast.Between(operand, low, high):
                self._compare(">=", operand, low)
                self._compare("<=", operand, high)
                self.put(k.AND, 2, pops=2)
            case ast.In(operand, items):
                for item in items:
                    self._compare("=", operand, item)
                self.put(k.OR, len(items), pops=len(items))
            case Decided(yes, no):
                self.put(k.DECIDED, yes, no)
            case _:
                raise Unsupported(type(node).__name__.upper())
        return TRUTH

    def _literal(self, value: Any) -> str:
        if value is None:
            self.put(k.PUSH_NULL)
            return ANY
        if isinstance(value, str):
            self.put(k.PUSH_INT, self._place.code(value))
            return TEXT
        if isinstance(value, float):
            self.put(k.PUSH_FLOAT, struct.unpack("<q", struct.pack("<d", value))[0])
            return NUMBER
        self.put(k.PUSH_INT, int(value))
        return TRUTH if isinstance(value, bool) else NUMBER

    def _attribute(self, path: Path) -> str:
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
        self.put(k.AGGREGATE, cell, FUNCTIONS[function], new)
        return sort_of(kind)

    def _iteration(self, path: Path) -> str:
        column, kind = self._place.column(self._place.number, path)
        start = self._place.starts(path)
        at = len(self.code)
        if start is None:
            self.put(k.PUSH_NULL)
        elif sort_of(kind) != self.value(ast.Attribute(start)):
            raise Unsupported("`$` of two types")
        before = (k.ITERATION, self._place.number, column, is_float(kind), len(self.code) - at)
        self.code.insert(at, before)
        return sort_of(kind)

    def _number(self, node: Node) -> None:
        if self.value(node) not in (NUMBER, ANY):
            raise Unsupported("arithmetic on what is no number")

    def _compare(self, op: str, left: Node, right: Node) -> None:
        sorts = {self.value(left), self.value(right)} - {ANY}
        if len(sorts) > 1 or (TEXT in sorts and op not in ("=", "<>")):
            raise Unsupported("order of texts" if sorts == {TEXT} else "a comparison of different types")
        self.put(_COMPARE[op], pops=2)
