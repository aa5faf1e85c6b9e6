"""The workload of the demo: stock ticks, and what ten thousand people might want to know about them.

Drawn from a seed, so that every run shows the same. Few symbols are traded and watched much, and many little, as it is
in a market: the frequencies fall with the square root of the rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

STREAM = """CREATE STREAM ticks (
    symbol STRING NOT NULL, price DOUBLE, change DOUBLE, vol BIGINT,
    sector STRING, halted BOOLEAN, headline STRING, venue.city STRING, at TIMESTAMP
) TIME at;"""

SYMBOLS = 400
SECTORS = ("energy", "finance", "health", "retail", "shipping", "tech", "water")
CITIES = ("Accra", "Frankfurt", "Hong Kong", "London", "New York", "Oslo", "Tokyo")
HEADLINES = (
    "merger talks confirmed",
    "profit warning for the second quarter",
    "new chief executive named",
    "regulator opens inquiry",
    "record dividend announced",
    "strike at main plant ends",
)
OPENING = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


class Market:
    """Symbols with their sector and usual price."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        letters = self.rng.permuted(np.tile(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), (4 * SYMBOLS, 1)), axis=1)[:, :4]
        self.symbols = list(dict.fromkeys("".join(row) for row in letters))[:SYMBOLS]
        self.sectors = self.rng.choice(SECTORS, SYMBOLS)
        self.prices = np.round(np.exp(self.rng.uniform(np.log(5), np.log(500), SYMBOLS)), 2)
        weights = 1 / np.sqrt(np.arange(1, SYMBOLS + 1))
        self.weights = weights / weights.sum()

    def ticks(self, count: int) -> pa.Table:
        rng = self.rng
        which = rng.choice(SYMBOLS, count, p=self.weights)
        change = np.round(rng.normal(0, 2.5, count), 2)
        news = rng.random(count) < 0.02
        headlines = np.where(news, rng.choice(HEADLINES, count), "")
        times = [OPENING + timedelta(milliseconds=i) for i in range(count)]
        return pa.table(
            {
                "symbol": pa.array(np.array(self.symbols)[which]),
                "price": pa.array(np.round(self.prices[which] * (1 + change / 100), 2)),
                "change": pa.array(change),
                "vol": pa.array(np.exp(rng.normal(6, 1.5, count)).astype(np.int64) + 1),
                "sector": pa.array(self.sectors[which]),
                "halted": pa.array(rng.random(count) < 0.01),
                "headline": pa.array(headlines, mask=~news),
                "venue": pa.array([{"city": str(city)} for city in rng.choice(CITIES, count)]),
                "at": pa.array(times, pa.timestamp("us", "UTC")),
            }
        )

    def subscriptions(self, count: int) -> Iterator[tuple[str, str]]:
        """Names and texts. Six kinds, from the very particular to the fairly broad."""
        rng = self.rng
        for number in range(count):
            i = int(rng.choice(SYMBOLS, p=self.weights))
            symbol, usual, sector = self.symbols[i], float(self.prices[i]), str(rng.choice(SECTORS))
            change, vol = round(float(rng.uniform(2, 8)), 1), int(rng.integers(20, 500)) * 100
            kind, text = _KINDS[number % len(_KINDS)]
            others = ", ".join(f"'{self.symbols[j]}'" for j in sorted({i, *map(int, rng.integers(0, SYMBOLS, 2))}))
            values: dict[str, Any] = {
                "symbol": symbol,
                "symbols": others,
                "sector": sector,
                "low": round(usual * float(rng.uniform(0.93, 0.99)), 2),
                "high": round(usual * float(rng.uniform(1.01, 1.07)), 2),
                "change": change,
                "vol": vol,
                "city": str(rng.choice(CITIES)),
                "word": str(rng.choice(["merger", "profit warning", "inquiry", "dividend"])),
            }
            yield f"{kind}_{number:05}", text.format(**values)


_KINDS = (
    ("cheap", "symbol = '{symbol}' AND price < {low}"),
    ("range", "symbol = '{symbol}' AND price BETWEEN {low} AND {high} AND vol > {vol}"),
    ("jump", "symbol IN ({symbols}) AND ABS(change) >= {change} AND NOT halted"),
    ("sector", "sector = '{sector}' AND change < -{change} AND vol > {vol}"),
    ("news", "symbol = '{symbol}' AND headline CONTAINS '{word}'"),
    ("venue", "symbol = '{symbol}' AND (venue.city = '{city}' OR change > {change})"),
)


def script(subscriptions: list[tuple[str, str]]) -> str:
    """A rules file of them."""
    lines = [f"CREATE SUBSCRIPTION {name} ON ticks AS {text};" for name, text in subscriptions]
    return "\n".join([STREAM, "", *lines, ""])
