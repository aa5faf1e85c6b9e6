"""Flat events of 5 to 500 attributes, all there, and 3 conditions a rule: how cost grows with the width of events.

Half of the attributes are texts of 20 values, half integers below 1000. A rule has an equality on a text, a text among
three and a range of an integer. Invented: the papers that vary the width do not print their rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from benchmarks.workloads.dialects import Condition, Rule

_VALUES = [f"value{n}" for n in range(20)]


def texts(width: int) -> int:
    """How many of the attributes are texts: s0, s1, ...; the others are n0, n1, ..."""
    return (width + 1) // 2


def schema(width: int) -> str:
    strings = [f"s{n} STRING" for n in range(texts(width))]
    return ", ".join(strings + [f"n{n} BIGINT" for n in range(width - texts(width))])


def rules(count: int, width: int, seed: int = 1) -> Iterator[Rule]:
    rng = Random(seed)
    for _ in range(count):
        first, second = rng.sample(range(texts(width)), 2)
        low = rng.randrange(0, 800)
        yield (
            Condition((f"s{first}",), "=", rng.choice(_VALUES)),
            Condition((f"s{second}",), "in", tuple(sorted(rng.sample(_VALUES, 3)))),
            Condition((f"n{rng.randrange(width - texts(width))}",), "between", (low, low + rng.randrange(50, 200))),
        )


def events(count: int, width: int, seed: int = 2) -> Iterator[dict[str, Any]]:
    rng = Random(seed)
    for _ in range(count):
        made: dict[str, Any] = {f"s{n}": rng.choice(_VALUES) for n in range(texts(width))}
        made.update((f"n{n}", rng.randrange(1_000)) for n in range(width - texts(width)))
        yield made
