"""Workloads as files, from fixed seeds, so that harnesses in any language read the same bytes.

A folder has `events.jsonl`; `rules-SYSTEM.jsonl`, one JSON value a line in the language of that system, for each system
that can say them all; and `about.json` with the schema and, for each system that cannot, the reason.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.workloads import attributes, bridge, stocks
from benchmarks.workloads.dialects import DIALECTS, Cannot, Rule
from benchmarks.workloads.filters import ABE_ATTRIBUTES, abe_events, abe_texts

Named = dict[str, Any]


def digest() -> str:
    """Of the sources that draw the workloads: files of another version are not taken for these."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.blake2b(b"".join(s.read_bytes() for s in sources), digest_size=6).hexdigest()


def folder(name: str, cache: Path) -> Path:
    """The folder of a workload, written if it is not there. Names: `bridge-1000`, `ranges-1000`, `attributes-100`,
    `abe-1000`, `stocks-100`, each with the number of events after a second dash."""
    to = cache / name
    if not (to / "about.json").exists():
        shutil.rmtree(to, ignore_errors=True)
        to.mkdir(parents=True)
        kind, size, count = name.split("-")
        WRITERS[kind](to, int(size), int(count))
    return to


def about(folder: Path) -> Named:
    """What is said about a workload: its schema, and which systems cannot say its rules."""
    read: Named = json.loads((folder / "about.json").read_text("utf-8"))
    return read


def _write(to: Path, events: Iterable[Named], told: Named) -> None:
    with (to / "events.jsonl").open("w", encoding="utf-8") as file:
        for event in events:
            file.write(json.dumps(event, separators=(",", ":")) + "\n")
    # Last, because it says that the folder is whole.
    (to / "about.json").write_text(json.dumps(told), "utf-8")


def _rules(to: Path, rules: list[Rule], cannot: dict[str, str] | None = None) -> dict[str, str]:
    """The rules in each dialect that can say them all, and why the others cannot."""
    refused = dict(cannot or {})
    for system, dialect in DIALECTS.items():
        if system in refused:
            continue
        try:
            lines = [json.dumps(dialect(rule)) for rule in rules]
        except Cannot as problem:
            refused[system] = str(problem)
        else:
            _lines(to, system, lines)
    return refused


def _lines(to: Path, system: str, lines: Iterable[str]) -> None:
    (to / f"rules-{system}.jsonl").write_text("".join(line + "\n" for line in lines), "utf-8")


def _bridge(to: Path, size: int, events: int, ranges: bool = False) -> None:
    cannot = _rules(to, list(bridge.rules(size, ranges)))
    _write(to, bridge.events(events), {"schema": bridge.SCHEMA, "cannot": cannot})


def _ranges(to: Path, size: int, events: int) -> None:
    _bridge(to, size, events, ranges=True)


def _attributes(to: Path, width: int, events: int) -> None:
    """1,000 rules over events of this width."""
    cannot = _rules(to, list(attributes.rules(1_000, width)))
    names = {f"s{n}": "string" for n in range(attributes.texts(width))}
    names |= {f"n{n}": "integer" for n in range(width - attributes.texts(width))}
    told = {"schema": attributes.schema(width), "cannot": cannot, "attributes": names}
    _write(to, attributes.events(events, width), told)


def _abe(to: Path, size: int, events: int) -> None:
    texts = list(abe_texts(size))
    _lines(to, "headgate", map(json.dumps, texts))
    _lines(to, "a-tree", (json.dumps(t.replace("AND", "and").replace("OR", "or").replace("NOT", "not")) for t in texts))
    why = "no NOT or OR over conditions of several attributes"
    cannot = {
        "event-ruler": why,
        "quamina": why,
        "rule-engine": "a comparison with what is missing is an error",
        "json-logic": "what is missing is false, also under NOT",
    }
    columns = abe_events(events).columns
    rows: list[Named] = [{} for _ in range(events)]
    for (name,), column in columns.items():
        values: Any = column.values
        for row in column.defined.nonzero()[0].tolist():
            rows[row][name] = int(values[row])
    names = {f"a{n}": "integer" for n in range(ABE_ATTRIBUTES)}
    schema = ", ".join(f"a{n} BIGINT" for n in range(ABE_ATTRIBUTES))
    _write(to, rows, {"schema": schema, "cannot": cannot, "attributes": names})


def _stocks(to: Path, size: int, events: int) -> None:
    made = list(stocks.rises(size))
    _lines(to, "headgate", (json.dumps(rise.headgate()) for rise in made))
    for system in ("esper", "flink-cep"):
        _lines(to, system, (json.dumps({"name": r.name, "above": r.above, "factor": r.factor}) for r in made))
    _write(to, stocks.ticks(events), {"schema": stocks.SCHEMA, "time": "at", "cannot": {}})


WRITERS = {"bridge": _bridge, "ranges": _ranges, "attributes": _attributes, "abe": _abe, "stocks": _stocks}
