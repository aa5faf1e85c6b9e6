"""When gates pay: the same book compiled with and without `cover=True`, matched with the same events in one run.

What gates save is the evaluation of covered filters on events that no coverer matched. What they cost is that coverers
must be listed and not only counted, that events are picked out, and that there are several indexes in place of one,
which share less. So books differ in how much is covered, how often coverers match, and how dear the covered filters are
without a gate: a filter filed under a selective key costs next to nothing anyhow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

import headgate as hg
from benchmarks.measure import interleaved

Row = dict[str, Any]
Texts = list[str]


@dataclass(frozen=True)
class Book:
    """A book and its events. `make` gives texts and a table."""

    name: str
    make: Callable[[np.random.Generator, int, int], tuple[dict[str, str], Texts, pa.Table]]


def growth(attributes: int) -> Callable[[np.random.Generator, int, int], tuple[dict[str, str], Texts, pa.Table]]:
    """The paper's growth scenario: boxes over popular attributes with popular ranges."""

    def make(rng: np.random.Generator, size: int, events: int) -> tuple[dict[str, str], Texts, pa.Table]:
        popularity = 1.0 / np.arange(1, attributes + 1) ** 2.0
        popularity /= popularity.sum()
        texts = []
        for _ in range(size):
            chosen = sorted(set(rng.choice(attributes, size=round(0.6 * attributes), p=popularity).tolist()))
            parts = []
            for j in chosen:
                centre, half = min(100.0 * rng.pareto(1.0), 1000.0), abs(rng.normal(400.0, 100.0)) / 2
                parts.append(f"x{j} BETWEEN {centre - half:.2f} AND {centre + half:.2f}")
            texts.append(" AND ".join(parts))
        columns = {f"x{j}": pa.array(np.minimum(100.0 * rng.pareto(1.0, events), 1000.0)) for j in range(attributes)}
        return dict.fromkeys(columns, "double"), texts, pa.table(columns)

    return make


def nested(
    share: float, *, dear: bool
) -> Callable[[np.random.Generator, int, int], tuple[dict[str, str], Texts, pa.Table]]:
    """Few wide filters that together match a share of the events, and many inside each. Dear ones have no key to be filed
    under: a regular expression and a product of attributes."""

    def make(rng: np.random.Generator, size: int, events: int) -> tuple[dict[str, str], Texts, pa.Table]:
        wide = 20
        step = share * 1000.0 / wide
        texts = [f"x BETWEEN {i * step:.3f} AND {(i + 1) * step:.3f}" for i in range(wide)]
        for _ in range(size - wide):
            low = int(rng.integers(wide)) * step
            a, b = np.sort(rng.uniform(low, low + step, 2))
            inner = f"x BETWEEN {a:.3f} AND {b:.3f}"
            if dear:
                word = "".join(rng.choice(list("abc"), 3))
                inner = f"{inner} AND (t MATCHES '{word}' OR x * y > {int(rng.integers(1000)) * 100})"
            texts.append(inner)
        columns: dict[str, pa.Array[Any]] = {
            "x": pa.array(rng.uniform(0, 1000, events)),
            "y": pa.array(rng.uniform(0, 1000, events)),
            "t": pa.array(["".join(w) for w in rng.choice(list("abc"), (events, 8))]),
        }
        return {"x": "double", "y": "double", "t": "string"}, texts, pa.table(columns)

    return make


BOOKS = (
    Book("growth, 10 attributes", growth(10)),
    Book("growth, 20 attributes", growth(20)),
    Book("inside few, 1% open", nested(0.01, dear=False)),
    Book("inside few, 50% open", nested(0.5, dear=False)),
    Book("dear inside few, 1% open", nested(0.01, dear=True)),
    Book("dear inside few, 50% open", nested(0.5, dear=True)),
)


def gates(size: int, events: int, seed: int = 6) -> Iterator[Row]:
    """How many times faster a plan is with gates, and what compiling costs; both must match the same."""
    for book in BOOKS:
        schema, texts, table = book.make(np.random.default_rng(seed), size, events)
        subs = hg.Subscriptions().stream("events", schema)
        for i, text in enumerate(texts):
            subs.add(f"s{i}", text)
        plans, seconds = {}, {}
        for name, cover in (("plain", False), ("gated", True)):
            start = process_time()
            plans[name] = subs.compile(cover=cover)
            seconds[name] = process_time() - start
        counts = [plans[n].match(table, output="counts") for n in plans]
        assert counts[0].equals(counts[1]), "gates lost a match"
        row: Row = {"figure": "gates", "book": book.name, "subscriptions": size, "events": events}
        row["gated_share"] = len(plans["gated"].gates()) / size
        row["matches_an_event"] = sum(counts[0].column("count").to_pylist()) / events
        row.update({f"compile_{n}_s": round(s, 2) for n, s in seconds.items()})
        for output in ("counts", "pairs"):
            ways = {n: partial(p.match, table, output=output) for n, p in plans.items()}
            taken = interleaved(ways, 5)
            row[f"times_faster_{output}"] = round(taken["plain"].median / taken["gated"].median, 2)
            row[f"plain_{output}_s"] = round(taken["plain"].median, 4)
        yield row
