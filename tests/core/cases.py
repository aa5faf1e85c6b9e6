"""A case: a book of a few subscriptions of any family on declared and undeclared streams, and a batch for each stream.

Everything is drawn from a `Random`; what fails is made smaller here and prints as plain Python values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hypothesis import strategies as st
from tests.core.conditions import Scope, attributes, predicate
from tests.core.sequences import select
from tests.core.values import TYPES, fitting, hostile, literal, of_any_kind
from tests.language.strategies import bodies

from headgate.language.printer import print_node
from headgate.schema import Kind

PREFIX = "PREFIX : <http://example.org/>;"
_TIMES = ["", " TIME at", " TIME at", " TIME start, at", " TIME seen"]
_TEMPLATE = " AS GRAPH { _:H a :C0 ; :p0 n ; :p1 name ; :p2 _:k . _:k :p0 x }"
_MODES = ["null", "null", "null", "strict", "default", "default", "total"]


@dataclass(frozen=True)
class Subscription:
    name: str
    text: str
    stream: str
    missing: str = "null"


@dataclass(frozen=True)
class Case:
    script: str
    subscriptions: tuple[Subscription, ...]
    events: dict[str, list[Any]]


_BEYOND = ("9223372036854775808", "-9223372036854775809")
"""A BIGINT has no such DEFAULT."""


def declaration(random: Random, stream: str) -> str:
    """CREATE STREAM with every type; some attributes have a DEFAULT or are NOT NULL."""
    template = random.randrange(8) == 0
    columns = []
    for name, (kind, array) in TYPES.items():
        if template and kind is Kind.GRAPH:
            continue
        option = ""
        choice = random.randrange(60)
        if choice < 8 and not array and kind not in (Kind.BINARY, Kind.GRAPH):
            value = literal(random, kind)
            fits = value != "NULL" and len(value) < 20 and "\0" not in value and value not in _BEYOND
            option = f" DEFAULT {value}" if fits else ""
        elif choice == 8:
            option = " NOT NULL"
        type_name = kind.value.upper()
        columns.append(f"{name} {f'ARRAY<{type_name}>' if array else type_name}{option}")
    return f"CREATE STREAM {stream} ({', '.join(columns)}, start BIGINT, at BIGINT){random.choice(_TIMES)}" + (
        f"{_TEMPLATE};" if template else ";"
    )


def drawn_event(random: Random, *, open_: bool = False) -> Any:
    """An event: values that fit, some of them missing, and now and then what fits nothing. On a stream that nobody
    declared an attribute may hold anything."""
    if random.randrange(60) == 0:
        return random.choice([None, 5, "text", [], [1], {}, {"n": {"n": {}}}, {1: 2}, ("n", 1)])
    at = random.choice([0, 1, 1, 2, 2, 3, 4, 6])
    made: dict[str, Any] = {"at": at, "start": at - random.choice([0, 0, 1, 2])}
    complete = random.randrange(4) == 0
    for name, (kind, array) in TYPES.items():
        if not complete and random.randrange(4) == 0:
            continue
        if open_ and random.randrange(3) == 0:
            value = of_any_kind(random)
        else:
            value = hostile(random) if random.randrange(90) == 0 else fitting(random, kind, array)
        inside = made
        *above, last = name.split(".")
        for part in above:
            inside = inside.setdefault(part, {})
            if not isinstance(inside, dict):
                break
        else:
            inside[last] = value
    if random.randrange(40) == 0:
        made[random.choice(sorted(made))] = hostile(random)
    return made


def subscription(random: Random, i: int, streams: list[str], wild: str) -> Subscription:
    stream = random.choice(streams)
    missing = random.choice(_MODES)
    choice = random.randrange(20)
    if i == 0 and wild != "TRUE":
        text = wild
    elif choice < 13:
        text = predicate(random, Scope(attributes(), open=stream not in "st"), random.choice([1, 2, 2, 3]))
    else:
        publish = random.choice([None, None, None, f"p{i}", "p0"])
        text = select(random, [*streams, stream, *(f"p{k}" for k in range(i))] if i else streams, publish)
    return Subscription(f"q{i}", text, stream, missing)


def make(random: Random, wild: str) -> Case:
    streams = random.choice([["s"], ["s"], ["s", "t"], ["u"], ["u", "v"]])
    script = " ".join([PREFIX, *(declaration(random, s) for s in streams if s in "st")])
    subscriptions = [subscription(random, i, streams, wild) for i in range(random.choice([1, 1, 2, 3]))]
    events = {s: [drawn_event(random, open_=s not in "st") for _ in range(random.randrange(1, 7))] for s in streams}
    return Case(script, tuple(subscriptions), events)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A case made from a seed: hypothesis draws one choice at a time and takes twenty times as long."""
    wild = print_node(draw(bodies())) if draw(st.integers(0, 9)) == 9 else "TRUE"
    return make(Random(draw(st.integers(0, 2**40))), wild)


def smaller(case: Case) -> Iterator[Case]:
    """The case without one of its subscriptions, events or attributes."""
    for at in range(len(case.subscriptions)):
        yield replace(case, subscriptions=case.subscriptions[:at] + case.subscriptions[at + 1 :])
    for stream, events in case.events.items():
        for at, event in enumerate(events):
            keys = list(event) if isinstance(event, dict) else []
            less = [[], *([{k: v for k, v in event.items() if k != key}] for key in keys)]
            for instead in less:
                yield replace(case, events={**case.events, stream: [*events[:at], *instead, *events[at + 1 :]]})
