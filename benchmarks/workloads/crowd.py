"""A crowd of strangers on one broker: what honest ones subscribe to and publish, and what hostile ones try.

Four streams: `stock` is declared, `door` exists by being named, `trade` carries time for sequences, `place` carries graphs.
Hostile texts, bodies and requests are kept as they would be sent; a broker refuses them or bears them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

DECLARED: dict[str, tuple[dict[str, str], str | None]] = {
    "stock": ({"name": "string", "price": "double", "vol": "bigint"}, None),
    "trade": ({"name": "string", "price": "double", "number": "bigint", "at": "timestamp"}, "at"),
    "place": ({"name": "string", "doc": "graph"}, None),
}
"""The attributes of each declared stream, and its TIME."""
STREAMS = ("stock", "door", "trade", "place")
NAMES = 40
_EX = "http://example.org/"


_PAIR = """SELECT a.number AS first, b.number AS second FROM FILTER {{name = '{name}'}} (trade) AS a
NEXT {{$2.name = $1.name}} trade AS b"""
_RISE = """SELECT b.number AS number FROM FILTER {{price > {low}}} (trade) AS a
NEXT {{$2.name = $1.name AND $2.price > $1.price AND DUR <= 2 SECONDS}} trade AS b"""
_TOTAL = """SELECT total AS total FROM FILTER {{name = '{name}'}} (trade) AS a
FOLD {{$2.name = $1.name, $2.price > $1.price AND DUR < 2 SECONDS, SUM($2.price) AS total}} trade AS b"""


@dataclass(frozen=True)
class Wish:
    """What an honest subscriber asks for."""

    stream: str
    text: str


def wish(rng: random.Random) -> Wish:
    name = f"n{rng.randrange(NAMES)}"
    low = rng.randrange(90)
    texts = {
        "stock": [
            f"name = '{name}' AND price < {low}",
            f"name LIKE '{name[:2]}%' AND NOT vol < {10 * low} AND price IS NOT NULL",
            f"price BETWEEN {low} AND {low + 2} AND vol IN ({low}, {low + 1}, {low + 2}, {low + 100})",
            f"name = '{name}' OR vol = {low}",
        ],
        "door": [
            f"state = 'on' AND room = {low % 20}",
            f"state.status = 'open' AND state.room = {low % 20}",
            f"level > {low} AND room = {low % 20}",
            f"level = '{low}'",
        ],
        "trade": [
            _PAIR.format(name=name),
            _RISE.format(low=low),
            _TOTAL.format(name=name),
        ],
        "place": [
            f'GRAPH {{ _:H <{_EX}kind> "k{low % 7}" ; <{_EX}size> ?s . FILTER (?s > {low}) }}',
            f"GRAPH {{ _:H <{_EX}near> ?x . ?x <{_EX}size> ?s }} AND ?s < {low % 20} AND name = '{name}'",
        ],
    }
    stream = rng.choice(STREAMS)
    return Wish(stream, rng.choice(texts[stream]))


def event(rng: random.Random, stream: str, number: int, now: datetime) -> dict[str, Any]:
    """What an honest publisher sends, with things missing as in life."""
    name = f"n{rng.randrange(NAMES)}"
    if stream == "stock":
        made = {"name": name, "price": round(rng.random() * 100, 2), "vol": rng.randrange(1000)}
        made.pop(rng.choice([*made, "", "", "", ""]), None)
        return made
    if stream == "door":
        level = rng.randrange(100)
        made = {"room": rng.randrange(20), "level": rng.choice([level, level, str(level), float(level), None])}
        return made | rng.choice(
            [{"state": "on"}, {"state": "off"}, {"state": {"status": "open", "room": made["room"]}}, {"state": 1}, {}]
        )
    if stream == "trade":
        at = now + timedelta(microseconds=10 * (number % 1000))
        return {"name": name, "price": round(rng.random() * 100, 2), "number": number, "at": at.isoformat()}
    doc = (
        f'_:H <{_EX}kind> "k{rng.randrange(7)}" ; <{_EX}size> {rng.randrange(100)} ; <{_EX}near> _:x . '
        f"_:x <{_EX}size> {rng.randrange(30)} ."
    )
    return {"name": name, "doc": doc}


# -- hostile ones

_DEEP = 3000
HOSTILE_TEXTS: Sequence[tuple[str, str]] = (
    ("stock", "price < " + "- " * 60 + "1"),
    ("stock", "NOT " * _DEEP + "price < 1"),
    ("stock", "(" * _DEEP + "price < 1" + ")" * _DEEP),
    ("stock", ".".join(["a"] * _DEEP) + " = 1"),
    ("stock", "name LIKE '" + "%a" * 30 + "%b'"),
    ("stock", "name MATCHES '(a+)+(a+)+(a+)+$'"),
    ("stock", "name MATCHES '(?i)((((((((((a{1,100}){1,100}){1,100}'"),
    ("stock", "price < 1e400 AND vol > 99999999999999999999999999"),
    ("stock", "name = 'a\0b'"),
    ("stock", "name = '" + "x" * 200_000 + "'"),
    ("stock", " OR ".join(f"price = {i}" for i in range(2000))),
    ("stock", " AND ".join(f"(price < {i} OR vol > {i})" for i in range(40))),
    ("stock", "vol IN (" + ", ".join(map(str, range(20_000))) + ")"),
    ("stock", "CREATE STREAM x (a BIGINT)"),
    ("stock", "NOT SELECT a FROM stock"),
    ("stock", "TRUE"),
    ("stock", "price / 0 > 1 OR vol % 0 = 1"),
    ("door", "state > 5"),
    ("door", "state.status.deeper = 'x'"),
    ("door", "room = TRUE"),
    ("door", "level LIKE '%a%'"),
    ("door", "state = 'on' AND state = 5 AND state.x = TRUE"),
    ("door", "TRUE"),
    ("door", "room.number > 5 AND level.unit = 'm'"),
    ("trade", "SELECT a.name AS n FROM trade AS a NEXT {TRUE} trade AS b NEXT {TRUE} trade AS c"),
    ("trade", "SELECT g AS g FROM trade AS a FOLD {TRUE, TRUE, COLLECT($2.name) AS g} trade AS b"),
    ("trade", "SELECT * FROM trade PUBLISH stock"),
    ("trade", "SELECT a.name AS name FROM trade AS a PUBLISH loop"),
    ("trade", "SELECT SUM(price) AS s FROM trade"),
    ("place", "GRAPH { _:H <http://example.org/size> ?a . _:H <http://example.org/size> ?b . FILTER (?a > ?b) }"),
    ("place", "GRAPH { ?x ?y ?z . ?z ?w ?v . ?v ?u ?t }"),
    ("place", "GRAPH { :a :p ?x }"),
    ("place", "NOT GRAPH { _:H <http://example.org/kind> ?k }"),
    ("place", "GRAPH { _:H <http://example.org/size> ?v } AND ?v * 0.5 > 1"),
)

_JSON = "application/json"
HOSTILE_BODIES: Sequence[tuple[str, bytes, str]] = (
    ("stock", b"{", _JSON),
    ("stock", b'{"price": "abc"}', _JSON),
    ("stock", b'[{"price": 1}, {"price": {"a": []}}, {"vol": 1e99}]', _JSON),
    ("stock", b'{"vol": 1180591620717411303424}', _JSON),
    ("stock", b'{"name": "a\\u0000b", "price": 1}', _JSON),
    ("stock", b'{"name": "\\ud800", "price": 1}', _JSON),
    ("stock", '{"name": "line\u2028separator", "price": 7, "vol": 7}'.encode(), _JSON),
    ("stock", b'{"name": "' + b"a" * 60 + b'"}', _JSON),
    ("stock", b'{"price": NaN}', _JSON),
    ("stock", b'{"price": 1, "price": 2}', _JSON),
    ("stock", b'{"a":' * 60 + b"1" + b"}" * 60, _JSON),
    ("stock", b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}", _JSON),
    ("stock", b'{"x": "' + b"x" * 500_000 + b'"}', _JSON),
    ("stock", b"<a/>", "text/html"),
    ("stock", b"\xff\xfe", _JSON),
    ("door", b'{"state": [1, "on", {"status": "open"}], "room": 3}', _JSON),
    ("door", b'{"state": {"status": {"deeper": "x"}}, "room": "3", "level": []}', _JSON),
    ("door", b'{"room": 1e308, "level": 1180591620717411303424}', _JSON),
    ("door", b'{"room": null, "level": {"unit": "m"}, "state": {}}', _JSON),
    ("place", b'{"doc": "_:H <http://example.org/size> 1180591620717411303424 ."}', _JSON),
    ("place", b'{"doc": "_:H <http://example.org/size> ' + b"9" * 400 + b' ."}', _JSON),
    ("place", b'{"doc": "not turtle {{{"}', _JSON),
    ("place", json.dumps({"doc": " ".join(f"_:H <{_EX}size> {n} ." for n in range(300))}).encode(), _JSON),
    ("trade", b'{"name": "n1", "at": "9999-12-31T00:00:00Z"}', _JSON),
    ("trade", b'{"name": "n1", "at": "1970-01-01T00:00:00Z"}', _JSON),
    ("trade", b'{"name": "n1"}', _JSON),
    ("nowhere", b'{"a": 1}', _JSON),
)
"""Where to, what, and the content type."""


def now() -> datetime:
    return datetime.now(UTC)
