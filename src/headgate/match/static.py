"""The static predicates of sequences, decided by the filters: the AN and FR indexes of the automata.

A predicate that asks an operator or matches a GRAPH goes through the late step: the events on which its cheap part
leaves it open are told, and it is asked when the sequences can use the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from headgate.columns import Columns
from headgate.engine import Hits
from headgate.filters.compile import build_alone
from headgate.filters.engine import FilterIndex, compile_filters
from headgate.language.ast import Node, Path
from headgate.language.forms import Cut, FilledCuts, cut_node, cut_skeleton
from headgate.match.residual import LateIndex, Open, is_late
from headgate.schema import Schema
from headgate.sequences.parameterized import put_in
from headgate.sequences.static import Answers, Static, StaticIndex, StaticPredicates, Waiting

CompileLate = Callable[[Sequence[tuple[Node, str]], Schema], LateIndex]
"""Compiles bodies, each with its missing-mode."""


@dataclass(frozen=True)
class LateWaiting:
    """What the late step has open, in the numbers that the predicates were given, which ascend."""

    late: Open
    numbers: NDArray[np.int32]

    @cached_property
    def pairs(self) -> Hits:
        return self._numbered(self.late.pairs)

    def answered(self, row: int) -> Answers:
        return self.late.answered(row)

    def ask(self, pairs: Hits) -> Hits:
        slot = np.searchsorted(self.numbers, pairs.slot).astype(np.int32)
        return self._numbered(self.late.ask(Hits(pairs.event, slot)))

    def _numbered(self, hits: Hits) -> Hits:
        problems = [p if p.slot is None else replace(p, slot=int(self.numbers[p.slot])) for p in hits.problems]
        return Hits(hits.event, self.numbers[hits.slot], problems=problems)


@dataclass(frozen=True)
class FilterStatic:
    """The predicates of one stream: those of the filters and the late ones, each with the numbers they were given."""

    filters: FilterIndex
    filter_numbers: NDArray[np.int32]
    late_bodies: tuple[tuple[Node, str], ...]
    late_numbers: NDArray[np.int32]
    open_bodies: tuple[tuple[Node, str], ...] = ()
    """Those of the filters, where attributes of the type ANY may hold arrays."""
    _compile: CompileLate | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        bodies = self.open_bodies
        self.filters.bind(lambda slots: ((cut_node(bodies[i][0]), bodies[i][1]) for i in slots.tolist()))

    def bound(self, compile_late: CompileLate) -> FilterStatic:
        """With the operators and graphs that its late predicates ask."""
        return replace(self, _compile=compile_late)

    @cached_property
    def late(self) -> LateIndex | None:
        if not self.late_bodies:
            return None
        assert self._compile is not None
        return self._compile(self.late_bodies, self.filters.schema)

    def hits(self, columns: Columns) -> Hits:
        found = self.filters.evaluate(columns)
        return Hits(found.event, self.filter_numbers[found.slot])

    def waiting(self, columns: Columns, answered: Sequence[Answers] | None = None) -> Waiting | None:
        return None if self.late is None else LateWaiting(self.late.open(columns, answered), self.late_numbers)

    def possible(self, columns: Columns) -> Hits:
        if self.late is None:
            return Hits.none()
        found = self.late.possible.evaluate(columns)
        return Hits(found.event, self.late_numbers[found.slot])

    @property
    def needs(self) -> frozenset[Path]:
        return self.filters.needs if self.late is None else self.filters.needs | self.late.needs

    @staticmethod
    def maker(compile_late: CompileLate, *, alone: bool = False) -> Static:
        """`alone`: predicates are built, but filed in no index, for somebody who only asks whether they can be; those
        of one skeleton, which is interned, are built once."""
        built: set[tuple[str, int, str]] = set()

        def make(schema: Schema, predicates: Sequence[StaticPredicates]) -> StaticIndex:
            cuts: list[tuple[Cut | FilledCuts, str]] = []
            late: list[tuple[Node, str]] = []
            opened: list[tuple[Node, str]] = []
            some_any = not schema.declared or any(a.type is None for a in schema)
            numbers: tuple[list[int], list[int]] = ([], [])
            for p in predicates:
                waits = is_late(p.skeleton)
                count = len(numbers[0]) + len(numbers[1])
                numbers[waits].extend(range(count, count + len(p.rows)))
                if waits:
                    late += [(put_in(p.skeleton, row), p.missing) for row in p.rows]
                    continue
                cut: Cut | FilledCuts = (
                    FilledCuts(cut_skeleton(p.skeleton), p.rows) if p.rows[0] else cut_node(p.skeleton)
                )
                key = (schema.stream, id(p.skeleton), p.missing)
                if not alone:
                    cuts.append((cut, p.missing))
                    opened += [(put_in(p.skeleton, row), p.missing) for row in p.rows] if some_any else []
                elif key not in built:
                    build_alone(cut, p.missing, schema)
                    built.add(key)
            arrays = [np.array(n, np.int32) for n in numbers]
            filters = compile_filters(cuts, schema)
            if alone:
                arrays[0] = arrays[0][:0]
            made = FilterStatic(filters, arrays[0], tuple(late), arrays[1], tuple(opened), compile_late)
            made.late  # noqa: B018 - compiled here, so that its errors are those of the compilation
            return made

        return make
