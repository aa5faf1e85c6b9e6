"""Match one of the example scripts beside this file, and explain the first miss of its first subscription.

    python examples/graphs/run.py auction
    python examples/graphs/run.py offers

`auction` is the example of the OPS paper (Middleware 2004). In `offers` the events are JSON with schema.org's words.
"""

from __future__ import annotations

import sys
from pathlib import Path

from headgate.events import read_json_lines
from headgate.graphs.engine import GraphEngine
from headgate.graphs.event import EventGraph
from headgate.graphs.explain import explain
from headgate.graphs.ontology import Ontology
from headgate.graphs.pattern import compile_pattern
from headgate.language import ast
from headgate.language.parser import parse_script
from headgate.schema import Schema, format_path

HERE = Path(__file__).parent


def main(name: str) -> None:
    statements = parse_script((HERE / f"{name}.hg").read_text("utf-8"))
    stream = next(s for s in statements if isinstance(s, ast.CreateStream))
    subscriptions = [s for s in statements if isinstance(s, ast.CreateSubscription)]
    ontology = Ontology.load(*(HERE / s.source for s in statements if isinstance(s, ast.CreateOntology)))
    prefixes = {s.name: s.iri for s in statements if isinstance(s, ast.Prefix)}
    engine = GraphEngine.of(stream, ontology, prefixes)
    index = engine.compile([s.body for s in subscriptions])
    schema = Schema.of(stream.name, {format_path(c.path): c.type for c in stream.columns})
    for batch in read_json_lines(HERE / f"{name}.jsonl", schema, engine.needs(index)):
        hits = engine.evaluate(index, batch.columns)
        for event, slot, binding in zip(hits.event, hits.slot, hits.binding or (), strict=True):
            values = {n: v for n, v in binding.items() if not str(v).startswith("_:")}
            print(f"event {event}: {subscriptions[slot].name} {values}")
        for problem in hits.problems:
            print(f"event {problem.event}: refused, {problem.reason}")
        first = subscriptions[0].body
        assert isinstance(first, ast.Graph)
        assert engine.source is not None
        matched = {int(e) for e, s in zip(hits.event, hits.slot, strict=True) if s == 0}
        missed = next(e for e in range(batch.columns.rows) if e not in matched)
        graph = engine.read(engine.source, batch.columns, hits.event[:0])[missed]
        assert isinstance(graph, EventGraph)
        print(f"\nwhy event {missed} is no {subscriptions[0].name}:")
        print(explain(compile_pattern(first, engine.prefixes), graph, ontology, engine.prefixes))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "auction")
