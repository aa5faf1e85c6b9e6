"""The file of `headgate run`: TOML, checked before anything starts; every mistake with the path of its key.

    store = "book.db"                    # or postgresql://...
    rules = "rules.hg"                   # loaded into the store if it is empty
    checkpoint = "state"
    trigger = "5 seconds"                # or "available": stop when all has been read

    [sources.stock]                      # one table for each stream; [sources."*"] is the whole event log of the store
    format = "json"                      # parquet, csv, kafka, socket, rate, headgate (the event log of the store)
    path = "ticks"
    event_id = "id"                      # kafka and headgate bring their own

    [sink]                               # and [errors], alike; both go to the store if left out
    format = "parquet"                   # json, csv, kafka, console, store
    path = "matches"

    [sequences]
    watermark = "5 minutes"              # how late an event may be; a number of ticks where TIME is BIGINT
    idle = "1 minute"                    # how long a stream may be silent before time goes on without it
    ahead = "1 minute"                   # how far an event may be ahead of the clock, which time then never is
    buckets = 16                         # the parts of the state; --rebucket changes it

Further keys: name, master, plans, [metrics] file and port, [spark] for Spark's own settings, and `options` of a source or
sink for those of its format.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate.errors import UsageError
from headgate.language.catalogue import nearest
from headgate.spark.frame import EVERY

FILES = ("json", "parquet", "csv")
SOURCES = (*FILES, "kafka", "socket", "rate", "headgate")
SINKS = (*FILES, "kafka", "console", "store")
_NEEDS = {**dict.fromkeys(FILES, ("path",)), "kafka": ("servers", "topic"), "socket": ("host", "port")}
_TEXT, _TEXTS, _NUMBER, _TABLE = "a text", "a text or a list of texts", "a whole number", "a table"
_DELAY = "a text, a whole number, or a table of these by stream"
_SOURCE = {
    "format": _TEXT, "path": _TEXT, "servers": _TEXT, "topic": _TEXT, "host": _TEXT, "port": _NUMBER, "schema": _TEXT,
    "event_id": _TEXTS, "json": _TEXT, "options": _TABLE,
}  # fmt: skip
_SINK = {"format": _TEXT, "path": _TEXT, "servers": _TEXT, "topic": _TEXT, "options": _TABLE}
_METRICS = {"file": _TEXT, "port": _NUMBER}
_SEQUENCES = {"watermark": _DELAY, "idle": _TEXT, "ahead": _TEXT, "buckets": _NUMBER}
_TOP = {
    "store": _TEXT, "rules": _TEXT, "checkpoint": _TEXT, "trigger": _TEXT, "name": _TEXT, "master": _TEXT, "plans": _TEXT,
    "sources": _TABLE, "sink": _TABLE, "errors": _TABLE, "metrics": _TABLE, "sequences": _TABLE, "spark": _TABLE,
}  # fmt: skip


@dataclass(frozen=True)
class Source:
    format: str
    path: str | None = None
    servers: str | None = None
    topic: str | None = None
    host: str | None = None
    port: int | None = None
    schema: str | None = None
    event_id: str | tuple[str, ...] | None = None
    json: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    format: str = "store"
    path: str | None = None
    servers: str | None = None
    topic: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Config:
    store: str
    checkpoint: str
    sources: Mapping[str, Source]
    sink: Target = field(default_factory=Target)
    errors: Target = field(default_factory=Target)
    rules: str | None = None
    trigger: str | None = None
    name: str = "headgate"
    master: str | None = None
    plans: str | None = None
    metrics_file: str | None = None
    metrics_port: int | None = None
    watermark: str | int | Mapping[str, str | int] = 0
    idle: str | None = None
    ahead: str | None = None
    buckets: int | None = None
    spark: Mapping[str, str] = field(default_factory=dict)


def load(path: str | Path) -> Config:
    """Read and check a file; UsageError names every mistake."""
    try:
        given = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as problem:
        raise UsageError(f"cannot read {path}: {problem.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise UsageError(f"{path} is not TOML: {problem}") from None
    return parse(given)


def parse(given: Mapping[str, Any]) -> Config:
    problems: list[str] = []
    _keys(given, _TOP, "", problems)
    problems += [f"{key}: it is missing" for key in ("store", "checkpoint", "sources") if key not in given]
    sources = {}
    for stream, table in _table(given, "sources").items():
        at = f"sources.{stream}"
        if not isinstance(table, Mapping):
            problems.append(f"{at}: it must be a table: [sources.{stream}]")
            continue
        _part(table, _SOURCE, SOURCES, at, problems)
        if stream == EVERY and table.get("format") != "headgate":
            problems.append(f"{at}.format: only the event log, headgate, has events of every stream")
        made: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in table.items() if k in _SOURCE}
        made["options"] = _texts(_table(table, "options"))
        sources[stream] = Source(**{"format": "", **made})
    targets: dict[str, Any] = {}
    for name in ("sink", "errors"):
        table = _table(given, name)
        if table:
            _part(table, _SINK, SINKS, name, problems)
            known = {k: v for k, v in table.items() if k in _SINK}
            targets[name] = Target(**{"format": "", **known, "options": _texts(_table(table, "options"))})
    metrics = _table(given, "metrics")
    _keys(metrics, _METRICS, "metrics.", problems)
    sequences = _table(given, "sequences")
    _keys(sequences, _SEQUENCES, "sequences.", problems)
    if not problems and not sources:
        problems.append("sources: there is none")
    if problems:
        raise UsageError("the configuration has mistakes:\n  " + "\n  ".join(problems))
    plain = {k: given[k] for k in ("store", "checkpoint", "rules", "trigger", "name", "master", "plans") if k in given}
    spark = _texts(_table(given, "spark"))
    return Config(
        **plain,
        **targets,
        sources=sources,
        metrics_file=metrics.get("file"),
        metrics_port=metrics.get("port"),
        watermark=sequences.get("watermark", 0),
        idle=sequences.get("idle"),
        ahead=sequences.get("ahead"),
        buckets=sequences.get("buckets"),
        spark=spark,
    )


def _part(table: Mapping[str, Any], keys: Mapping[str, str], formats: tuple[str, ...], at: str, out: list[str]) -> None:
    _keys(table, keys, f"{at}.", out)
    kind = table.get("format")
    if kind not in formats:
        said = "it is missing" if kind is None else f"{kind!r} is unknown"
        out.append(f"{at}.format: {said}; choose one of {', '.join(formats)}")
        return
    out += [f"{at}.{key}: it is missing, and {kind} needs it" for key in _NEEDS.get(kind, ()) if key not in table]


def _keys(table: Mapping[str, Any], keys: Mapping[str, str], at: str, out: list[str]) -> None:
    for key, value in table.items():
        if key not in keys:
            hint = nearest(key, keys, "")
            out.append(f"{at}{key}: there is no such key" + (f"; {hint}" if hint else ""))
        elif not _is(value, keys[key]):
            out.append(f"{at}{key}: it must be {keys[key]}, not {value!r}")


def _is(value: Any, kind: str) -> bool:
    if kind == _TEXTS and isinstance(value, list):
        return bool(value) and all(isinstance(v, str) for v in value)
    if kind == _DELAY:
        given = value.values() if isinstance(value, Mapping) else [value]
        return all(_is(v, _TEXT) or _is(v, _NUMBER) for v in given)
    if kind == _NUMBER:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, Mapping) if kind == _TABLE else isinstance(value, str)


def _table(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = table.get(key, {})
    return found if isinstance(found, Mapping) else {}


def _texts(table: Mapping[str, Any]) -> dict[str, str]:
    """Spark takes every setting as a text; TOML writes true and 5 without quotes."""
    return {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in table.items()}
