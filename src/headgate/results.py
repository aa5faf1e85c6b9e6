"""What matching gives: matches and problems. One schema of each, for the process, Spark, the store, the broker and the CLI.

A match is a row of `MATCHES`. A problem is what went wrong for one event: for all of it (it cannot be read), or for the
subscriptions that needed something of it (an operator failed). One cause on one event is one problem, however many
subscriptions it concerns; tables name the first of them and count the rest. Where one table must hold both, as on Spark,
a row has the columns of a match and an `error`, which is null in a match.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from headgate import identity
from headgate.predicates.values import written

if TYPE_CHECKING:
    from headgate.columns import Array

MOST_NAMED = 100
"""So many of the subscriptions that a problem concerns are named in a table."""
QUARANTINED = "quarantined"
"""The code of what an engine raised on: a defect, found by halving and set aside."""
_SHOWN = 3
_LONGEST = 2000
_BIGGEST = 1 << 64
_SMALLEST = -(1 << 63)


def match_schema(event: pa.DataType) -> pa.Schema:
    """The columns of a match; `event` is the type of event ids. `output` and `labels` are JSON objects or null."""
    fields: list[pa.Field[Any]] = [
        pa.field("id", pa.string(), nullable=False),
        pa.field("stream", pa.string(), nullable=False),
        pa.field("event", event, nullable=False),
        pa.field("subscription", pa.string(), nullable=False),
        pa.field("output", pa.string()),
        pa.field("labels", pa.string()),
    ]
    return pa.schema(fields)


MATCHES = match_schema(pa.int64())
_ABOUT: list[tuple[str, Any]] = [
    ("subscriptions", pa.list_(pa.string())),
    ("concerned", pa.int64()),
    ("code", pa.string()),
    ("reason", pa.string()),
    ("text", pa.string()),
]
PROBLEMS = pa.schema([("stream", pa.string()), ("event", pa.int64()), *_ABOUT])
"""`subscriptions` is null where the event itself is at fault; `concerned` counts those that are not named as well."""
ERROR = pa.struct(_ABOUT)


def row_schema(event: pa.DataType) -> pa.Schema:
    """Matches and problems in one table."""
    fields = [field.with_nullable(True) for field in match_schema(event)]
    return pa.schema([*fields, pa.field("error", ERROR)])


@dataclass(frozen=True, slots=True)
class Problem:
    """`event` is the number of its row in the input of its stream; `text` is the event. `code` is stable.

    The codes of events that cannot be read: `type`, `range`, `not_null`, `size`, `encoding`, `json`, `depth`, `object`,
    `csv`, `xml`, `cloudevent`, `event_id`, `stream`. Of sequences: `late`, `quota`. Of subscriptions: `total`, those of
    operators and graphs, and `quarantined`.
    """

    stream: str
    event: int
    code: str
    reason: str
    text: str = ""
    subscriptions: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """The reason, with those it concerns."""
        names = ", ".join(self.subscriptions[:_SHOWN])
        others = len(self.subscriptions) - _SHOWN
        return (
            f"subscription {names}{f' and {others:,} more' if others > 0 else ''}: {self.reason}"
            if names
            else self.reason
        )

    def row(self) -> dict[str, Any]:
        """A row of `PROBLEMS`."""
        return {"stream": self.stream, "event": self.event, **self.about()}

    def about(self) -> dict[str, Any]:
        """What a table has besides stream and event."""
        return {
            "subscriptions": list(self.subscriptions[:MOST_NAMED]) or None,
            "concerned": len(self.subscriptions),
            "code": self.code,
            "reason": self.reason,
            "text": self.text,
        }


class Problems:
    """The problems of a batch: what several parts of a plan find in one event, for one reason, is one."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int, str, str], Problem] = {}

    def __len__(self) -> int:
        return len(self._found)

    def add(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            key = (problem.stream, problem.event, problem.code, problem.reason)
            known = self._found.get(key)
            if known is not None and problem.subscriptions:
                names = dict.fromkeys((*known.subscriptions, *problem.subscriptions))
                problem = replace(known, subscriptions=tuple(names))
            elif known is not None:
                continue
            self._found[key] = problem

    def listed(self) -> list[Problem]:
        return list(self._found.values())


def problem_table(problems: Sequence[Problem]) -> pa.Table:
    return pa.Table.from_pylist([p.row() for p in problems], PROBLEMS)


def with_errors(matches: pa.Table) -> pa.Table:
    """Matches as rows that may be problems."""
    event = matches.schema.field("event").type
    return matches.append_column("error", pa.nulls(len(matches), ERROR)).cast(row_schema(event))


def problem_rows(problems: Sequence[Problem], ids: Array) -> pa.Table:
    """Problems as rows beside matches. `ids` are the events' own, by row; the id of a row is as lasting as that of a
    match, so that a batch that is done again writes nothing twice."""
    named = ids.take(pa.array([p.event for p in problems], pa.int64()))
    seeds = []
    nameless: Counter[str] = Counter()
    for p, name in zip(problems, id_texts(named).to_pylist(), strict=True):
        if name is None:
            # An event without an id is told from the others by its text, and from its equals by how many came before.
            nameless[p.text] += 1
            name = f"{p.text}\0{nameless[p.text]}"
        seeds.append("\0".join([name, p.code, p.reason, *p.subscriptions]))
    words = identity.hashes(seeds)
    senders = identity.hashes([f"error of {p.stream}" for p in problems])
    none = pa.nulls(len(problems), pa.string())
    columns = [
        identity.text(identity.combine(senders, words)),
        pa.array([p.stream for p in problems], pa.string()),
        named,
        none,
        none,
        none,
        pa.array([p.about() for p in problems], ERROR),
    ]
    return pa.table(columns, schema=row_schema(named.type))


def id_texts(ids: Array) -> Array:
    """Event ids of any type as texts, the same text for the same id everywhere."""
    kind = ids.type
    if pa.types.is_string(kind):
        return ids
    if pa.types.is_timestamp(kind):
        return ids.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).cast(pa.string())
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        made = [None if v is None else v.hex() if isinstance(v, bytes) else json_text(v) for v in ids.to_pylist()]
        return pa.array(made, pa.string())
    return ids.cast(pa.string())


def binding_text(binding: Mapping[str, Any]) -> str | None:
    """The values of variables as JSON, times in ISO 8601; null where there are none."""
    return json_text({name: written(value) for name, value in binding.items()}) if binding else None


def json_text(value: object) -> str:
    """A value as JSON. Bytes are hexadecimal. An integer that no 64 bits hold is a text of its digits: readers of JSON
    take numbers for doubles and would round it. What is no character becomes U+FFFD."""
    try:
        return orjson.dumps(value, default=_plain).decode()
    except TypeError:
        return orjson.dumps(_writable(value), default=_plain).decode()


def _plain(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _writable(value: object) -> object:
    match value:
        case bool():
            return value
        case int():
            return value if _SMALLEST <= value < _BIGGEST else _digits(value)
        case str():
            return clean(value, len(value))
        case Mapping():
            return {clean(str(k)): _writable(v) for k, v in value.items()}
        case list() | tuple():
            return [_writable(v) for v in value]
    return value


def _digits(value: int) -> str:
    # Python prints no integer beyond 4300 digits; hexadecimal has no such limit.
    return str(value) if value.bit_length() < 14_000 else hex(value)


def clean(text: str, most: int = _LONGEST) -> str:
    """A text that JSON, Arrow and every database can hold: no half characters, no NUL, not longer than `most`."""
    made = text[:most].encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")
    return made if len(text) <= most else made[: most - 3] + "..."


def described(error: BaseException) -> str:
    """An exception in words. It may be foreign: even asking for its text may fail."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - foreign code
        text = "its text cannot be made"
    return clean(f"{type(error).__name__}: {text}" if text else type(error).__name__)
