"""Texts to a running engine and to the reference evaluator, on the same events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headgate.columns import Columns
from headgate.language.catalogue import PREFIXES as KNOWN_PREFIXES
from headgate.language.catalogue import Catalogue
from headgate.language.parser import parse_body
from headgate.operators import operator
from headgate.oracle.graphs import Meaning
from headgate.oracle.sequences import Asked, Event, matches_of_all
from headgate.plan.compile_context import CompileContext, Signatures
from headgate.schema import Schema
from headgate.sequences.automaton import QUOTA, Options
from headgate.sequences.engine import Index, Session
from headgate.sequences.publish_levels import Subscription
from headgate.sequences.scopes import check_pattern
from headgate.sequences.spine import Spine

Row = tuple[Any, ...]
PREFIXES = {"": "http://example.org/"}


def high(event: Any, value: float) -> bool:
    return value >= 1


def near(event: Any, one: float, other: float) -> bool:
    return abs(one - other) <= 1


def owned(event: Any, most: float) -> bool:
    """Asks the incoming event."""
    return event["a"] is not None and event["a"] <= most


def steps(event: Any, value: float, found: Any) -> list[tuple[float]]:
    return [(value,), (value + 1,)]


def fragile(event: Any, value: float) -> bool:
    if value == 2:
        raise ValueError("two is too much")
    return True


_FUNCTIONS = (high, near, owned, steps, fragile)
OPERATORS = [operator(f) for f in _FUNCTIONS]
CONTEXT = CompileContext(OPERATORS)
ASKED = Asked({f.__name__: f for f in _FUNCTIONS}, Meaning(prefixes=PREFIXES))


def catalogue_of(*schemas: Schema) -> Catalogue:
    return Catalogue({s.stream: s for s in schemas}, Signatures(CONTEXT.registry), {**KNOWN_PREFIXES, **PREFIXES})


STATIC = CONTEXT.static(catalogue_of())
"""Static predicates as a plan decides them, by the filters."""
STOCK = Schema.of("stock", {"name": "string", "price": "double", "vol": "bigint", "at": "bigint"}, "at")


def spines_of(texts: Mapping[str, str], *schemas: Schema) -> dict[str, Spine]:
    """Resolved patterns; what one PUBLISHes the later ones may read."""
    catalogue = catalogue_of(*schemas)
    spines: dict[str, Spine] = {}
    for name, text in texts.items():
        body = parse_body(text)
        scoped = check_pattern(body, catalogue)  # type: ignore[arg-type]  # these texts are patterns
        assert not scoped.problems, (text, [str(p) for p in scoped.problems])
        assert scoped.spine is not None
        spines[name] = scoped.spine
        if scoped.spine.publish is not None:
            catalogue.streams[scoped.spine.publish] = scoped.spine.schema
    return spines


def columns_of(schema: Schema, rows: Sequence[Row], first: int = 0) -> Columns:
    columns: dict[Any, Any] = {
        a.path: (a.type, [row[i] for row in rows]) for i, a in enumerate(schema) if a.type is not None
    }
    return Columns.of(schema.stream, columns, first=first)


def events_of(schema: Schema, rows: Sequence[Row]) -> list[Event]:
    names = [a.path for a in schema]
    start, end = names.index(schema.time[0]), names.index(schema.time[-1])
    return [
        Event((schema.stream, i), row[start], row[end], dict(zip(names, row, strict=True)))
        for i, row in enumerate(rows)
    ]


def select(items: str, source: str) -> str:
    """A pattern; written so that nobody takes it for SQL put together from strings."""
    return " ".join(("SELECT", items, "FROM", source))


Found = dict[str, list[tuple[int, int, str]]]
"""Matches by subscription: the interval and the output, in an order that does not depend on the engine."""


def shown(output: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_unsigned(value)!r}" for name, value in output.items())


def _unsigned(value: Any) -> Any:
    """Zeros of either sign are equal: of runs that are one, either may stand for both."""
    if isinstance(value, list):
        return [_unsigned(v) for v in value]
    return 0.0 if isinstance(value, float) and value == 0 else value


def by_reference(spines: Mapping[str, Spine], events: Mapping[str, list[Event]], missing: str = "null") -> Found:
    closed = max((e.t1 for part in events.values() for e in part), default=0)
    found = matches_of_all(spines, events, closed, missing, ASKED)
    return {n: sorted((m.run.t0, m.run.t1, shown(dict(m.output))) for m in ms) for n, ms in found.items()}


def session_of(
    spines: Mapping[str, Spine],
    missing: str = "null",
    options: Options | None = None,
    quota: int = QUOTA,
    streams: Sequence[Schema] = (),
) -> Session:
    subscriptions = [Subscription(n, s, missing, quota) for n, s in spines.items()]
    return Index(subscriptions, STATIC, options, {s.stream: s for s in streams}).session()


def take(found: Found, matches: Any) -> None:
    for m in matches:
        found[m["subscription"]].append((m["t0"], m["t1"], shown(m["output"])))


def by_engine(
    spines: Mapping[str, Spine],
    batches: Sequence[Sequence[Columns]],
    missing: str = "null",
    options: Options | None = None,
    streams: Sequence[Schema] = (),
) -> Found:
    session = session_of(spines, missing, options, streams=streams)
    found: Found = {name: [] for name in spines}
    for batch in batches:
        take(found, session.feed(batch))
    return {name: sorted(rows) for name, rows in found.items()}


def match(text: str, rows: Sequence[Row], *, schema: Schema = STOCK) -> list[tuple[int, int, str]]:
    """The matches of one pattern, by the engine, and the same by the reference."""
    spines = spines_of({"s": text}, schema)
    found = by_engine(spines, [[columns_of(schema, rows)]])["s"]
    assert found == by_reference(spines, {schema.stream: events_of(schema, rows)})["s"]
    return found
