"""Dependencies between the variables of one formula: x = 10 implies x <= 20 and excludes x <= 5.

They hold for scalars only; a quantifier over an ARRAY has none. Texts know them too: x = 'aa' decides every test on x,
and containing 'aa' implies containing 'a'. The conjunction of all of them is the care set by which a formula's BDD is
restricted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from headgate.filters.rows import SETS, Family, Reach, Rows, unpack
from headgate.language import ast
from headgate.predicates import tests
from headgate.predicates.cells import Cells


@dataclass(frozen=True)
class Variable:
    """A row as a variable: on which attribute, and the cells (or the text test) it holds for."""

    attribute: int
    reach: int
    argument: int
    test: ast.Node | None
    value: Any
    """The constant of an equality, for text tests to be tried on."""


class Dependencies:
    def __init__(self, rows: Rows, cells: Mapping[int, Cells], tests: Mapping[int, list[ast.Node]]) -> None:
        """`tests` are the text tests of each attribute, by number."""
        self._rows, self._all_cells, self._tests = rows, cells, tests
        self._tops = {a: c.top for a, c in cells.items()}
        self._pairs: dict[tuple[int, int], Any] = {}

    @cached_property
    def _variables(self) -> dict[int, Variable]:
        """Made when first asked for: without BDDs nobody does."""
        cuts = {a: c.cuts.to_pylist() for a, c in self._all_cells.items() if not isinstance(c.cuts, np.ndarray)}
        families, attributes, reaches, arguments, _ = (x.tolist() for x in unpack(self._rows.keys))
        found: dict[int, Variable] = {}
        offset, tests = self._rows.offset, self._tests
        for i, (family, a, reach, argument) in enumerate(zip(families, attributes, reaches, arguments, strict=True)):
            if family == Family.CELL:
                value = None
                if reach == Reach.MEMBER and 0 <= argument < SETS and argument % 2 and a in cuts:
                    value = cuts[a][argument // 2]
                found[offset + i] = Variable(a, reach, argument, None, value)
            elif family == Family.TEXT:
                found[offset + i] = Variable(a, reach, argument, tests[a][argument], None)
        return found

    @cached_property
    def _attributes(self) -> dict[int, int]:
        return {row: v.attribute for row, v in self._variables.items()}

    def care(self, variables: Mapping[int, Any]) -> Any:
        """The care set of a formula's own variables, given by row, or None if they are independent."""
        by_attribute: dict[int, list[int]] = {}
        for row in variables:
            attribute = self._attributes.get(row)
            if attribute is not None:
                by_attribute.setdefault(attribute, []).append(row)
        care = None
        for rows in by_attribute.values():
            if len(rows) > 1:
                for a, b in combinations(rows, 2):
                    pair = self._pair(a, b, variables)
                    if pair is not None:
                        care = pair if care is None else care & pair
        return care

    def _pair(self, row_a: int, row_b: int, variables: Mapping[int, Any]) -> Any:
        """What always holds of two variables, or None; made once a pair."""
        if (row_a, row_b) in self._pairs:
            return self._pairs[row_a, row_b]
        a, b = self._variables[row_a], self._variables[row_b]
        one, other, care = variables[row_a], variables[row_b], None
        for holds_, clause in (
            (self._implies(a, b), ~one | other),
            (self._implies(b, a), one | ~other),
            (self._excludes(a, b), ~one | ~other),
        ):
            if holds_:
                care = clause if care is None else care & clause
        self._pairs[row_a, row_b] = care
        return care

    def _implies(self, a: Variable, b: Variable) -> bool:
        if a.test is None and b.test is None:
            inner, outer = self._cells(a), self._cells(b)
            return inner is not None and outer is not None and inner[0] >= outer[0] and inner[1] <= outer[1]
        if a.test is None and b.test is not None:
            return isinstance(a.value, str) and holds(b.test, a.value)
        if a.test is not None and b.test is None:
            return b.reach == Reach.UPTO and b.argument == self._tops[b.attribute]
        return a.test is not None and b.test is not None and _test_implies(a.test, b.test)

    def _excludes(self, a: Variable, b: Variable) -> bool:
        if a.test is None and b.test is None:
            x, y = self._cells(a), self._cells(b)
            return x is not None and y is not None and (x[1] < y[0] or y[1] < x[0])
        for one, other in ((a, b), (b, a)):
            if one.test is None and other.test is not None and isinstance(one.value, str):
                return not holds(other.test, one.value)
        return False

    def _cells(self, v: Variable) -> tuple[int, int] | None:
        """The range of cells a variable holds for, where it is one."""
        if v.reach == Reach.UPTO:
            return 0, v.argument
        if v.reach == Reach.MEMBER and 0 <= v.argument < SETS:
            return v.argument, v.argument
        return None


def holds(test: ast.Node, value: str) -> bool:
    """A test of one attribute on one value of it."""
    assert isinstance(test, ast.Test)
    test_of, operands = tests.resolve(test)
    return test_of(*(operand.value if isinstance(operand, ast.Literal) else value for operand in operands))


def _test_implies(a: ast.Node, b: ast.Node) -> bool:
    """CONTAINS p implies CONTAINS q if p contains q, and likewise for prefixes, suffixes and the other direction."""
    match a, b:
        case ast.Test("CONTAINS" | "STARTS WITH" | "ENDS WITH" as kind_a, (ast.Attribute(), ast.Literal(p))), ast.Test(
            "CONTAINS" | "STARTS WITH" | "ENDS WITH" as kind_b, (ast.Attribute(), ast.Literal(q))
        ):
            return (kind_a == kind_b or kind_b == "CONTAINS") and holds(b, p) if q is not None else False
        case ast.Test("CONTAINS", (ast.Literal(p), _)), ast.Test("CONTAINS", (ast.Literal(q), _)):
            return p in q
    return False
