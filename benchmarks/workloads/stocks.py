"""Stock sequences: three ticks of one name in a row, each a little dearer than the one before.

"In a row" means the next tick of that name, whatever others come between: Flink's strict contiguity in a stream keyed by
name, Esper's followed-by with the name in each filter, our NEXT with the name in its braces. All three then find the same
matches, each named by its pattern and its last tick. Prices wander; 500 names, so that 10,000 patterns have 20 a name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

NAMES = 500
SCHEMA = "name STRING, price DOUBLE, vol BIGINT, at BIGINT"


@dataclass(frozen=True)
class Rise:
    """A tick of `name` above `above`, the next at least `factor` times as dear, the one after again."""

    name: str
    above: float
    factor: float

    def headgate(self) -> str:
        step = f"NEXT {{name = '{self.name}'}} ticks"
        inner = f"FILTER {{name = '{self.name}' AND price > {self.above}}} (ticks)"
        for before in ("e1", "e2"):
            inner = f"FILTER {{price > {self.factor} * {before}.price}} ({inner} {step})"
        return " ".join(("SELECT e3.at AS at FROM", inner))


def rises(count: int, seed: int = 1) -> Iterator[Rise]:
    rng = Random(seed)
    for n in range(count):
        yield Rise(f"S{n % NAMES}", round(rng.uniform(20, 60), 2), round(rng.uniform(1.0, 1.03), 3))


def ticks(count: int, seed: int = 2) -> Iterator[dict[str, Any]]:
    rng = Random(seed)
    prices = [rng.uniform(30, 70) for _ in range(NAMES)]
    for at in range(count):
        n = rng.randrange(NAMES)
        prices[n] = min(max(prices[n] * rng.uniform(0.96, 1.04), 10.0), 100.0)
        yield {"name": f"S{n}", "price": round(prices[n], 3), "vol": rng.randrange(1, 1_000), "at": at}
