"""The static predicates of sequences, decided by the filters: the AN and FR indexes of the automata.

A predicate that asks an operator or matches a GRAPH goes through the late step: the events on which its cheap part
leaves it open are told, and it is asked when the sequences can use the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from headgate.columns import Columns
from headgate.engine import Hits
from headgate.filters.compile import build_alone
from headgate.filters.engine import FilterIndex, compile_filters
from headgate.language.ast import Node, Path
from headgate.language.forms import Cut, CutSkeleton, FilledCut, cut_node, cut_skeleton
from headgate.match.residual import LateIndex, Open, is_late
from headgate.schema import Schema
from headgate.sequences.parameterized import Parameterized, plain
from headgate.sequences.static import Answers, Static, StaticIndex, Undecided, Waiting

CompileLate = Callable[[Sequence[tuple[Node, str]], Schema], LateIndex]
"""Compiles bodies, each with its missing-mode."""


@dataclass(frozen=True)
class LateWaiting:
    """What the late step has open, in the numbers that the predicates were given, which ascend."""

    late: Open
    numbers: NDArray[np.int32]

    @property
    def pairs(self) -> Hits:
        return Hits(self.late.pairs.event, self.numbers[self.late.pairs.slot])

    @property
    def undecided(self) -> list[Undecided]:
        return [Undecided(f.event, None, f.reason, f.code) for f in self.late.failed]

    def answered(self, row: int) -> Answers:
        return self.late.answered(row)

    def ask(self, pairs: Hits) -> tuple[Hits, list[Undecided]]:
        slot = np.searchsorted(self.numbers, pairs.slot).astype(np.int32)
        hits, failed = self.late.ask(Hits(pairs.event, slot))
        undecided = [
            Undecided(f.event, None if f.slot is None else int(self.numbers[f.slot]), f.reason, f.code) for f in failed
        ]
        return Hits(hits.event, self.numbers[hits.slot]), undecided


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
        of one skeleton are built once."""
        built: set[tuple[str, int, str]] = set()

        def make(schema: Schema, predicates: Sequence[tuple[Node, str]]) -> StaticIndex:
            waits = _waits([node for node, _ in predicates])
            numbers = [[i for i, w in enumerate(waits) if w == late] for late in (False, True)]
            plainly = [predicates[i] for i in numbers[0]]
            if alone:
                skeletons = {(schema.stream, _shape(node), mode): (node, mode) for node, mode in plainly}
                for cut, mode in _cuts([p for key, p in skeletons.items() if key not in built]):
                    build_alone(cut, mode, schema)
                built.update(key for key, (node, _) in skeletons.items() if isinstance(node, Parameterized))
                plainly = []
            filters = compile_filters(_cuts(plainly), schema)
            late = tuple((plain(predicates[i][0]), predicates[i][1]) for i in numbers[1])
            arrays = [np.array(n, np.int32) for n in numbers]
            some_any = not schema.declared or any(a.type is None for a in schema)
            opened = tuple((plain(node), mode) for node, mode in plainly) if some_any else ()
            made = FilterStatic(filters, arrays[0], late, arrays[1], opened, compile_late)
            made.late  # noqa: B018 - compiled here, so that its errors are those of the compilation
            return made

        return make


def _waits(nodes: Sequence[Node]) -> list[bool]:
    """Which predicates wait for an operator or a graph; of a skeleton this is asked once."""
    known: dict[int, bool] = {}
    found = []
    for node in nodes:
        shape = _shape(node)
        if shape not in known:
            known[shape] = is_late(node.skeleton if isinstance(node, Parameterized) else node)
        found.append(known[shape])
    return found


def _shape(node: Node) -> int:
    """The identity of its skeleton, which is interned; of a predicate without one, its own."""
    return id(node.skeleton if isinstance(node, Parameterized) else node)


def _cuts(predicates: Sequence[tuple[Node, str]]) -> Iterator[tuple[Cut | FilledCut, str]]:
    """Predicates as filters; those of one skeleton are cut once."""
    known: dict[int, CutSkeleton] = {}
    for node, missing in predicates:
        if not isinstance(node, Parameterized):
            yield cut_node(node), missing
            continue
        found = known.get(id(node.skeleton))
        if found is None:
            found = known[id(node.skeleton)] = cut_skeleton(node.skeleton)
        yield FilledCut(found, node.values), missing
