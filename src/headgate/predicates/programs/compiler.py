"""Conditions and expressions to programs of the stack machine.

What the machine cannot do raises `Unsupported`, and the caller takes the row evaluator: text functions and searches,
order between texts, arrays, attributes whose type nobody declared.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from typing import Any

from headgate.language import ast
from headgate.language.ast import Node, Path
from headgate.predicates.functions import FUNCTIONS
from headgate.predicates.programs import kernels as k
from headgate.predicates.times import instant
from headgate.predicates.values import INT64
from headgate.schema import Kind, Type

Instruction = tuple[int, int, int, int, int]
NUMBER, TEXT, TRUTH, ANY = "number", "text", "truth", "any"
_ARITHMETIC = {"+": k.ADD, "-": k.SUBTRACT, "*": k.MULTIPLY, "/": k.DIVIDE, "%": k.MODULO}
_FUNCTIONS = {"ABS": k.ABSOLUTE}
_COMPARE = {"=": k.EQ, "<>": k.NE, "<": k.LT, "<=": k.LE, ">": k.GT, ">=": k.GE}


class Unsupported(Exception):
    """The stack machine cannot do this; the message names it for `stats`."""


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


class Program(ABC):
    """One program; an engine says how attributes get onto the stack."""

    def __init__(self) -> None:
        self.code: list[Instruction] = []
        self._depth = 0
        self._height = 0

    @abstractmethod
    def attribute(self, path: Path) -> str:
        """Put the value of an attribute onto the stack, and say what sort it is of."""

    @abstractmethod
    def text(self, value: str) -> int:
        """The number that stands for a text."""

    def other(self, node: Node) -> str:
        """A node that only the engine knows."""
        raise Unsupported(type(node).__name__.upper())

    def whole(self, node: Node) -> list[Instruction]:
        """The program of a condition or an expression."""
        self.value(node)
        if self._depth > k.STACK - 2:
            raise Unsupported("a very wide expression")
        return [*self.code, (k.END, 0, 0, 0, 0)]

    def put(self, op: int, *operands: int, pops: int = 0) -> None:
        a, b, c, d = (*operands, 0, 0, 0, 0)[:4]
        self.code.append((op, a, b, c, d))
        self._height += 1 - pops
        self._depth = max(self._depth, self._height)

    def value(self, node: Node) -> str:
        match node:
            case ast.Literal(value):
                return self._literal(value)
            case ast.Instant(text):
                self.put(k.PUSH_INT, instant(text))
                return NUMBER
            case ast.Attribute(path):
                return self.attribute(path)
            case ast.Negate(operand):
                self._number(operand)
                self.put(k.NEGATE, pops=1)
                return NUMBER
            case ast.Function(name, (operand,)) if FUNCTIONS[name].kernel:
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
            case _:
                return self.other(node)
        return TRUTH

    def _literal(self, value: Any) -> str:
        if value is None:
            self.put(k.PUSH_NULL)
            return ANY
        if isinstance(value, str):
            self.put(k.PUSH_INT, self.text(value))
            return TEXT
        if isinstance(value, float):
            self.put(k.PUSH_FLOAT, struct.unpack("<q", struct.pack("<d", value))[0])
            return NUMBER
        if value not in INT64:
            raise Unsupported("a number beyond 64 bits")
        self.put(k.PUSH_INT, int(value))
        return TRUTH if isinstance(value, bool) else NUMBER

    def _number(self, node: Node) -> None:
        if self.value(node) not in (NUMBER, ANY):
            raise Unsupported("arithmetic on what is no number")

    def _compare(self, op: str, left: Node, right: Node) -> None:
        sorts = {self.value(left), self.value(right)} - {ANY}
        if len(sorts) > 1 or (TEXT in sorts and op not in ("=", "<>")):
            raise Unsupported("order of texts" if sorts == {TEXT} else "a comparison of different types")
        self.put(_COMPARE[op], pops=2)
