"""What a plan needs besides arrays: operators are code, ontologies are read, automata of sequences are built.

A book shares one `CompileContext` with its plans, so that what operators taught is kept when the plan changes. A plan that was
opened from a file makes its own, from the texts in the file and the operators it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from headgate.errors import PlanError
from headgate.graphs.engine import GraphEngine
from headgate.graphs.ontology import Ontology
from headgate.graphs.pattern import Prefixes
from headgate.graphs.rdf import read
from headgate.graphs.template import Template
from headgate.language import codec
from headgate.language.ast import Node
from headgate.language.catalogue import Catalogue, Signature
from headgate.match.residual import LateIndex, compile_late
from headgate.match.static import CompileLate, FilterStatic
from headgate.operators import Registry
from headgate.operators.engine import OperatorEngine
from headgate.plan.segment import Segment
from headgate.plan.sequences import Sequences
from headgate.schema import Kind, Schema
from headgate.sequences.static import Static, StaticIndex

_MOST_LATE = 256
"""How many late indexes are kept: those of a plan's segments and streams, and some of older plans."""


class Signatures(Mapping[str, Signature]):
    """The signatures of a registry, for the type check."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def __getitem__(self, name: str) -> Signature:
        if name not in self._registry:
            raise KeyError(name)
        return self._registry[name].signature

    def __iter__(self) -> Iterator[str]:
        return iter(self._registry)

    def __len__(self) -> int:
        return len(self._registry)


class CompileContext:
    def __init__(self, operators: Registry | Iterable[Any] = ()) -> None:
        self.registry = operators if isinstance(operators, Registry) else Registry(iter(operators))
        self.engine = OperatorEngine(self.registry)
        self._late: dict[Any, LateIndex] = {}
        self._graphs: dict[str, tuple[Any, GraphEngine]] = {}
        self.sequences = Sequences(self.static)
        self.books: dict[int, tuple[str, object]] = {}
        """By number of buckets: the sequences of the last plan, spread over so many (see `sequence_book`)."""

    def late(self, segment: Segment, catalogue: Catalogue) -> Mapping[str, LateIndex]:
        """The late indexes of a segment, by stream; compiled when first asked for."""
        found = {}
        for stream, slots in segment.late_slots.items():
            key = (segment.fingerprint, stream, catalogue.meaning())
            index = self._late.get(key)
            if index is None:
                while len(self._late) >= _MOST_LATE:
                    # Of segments that were merged away, most likely; a plan that still has one compiles it again.
                    self._late.pop(next(iter(self._late)), None)
                modes: list[Any] = segment.modes.take(slots).to_pylist()
                texts: list[Any] = segment.late_bodies[stream].to_pylist()
                trees = (codec.decode(orjson.loads(text)) for text in texts)
                schema = catalogue.streams.get(stream, Schema(stream, {}))
                bodies = list(zip(trees, modes, strict=True))
                index = self._late[key] = self.compile_late(catalogue)(bodies, schema)
            found[stream] = index
        return found

    def static(self, catalogue: Catalogue, *, alone: bool = False) -> Static:
        """Makes the indexes of the static predicates of sequences; `alone`, only to see whether they can be made."""
        return FilterStatic.maker(self.compile_late(catalogue), alone=alone)

    def bind(self, catalogue: Catalogue) -> Callable[[StaticIndex], StaticIndex]:
        """Gives static predicates that were read from a file the operators and graphs they ask."""
        compile_late = self.compile_late(catalogue)

        def bound(static: StaticIndex) -> StaticIndex:
            if not isinstance(static, FilterStatic):
                raise PlanError("the plan is damaged: it has something else for static predicates")
            return static.bound(compile_late)

        return bound

    def compile_late(self, catalogue: Catalogue) -> CompileLate:
        def late(bodies: Sequence[tuple[Node, str]], schema: Schema) -> LateIndex:
            return compile_late(bodies, schema, self.engine, self.graphs(schema.stream, catalogue))

        return late

    def graphs(self, stream: str, catalogue: Catalogue) -> GraphEngine:
        """The graph engine of a stream: what its events are read from, under all ontologies of the book."""
        template = catalogue.templates.get(stream)
        schema = catalogue.streams.get(stream)
        # Of a stream that nobody declared, the next text may name another column.
        known_columns = schema if schema is not None and schema.declared else ()
        columns = [a.path for a in known_columns if a.type is not None and a.type.kind is Kind.GRAPH]
        made_of = (catalogue.meaning(), template, tuple(columns))
        known = self._graphs.get(stream)
        if known is None or known[0] != made_of:
            source: Any = columns[0] if len(columns) == 1 else None
            if template is not None:
                source = Template.of(template, Prefixes(catalogue.prefixes))
            engine = GraphEngine(_ontology(catalogue), catalogue.prefixes, source)
            known = self._graphs[stream] = (made_of, engine)
        return known[1]


def _ontology(catalogue: Catalogue) -> Ontology | None:
    if not catalogue.ontologies:
        return None
    documents = []
    for name, found in catalogue.ontologies.items():
        try:
            documents.append(read(found.text, found.format))
        except Exception as e:
            raise PlanError(f"ontology {name} cannot be read: {e}") from e
    return Ontology.merged(documents)
