"""The graphs engine: GRAPH atoms against batches of events.

Events come as RDF text in a GRAPH column, or are built from plain columns by the stream's template. An event is read
once while its batch lives, however many indexes (segments of a plan, shards of a book) are evaluated on it. By default a
slot answers with one row an event, its least binding: variables in the order of their names, booleans before numbers
before text. Where other atoms join on the variables, name the slot in `every`, and it answers with one row for each
distinct binding.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from headgate.columns import Column, Columns
from headgate.engine import Binding, Hits, PairProblem
from headgate.errors import EventError, HeadgateError, LanguageError, UsageError
from headgate.graphs import rdf
from headgate.graphs.event import LIMITS, EventGraph, Limits
from headgate.graphs.index import build
from headgate.graphs.matching import Bindings, Found, Matcher
from headgate.graphs.ontology import Ontology
from headgate.graphs.pattern import Prefixes, compile_pattern
from headgate.graphs.template import Template
from headgate.language import ast
from headgate.language.ast import Node, Path

Source = Path | Template
"""Where the graph of an event comes from: a GRAPH column, or a template over plain ones."""
Read = list[Any]
"""By row of a batch: an EventGraph, None where there is none, what is wrong with it, or _UNREAD."""
_READ: WeakKeyDictionary[Column, dict[tuple[Source, Limits], tuple[tuple[Column | None, ...], Read]]]
_READ = WeakKeyDictionary()
"""What was read of columns that are still in use, by the first column that a graph is made of; the others stand beside
it. It belongs to no engine: each shard of a book has its own, and what an event says depends on no ontology."""
_UNREAD = object()


@dataclass(frozen=True, slots=True)
class GraphHits(Hits):
    """Hits, and the rows without a usable graph, for which a GRAPH atom is neither true nor false."""

    unknown: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(frozen=True, eq=False)
class Part:
    """The slots that read one source."""

    source: Source
    slots: NDArray[np.int32]
    matcher: Matcher


@dataclass(frozen=True, eq=False)
class GraphIndex:
    parts: tuple[Part, ...]
    size: int

    def with_ontology(self, ontology: Ontology) -> GraphIndex:
        """The same patterns under a reloaded ontology, without parsing or indexing anything again."""
        return replace(
            self,
            parts=tuple(
                replace(p, matcher=Matcher(p.matcher.index.with_ontology(ontology), p.matcher.limits))
                for p in self.parts
            ),
        )


class GraphEngine:
    """One engine a stream. `source` is its GRAPH column or its template; patterns may name another column."""

    def __init__(
        self,
        ontology: Ontology | None = None,
        prefixes: Mapping[str, str] | None = None,
        source: Source | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        self.ontology = ontology or Ontology.empty()
        self.prefixes = Prefixes(prefixes)
        self.source = source
        self.limits = limits

    @classmethod
    def of(
        cls,
        stream: ast.CreateStream,
        ontology: Ontology | None = None,
        prefixes: Mapping[str, str] | None = None,
        limits: Limits = LIMITS,
    ) -> GraphEngine:
        """The engine of a declared stream: its template, or its one GRAPH column; of several, patterns name theirs."""
        if stream.graph is not None:
            return cls(ontology, prefixes, Template.of(stream.graph, Prefixes(prefixes)), limits)
        columns = [c.path for c in stream.columns if c.type == "GRAPH"]
        return cls(ontology, prefixes, columns[0] if len(columns) == 1 else None, limits)

    def __reduce__(self) -> tuple[Any, ...]:
        return GraphEngine, (self.ontology, self.prefixes.known, self.source, self.limits)

    def compile(self, expressions: Sequence[Node], every: Collection[int] = ()) -> GraphIndex:
        """Index GRAPH patterns. `every` are the slots that need all their bindings."""
        by: dict[Source, tuple[Source, list[int]]] = {}
        named = []
        for slot, node in enumerate(expressions):
            if not isinstance(node, ast.Graph):
                raise UsageError(f"slot {slot} is {type(node).__name__}, not a GRAPH")
            source = self.source if node.column is None else node.column.path
            if source is None:
                hint = "declare a GRAPH column or a template; of several columns, name one: GRAPH column { ... }"
                raise LanguageError("it is not clear which graph of the event is meant", hint, at=node.at)
            named.append(compile_pattern(node, self.prefixes))
            by.setdefault(source, (source, []))[1].append(slot)
        parts = []
        for source, slots in by.values():
            wanted = [i for i, slot in enumerate(slots) if slot in every]
            index = build([named[slot] for slot in slots], self.ontology, wanted)
            parts.append(Part(source, np.array(slots, np.int32), Matcher(index, self.limits)))
        return GraphIndex(tuple(parts), len(named))

    def needs(self, index: GraphIndex) -> frozenset[Path]:
        paths = [p.source.needs() if isinstance(p.source, Template) else frozenset((p.source,)) for p in index.parts]
        return frozenset().union(*paths)

    def evaluate(
        self,
        index: GraphIndex,
        columns: Columns,
        upstream: Hits | None = None,
        *,
        rows: NDArray[np.int64] | None = None,
    ) -> GraphHits:
        """`rows` asks for all slots on some events: their rows in the batch, sorted."""
        answers = [self._part(part, index, columns, upstream, rows) for part in index.parts]
        answers = [a for a in answers if len(a) or len(a.unknown)]
        if len(answers) == 1:
            return answers[0]
        event = np.concatenate([a.event for a in answers]) if answers else np.empty(0, np.int64)
        slot = np.concatenate([a.slot for a in answers]) if answers else np.empty(0, np.int32)
        order = np.lexsort((slot, event))
        bound: list[Binding] = [b for a in answers for b in a.binding or ()]
        return GraphHits(
            event[order],
            slot[order],
            [bound[i] for i in order.tolist()],
            [p for a in answers for p in a.problems],
            np.unique(np.concatenate([a.unknown for a in answers])) if answers else np.empty(0, np.int64),
        )

    def _part(
        self,
        part: Part,
        index: GraphIndex,
        columns: Columns,
        upstream: Hits | None,
        rows: NDArray[np.int64] | None,
    ) -> GraphHits:
        local = np.full(index.size, -1, np.int32)
        local[part.slots] = np.arange(len(part.slots), dtype=np.int32)
        rows = np.arange(columns.rows) if rows is None else rows
        asked = None
        if upstream is not None:
            mine = local[upstream.slot] >= 0
            asked = upstream.event[mine], local[upstream.slot[mine]]
            rows = np.unique(asked[0])
        read = self.read(part.source, columns, rows)
        usable = np.array([r for r in rows.tolist() if isinstance(read[r], EventGraph)], np.int64)
        problems = [
            PairProblem(r, None, str(problem), problem.code)
            for r in rows.tolist()
            if isinstance(problem := read[r], HeadgateError)
        ]
        graphs = [g for r in usable.tolist() if isinstance(g := read[r], EventGraph)]
        if asked is not None:
            kept = np.isin(asked[0], usable)
            asked = np.searchsorted(usable, asked[0][kept]), asked[1][kept]
        found = part.matcher.match(graphs, asked)
        problems += [
            PairProblem(int(usable[g.event]), int(part.slots[g.slot]), g.reason, "limit") for g in found.given_up
        ]
        bindings = Bindings(part.matcher.index, [g.terms for g in graphs], found)
        return GraphHits(usable[found.event], part.slots[found.slot], bindings, problems, np.setdiff1d(rows, usable))

    def read(
        self, source: Source, columns: Columns, rows: NDArray[np.int64]
    ) -> Sequence[EventGraph | HeadgateError | None]:
        """The graphs of a batch by row, those of the given rows at least: an EventGraph, None where there is none, or
        what is wrong with it."""
        graphs = self._known(source, columns)
        missing = [r for r in rows.tolist() if graphs[r] is _UNREAD]
        if not missing:
            return graphs
        if isinstance(source, Template):
            for row, graph in zip(missing, source.read(columns, missing, self.limits), strict=True):
                graphs[row] = graph
        else:
            texts = columns[source]
            for row in missing:
                text = texts.value(row)
                graphs[row] = self._graph(text) if isinstance(text, str) else None
        return graphs

    def _known(self, source: Source, columns: Columns) -> Read:
        paths = sorted(source.needs()) if isinstance(source, Template) else [source]
        used = [columns.get(path) for path in paths]
        first = next((c for c in used if c is not None), None)
        if first is None:
            return [_UNREAD] * columns.rows
        others = tuple(c for c in used if c is not first)
        known = _READ.setdefault(first, {})
        found = known.get((source, self.limits))
        if found is None or any(a is not b for a, b in zip(found[0], others, strict=True)):
            found = known[source, self.limits] = others, [_UNREAD] * columns.rows
        return found[1]

    def _graph(self, text: str) -> EventGraph | HeadgateError:
        try:
            return EventGraph.of(rdf.read(text), self.limits)
        except (rdf.BadRdf, EventError) as problem:
            return problem


__all__ = ["Found", "GraphEngine", "GraphHits", "GraphIndex"]
